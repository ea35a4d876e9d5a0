//! The work in progress of a loop.

use crate::answer::Asked;
use crate::machine::Asker;
use agentd_actor_kit::{Contents, Earlier, QueuePosition};
use agentd_hooks::Narrowing;
use agentd_policy::Judgement;
use agentd_protocol::{CallId, Grant, HookEvent, Reach};
use agentd_store::{Blob, IdempotencyKey};
use agentd_tools::Prepared;
use agentd_turn::{Input, QuestionId};
use serde_json::Value;
use std::collections::BTreeMap;

/// The running attempt of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelRun {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// Set while it waits for a permit, with its place in the queue as far as that is known.
    pub(crate) waits: Option<Option<QueuePosition>>,
}

/// A running tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolRun {
    pub(crate) attempt: u32,
    pub(crate) waits: bool,
}

/// A checked call.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The question that its verdict answers.
    pub(crate) question: QuestionId,
    pub(crate) prepared: Prepared,
    /// The input as the model, or a hook, wrote it.
    pub(crate) input: Value,
    /// What people granted for the session.
    pub(crate) grants: Vec<Grant>,
    /// The state of the files that it runs, or why it is unknown.
    pub(crate) contents: Contents,
    /// It is allowed only while these files stay the same.
    pub(crate) by_content: bool,
    /// The worker that runs the hooks, and the event that the hooks handle.
    pub(crate) hooking: Option<(u32, HookEvent)>,
    /// Whether the hooks before the call were asked.
    pub(crate) hooked: bool,
    /// Whether the hooks were asked instead of a person.
    pub(crate) questioned: bool,
    /// The strictest narrowing that the hooks requested.
    pub(crate) narrowing: Option<Narrowing>,
    /// The decision of the hook that answers for the person.
    pub(crate) permit: Option<Narrowing>,
    /// Kept while the hooks, or the details of a question, are pending.
    pub(crate) judgement: Option<Judgement>,
}

impl Planned {
    /// The files that must still be the same when the call runs.
    pub(crate) fn judged_contents(&self) -> Option<BTreeMap<String, String>> {
        // Nothing holds by unknown contents, so there is no other case.
        let contents = self.contents.clone().unwrap_or_default();
        self.by_content.then_some(contents)
    }

    /// How far a grant for this project would reach; `None`: agentd cannot bind it.
    pub(crate) fn reach(&self, place: String) -> Option<Reach> {
        let files = self.contents.clone().ok()?;
        Some(Reach { place, files })
    }
}

/// An input with its blobs and its caller.
#[derive(Debug)]
pub struct Task {
    pub(crate) input: Input,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) asker: Option<(Asker, Asked, Option<IdempotencyKey>)>,
    /// The earlier conversation that the session returns to.
    pub(crate) earlier: Option<Box<Earlier>>,
}

impl Task {
    /// An input without any of these.
    #[must_use]
    pub const fn of(input: Input) -> Self {
        Self {
            input,
            blobs: Vec::new(),
            asker: None,
            earlier: None,
        }
    }

    pub(crate) fn with_blobs(input: Input, blobs: Vec<Blob>) -> Self {
        Self {
            blobs,
            ..Self::of(input)
        }
    }

    pub(crate) fn of_command(input: Input, asker: Asker, asked: Asked, key: Option<IdempotencyKey>) -> Self {
        Self {
            asker: Some((asker, asked, key)),
            ..Self::of(input)
        }
    }
}
