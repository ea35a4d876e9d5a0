//! Requests of a conversation to the daemon.

use crate::follow::Follower;
use agentd_protocol::{
    ApprovalDecided, ApprovalId, CancelInputParams, CancelTurnParams, Event, EventBody, ExportParams, Fault,
    InputId, OpenApproval, Principal, ResumeParams, TurnId,
};
use std::time::Duration;

/// The daemon may report that a question is over shortly before its answer can be read, so try this often.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// How many events at the end of a log are searched for an answer.
const RECENT: u32 = 200;

impl Follower {
    /// Cancels the given turn, or else the running one.
    pub(crate) async fn cancel(&self, turn: Option<TurnId>, reason: &str) -> Result<(), Fault> {
        let params = CancelTurnParams {
            session: self.session().to_owned(),
            expect_turn: turn,
            reason: Some(reason.to_owned()),
            kill: false,
        };
        let done = self.client().cancel_turn(&params).await;
        done.map(drop).map_err(Fault::from)
    }

    /// Resumes a paused or parked session.
    pub(crate) async fn resume(&self) -> Result<(), Fault> {
        let params = ResumeParams {
            session: self.session().to_owned(),
            reason: Some("resumed by /resume".to_owned()),
            force: false,
            workdir: None,
        };
        let done = self.client().resume(&params).await;
        done.map(drop).map_err(Fault::from)
    }

    /// Takes back an input that is still queued; a conflict if a turn has taken it.
    pub(crate) async fn take_back(&self, input: InputId) -> Result<(), Fault> {
        let params = CancelInputParams {
            session: self.session().to_owned(),
            input: Some(input),
        };
        let done = self.client().cancel_input(&params).await;
        done.map(drop).map_err(Fault::from)
    }

    /// The answer to a sub-agent's question, and who gave it. The sub-agent's events do not arrive here.
    pub(crate) async fn answer_of(&self, asked: &OpenApproval) -> Option<(ApprovalDecided, Principal)> {
        for _ in 1..LOOKS {
            if let Some(answer) = self.answer_now(asked).await {
                return Some(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.answer_now(asked).await
    }

    async fn answer_now(&self, asked: &OpenApproval) -> Option<(ApprovalDecided, Principal)> {
        let (client, session) = (self.client(), asked.session.to_string());
        let head = client.get(&session).await.ok()?.seq;
        let params = ExportParams {
            session,
            after_seq: head.saturating_sub(RECENT.into()),
            limit: RECENT,
        };
        let page = client.export(&params).await.ok()?;
        page.lines
            .iter()
            .rev()
            .find_map(|line| answer_in(line, asked.approval))
    }
}

fn answer_in(line: &str, approval: ApprovalId) -> Option<(ApprovalDecided, Principal)> {
    let event: Event = serde_json::from_str(line).ok()?;
    match event.body {
        EventBody::ApprovalDecided(decided) if decided.approval == approval => Some((decided, event.by)),
        _ => None,
    }
}
