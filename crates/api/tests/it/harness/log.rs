//! Writing to sessions as their owner would.

use agentd_actor_kit::{Clock, Handle, StoreMsg};
use agentd_protocol::*;
use agentd_store::{Append, Backend, EncodedEvent, IdempotencyKey, Outcome};
use std::sync::Arc;

/// Writes to sessions as their owner would.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) store: Handle<StoreMsg>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
}

impl Log {
    /// Appends facts; `edit` changes the list row with them.
    pub(crate) async fn write(
        &self,
        session: SessionId,
        by: &Principal,
        bodies: Vec<EventBody>,
        keys: Vec<IdempotencyKey>,
        edit: impl FnOnce(&mut Summary),
    ) -> Result<Seq, Outcome> {
        let row = self.backend.row(session).await.unwrap();
        let (head, mut summary) = row.map_or_else(|| (0, blank(session)), |row| (row.head, row.summary));
        let mut append = Append::new(session, 1, head, self.clock.stamp().append());
        for (seq, body) in (head + 1..).zip(bodies) {
            let event = Event {
                v: 1,
                session,
                seq,
                at: self.clock.now(),
                by: by.clone(),
                turn: None,
                body,
            };
            append.events.push(EncodedEvent::encode(&event).unwrap());
            summary.seq = seq;
        }
        edit(&mut summary);
        append.summary = Some(summary);
        append.keys = keys;
        let done = |done| StoreMsg::Append { append, done };
        match self
            .store
            .call(std::time::Duration::from_secs(5), done)
            .await
            .unwrap()
        {
            Outcome::Committed { head, .. } | Outcome::Duplicate { head } => Ok(head),
            other => Err(other),
        }
    }

    /// A fact that is only there to be counted.
    pub(crate) async fn note(&self, session: SessionId, text: &str) -> Seq {
        let note = NoteInjected {
            kind: NoteKind::Guard,
            text: text.to_owned(),
        };
        self.write(
            session,
            &Principal::agentd(),
            vec![note.into()],
            Vec::new(),
            |_| {},
        )
        .await
        .unwrap()
    }

    /// Asks a person.
    pub(crate) async fn ask(&self, session: SessionId, title: &str) -> ApprovalId {
        let approval = self.clock.stamp().approval();
        let asked = ApprovalAsked {
            approval,
            kind: ApprovalKind::Tool,
            tool_call: None,
            title: title.to_owned(),
            detail: "cargo test".to_owned(),
            choices: Vec::new(),
            scopes: vec![Scope::Once],
            expires_at: None,
            grant: None,
            binding: None,
            about: agentd_protocol::About::default(),
        };
        let open = OpenApproval {
            approval,
            kind: asked.kind,
            session,
            tool_call: None,
            tool: Some("Bash".to_owned()),
            title: asked.title.clone(),
            detail: asked.detail.clone(),
            choices: Vec::new(),
            scopes: asked.scopes.clone(),
            asked_at: self.clock.now(),
            expires_at: None,
            grant: None,
            input: None,
            level: 0,
            root: None,
            path: Vec::new(),
            about: agentd_protocol::About::default(),
        };
        let edit = |row: &mut Summary| {
            row.open_approvals.push(open);
            row.status.state = RunState::Waiting(WaitReason::Approval);
        };
        self.write(
            session,
            &Principal::agentd(),
            vec![asked.into()],
            Vec::new(),
            edit,
        )
        .await
        .unwrap();
        approval
    }

    /// Changes only the list row.
    pub(crate) async fn edit(&self, session: SessionId, edit: impl FnOnce(&mut Summary)) {
        self.write(session, &Principal::agentd(), Vec::new(), Vec::new(), edit)
            .await
            .unwrap();
    }
}

fn blank(session: SessionId) -> Summary {
    let at = Timestamp(1_763_629_200_123);
    Summary {
        session,
        name: String::new(),
        status: Status {
            state: RunState::Idle,
            reason: "nothing to do".into(),
            since: at,
            until: None,
            attempt: None,
            position: None,
        },
        model: "scripted".into(),
        mode: PermissionMode::Default,
        workdir: "/".into(),
        labels: Labels::new(),
        seq: 0,
        steps: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
        created_at: at,
        updated_at: at,
        parent: None,
        turn: None,
        open_approvals: Vec::new(),
        queue: Vec::new(),
        budget: Budget::default(),
        last_error: None,
        todo: Vec::new(),
        summary: None,
        jobs: Vec::new(),
        time_ms: 0,
        children: Vec::new(),
        subagents: 0,
        below: Spent::default(),
        paused: false,
        wake_at: None,
        resumable: false,
        limits: None,
    }
}
