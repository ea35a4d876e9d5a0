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
    /// Appends events; `edit` changes the list row in the same append.
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
            .call(std::time::Duration::from_secs(60), done)
            .await
            .unwrap()
        {
            Outcome::Committed { head, .. } | Outcome::Duplicate { head } => Ok(head),
            other => Err(other),
        }
    }

    /// Appends an event that only counts.
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

    /// Opens an approval.
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
            tool: Some("Bash".to_owned()),
            title: asked.title.clone(),
            detail: asked.detail.clone(),
            scopes: asked.scopes.clone(),
            ..OpenApproval::new(approval, asked.kind, session, self.clock.now())
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
        model: "scripted".to_owned(),
        workdir: "/".to_owned(),
        ..Summary::new(session, Status::new(RunState::Idle, "nothing to do", at))
    }
}
