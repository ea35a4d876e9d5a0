//! The messages of the tool executor: permits, and the per-session resources of running tools.

use agentd_actor_core::{Done, Load};
use agentd_protected::ProtectedPaths;
use agentd_protocol::{Binding, EffectClass, SessionId};
use agentd_tools::{Environment, Prepared, Search, TagFinders, ToolLimits, WardenSlot};
use ractor::ActorRef;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The right to run one tool call. Returned on drop, also after a kill or a panic.
#[derive(Debug)]
pub struct ToolPermit {
    executor: ActorRef<ToolMsg>,
    held: Held,
    /// The session's resident process warden, which starts at the first command.
    pub warden: WardenSlot,
    /// The limits of tool calls.
    pub limits: Arc<ToolLimits>,
    /// The temporary place of output that is too long for a result.
    pub spill_dir: PathBuf,
    /// The directory of the maps of source trees.
    pub map_dir: PathBuf,
    /// The indexes of working directories, if there are any.
    pub search: Option<Arc<dyn Search>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// The environment of commands.
    pub environment: Arc<Environment>,
    /// The protected paths of a working directory.
    pub protected: Arc<ProtectedPaths>,
}

/// What a permit counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The session.
    pub session: SessionId,
    /// The class of the call.
    pub class: EffectClass,
    /// The file system of the session's working directory.
    pub file_system: Arc<str>,
}

/// The resources that an executor lends to a call.
#[derive(Debug)]
pub struct Lent {
    /// The session's resident process warden.
    pub warden: WardenSlot,
    /// The limits of tool calls.
    pub limits: Arc<ToolLimits>,
    /// The temporary place of output that is too long for a result.
    pub spill_dir: PathBuf,
    /// The directory of the maps of source trees.
    pub map_dir: PathBuf,
    /// The indexes of working directories, if there are any.
    pub search: Option<Arc<dyn Search>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// The environment of commands.
    pub environment: Arc<Environment>,
    /// The protected paths of a working directory.
    pub protected: Arc<ProtectedPaths>,
}

impl ToolPermit {
    /// A permit of this executor; only the executor creates permits.
    #[must_use]
    pub fn new(executor: ActorRef<ToolMsg>, held: Held, lent: Lent) -> Self {
        Self {
            executor,
            held,
            warden: lent.warden,
            limits: lent.limits,
            spill_dir: lent.spill_dir,
            map_dir: lent.map_dir,
            search: lent.search,
            parsers: lent.parsers,
            environment: lent.environment,
            protected: lent.protected,
        }
    }
}

impl Drop for ToolPermit {
    fn drop(&mut self) {
        let held = self.held.clone();
        let _ = self.executor.cast(ToolMsg::Release { held });
    }
}

/// The details of a call that a person decides on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDetail {
    /// The exact effect of the call, in words.
    pub text: String,
    /// The binding of an approval. If it cannot be determined, the error says why, and the call cannot be approved.
    pub binding: Result<Binding, String>,
}

/// The state of the files that a call runs, by name; or why it is unknown.
pub type Contents = Result<BTreeMap<String, String>, String>;

/// Messages of the tool executor.
#[derive(Debug)]
pub enum ToolMsg {
    /// Wait for a permit of a class.
    Acquire {
        /// The session.
        session: SessionId,
        /// The class.
        class: EffectClass,
        /// The session's working directory (its warden starts there).
        workdir: PathBuf,
        /// The permit.
        done: Done<ToolPermit>,
    },
    /// A permit was returned.
    Release {
        /// What it counted as.
        held: Held,
    },
    /// Describe exactly what a prepared call will do (reads files; runs outside the mailbox).
    Detail {
        /// The call.
        prepared: Box<Prepared>,
        /// The session's working directory.
        workdir: PathBuf,
        /// The text and the binding of an approval.
        done: Done<CallDetail>,
    },
    /// Find the state of the files that a prepared call runs (reads files; runs outside the mailbox).
    Contents {
        /// The call.
        prepared: Box<Prepared>,
        /// The session's working directory.
        workdir: PathBuf,
        /// The files, or why they cannot be compared.
        done: Done<Contents>,
    },
    /// The session no longer runs anything (closed, killed, cold): its warden may stop (I5).
    SessionEnded {
        /// The session.
        session: SessionId,
    },
    /// Ask how many calls run and wait.
    Load {
        /// The numbers.
        done: Done<Load>,
    },
    /// Stop idle wardens (private timer).
    Sweep,
}
