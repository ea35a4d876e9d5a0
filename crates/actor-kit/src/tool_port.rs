//! What the tool executor understands: permits, and the per-session resources of running tools.

use agentd_actor_core::Done;
use agentd_protected::ProtectedPaths;
use agentd_protocol::{Binding, EffectClass, SessionId};
use agentd_tools::{Environment, Prepared, Search, ToolLimits, WardenSlot};
use ractor::ActorRef;
use std::path::PathBuf;
use std::sync::Arc;

/// The right to run one tool call. Given back when dropped, also by a kill or a panic.
#[derive(Debug)]
pub struct ToolPermit {
    executor: ActorRef<ToolMsg>,
    session: SessionId,
    class: EffectClass,
    /// The session's resident process warden, started at its first command.
    pub warden: WardenSlot,
    /// The limits of tool calls.
    pub limits: Arc<ToolLimits>,
    /// Where output that is too long for a result is put meanwhile.
    pub spill_dir: PathBuf,
    /// Where maps of source trees are kept.
    pub map_dir: PathBuf,
    /// Who keeps the indexes of working directories, if anybody does.
    pub search: Option<Arc<dyn Search>>,
    /// What commands find in their environment.
    pub environment: Arc<Environment>,
    /// Which paths of a working directory are protected.
    pub protected: Arc<ProtectedPaths>,
}

/// What an executor lends to a call.
#[derive(Debug)]
pub struct Lent {
    /// The session's resident process warden.
    pub warden: WardenSlot,
    /// The limits of tool calls.
    pub limits: Arc<ToolLimits>,
    /// Where output that is too long for a result is put meanwhile.
    pub spill_dir: PathBuf,
    /// Where maps of source trees are kept.
    pub map_dir: PathBuf,
    /// Who keeps the indexes of working directories, if anybody does.
    pub search: Option<Arc<dyn Search>>,
    /// What commands find in their environment.
    pub environment: Arc<Environment>,
    /// Which paths of a working directory are protected.
    pub protected: Arc<ProtectedPaths>,
}

impl ToolPermit {
    /// A permit of this executor; only the executor makes them.
    #[must_use]
    pub fn new(executor: ActorRef<ToolMsg>, session: SessionId, class: EffectClass, lent: Lent) -> Self {
        Self {
            executor,
            session,
            class,
            warden: lent.warden,
            limits: lent.limits,
            spill_dir: lent.spill_dir,
            map_dir: lent.map_dir,
            search: lent.search,
            environment: lent.environment,
            protected: lent.protected,
        }
    }
}

impl Drop for ToolPermit {
    fn drop(&mut self) {
        let _ = self.executor.cast(ToolMsg::Release {
            session: self.session,
            class: self.class,
        });
    }
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDetail {
    /// What exactly will happen, in words.
    pub text: String,
    /// What an approval is given for; the error says why that cannot be said, and then nobody can give one.
    pub binding: Result<Binding, String>,
}

/// Messages of the tool executor.
#[derive(Debug)]
pub enum ToolMsg {
    /// Wait for a permit of a class.
    Acquire {
        /// Who.
        session: SessionId,
        /// Which class.
        class: EffectClass,
        /// The session's working directory (its warden starts there).
        workdir: PathBuf,
        /// The permit.
        done: Done<ToolPermit>,
    },
    /// A permit came back.
    Release {
        /// Whose.
        session: SessionId,
        /// Which class.
        class: EffectClass,
    },
    /// Say what exactly a prepared call will do (reads files; runs beside the mailbox).
    Detail {
        /// The call.
        prepared: Box<Prepared>,
        /// The session's working directory.
        workdir: PathBuf,
        /// The text, and what an approval of it is given for.
        done: Done<CallDetail>,
    },
    /// The session has nothing running any more (closed, killed, cold): its warden may go (I5).
    SessionEnded {
        /// Which.
        session: SessionId,
    },
    /// Let idle wardens go (private timer).
    Sweep,
}
