//! What a loop is busy with.

use crate::answer::Asked;
use crate::outbox::Asker;
use agentd_actor_kit::Place;
use agentd_hooks::Narrowing;
use agentd_policy::Judgement;
use agentd_protocol::{CallId, HookEvent};
use agentd_store::{Blob, IdempotencyKey};
use agentd_tools::Prepared;
use agentd_turn::Input;
use serde_json::Value;

/// The attempt that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelRun {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// It waits for a permit, and where it stands as far as that is known.
    pub(crate) waits: Option<Option<Place>>,
}

/// A tool call that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolRun {
    pub(crate) attempt: u32,
    pub(crate) waits: bool,
}

/// A call that was checked.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) prepared: Prepared,
    /// As the model, or a hook, wrote it.
    pub(crate) input: Value,
    /// Rules granted for the session by people.
    pub(crate) grants: Vec<String>,
    /// The kid that asks the hooks, and about what.
    pub(crate) hooking: Option<(u32, HookEvent)>,
    /// The hooks before the call were asked.
    pub(crate) hooked: bool,
    /// The hooks were asked instead of a person.
    pub(crate) questioned: bool,
    /// What they want.
    pub(crate) narrowing: Option<Narrowing>,
    /// The hook that answers for the person.
    pub(crate) permit: Option<Narrowing>,
    /// Kept while hooks are asked, or the detail of a question is made.
    pub(crate) judgement: Option<Judgement>,
}

/// An input with what belongs to it.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) input: Input,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) asker: Option<(Asker, Asked, Option<IdempotencyKey>)>,
}

impl Task {
    pub(crate) const fn of(input: Input) -> Self {
        Self {
            input,
            blobs: Vec::new(),
            asker: None,
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
