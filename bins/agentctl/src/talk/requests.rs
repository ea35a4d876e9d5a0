//! What a conversation asks of the daemon.

use crate::follow::Follower;
use agentd_protocol::{
    ApprovalDecided, ApprovalId, CancelInputParams, CancelTurnParams, Event, EventBody, ExportParams, Fault,
    InputId, LifecycleParams, OpenApproval, Principal, TurnId,
};
use std::time::Duration;

/// The daemon may say that a question is over a moment before its answer can be read.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// Events at the end of a log among which an answer is looked for.
const RECENT: u32 = 200;

impl Follower {
    /// Ends the turn; only this one if it is named.
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

    /// What is paused or parked goes on.
    pub(crate) async fn resume(&self) -> Result<(), Fault> {
        let params = LifecycleParams {
            session: self.session().to_owned(),
            reason: Some("resumed by /resume".to_owned()),
            force: false,
        };
        let done = self.client().resume(&params).await;
        done.map(drop).map_err(Fault::from)
    }

    /// Takes an input back that no turn has taken; a conflict when one has.
    pub(crate) async fn take_back(&self, input: InputId) -> Result<(), Fault> {
        let params = CancelInputParams {
            session: self.session().to_owned(),
            input: Some(input),
        };
        let done = self.client().cancel_input(&params).await;
        done.map(drop).map_err(Fault::from)
    }

    /// How a question of a sub-agent was answered, and by whom; its events do not come here.
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
