//! What every actor shares, and the actors' message enums (ports).
//!
//! Here are the pieces that make supervision safe: an answer that always arrives ([`Done`]), a handle that survives its
//! actor's restart ([`Handle`]), kids with `(work, attempt)` ([`Kids`]), a restart window, a clock. The ports say what each actor
//! understands; no actor's behaviour is here, so the actors need not import each other.
//!
//! Invariants: I6 (every port is answered or says that it is gone; nobody waits for ever), I7 (a lost answer is never an allow).

mod alarm;
mod clock;
mod done;
mod feed_port;
mod gate_port;
mod handle;
mod kid;
mod kids;
mod model_port;
mod restart;
mod session_port;
mod stages;
mod store_port;
mod subagent_port;
mod supervisor_port;
mod tool_port;

pub use alarm::Alarm;
pub use clock::Clock;
pub use done::Done;
pub use feed_port::{Attached, FeedEvent, FeedFrame, FeedMsg, Published, Viewer, ViewerId};
pub use gate_port::{GateMsg, JudgeRequest};
pub use handle::{CallError, Handle, Pointer};
pub use kid::spawn_kid;
pub use kids::{Down, Kids};
pub use model_port::{
    Admitted, Ask, CallOutcome, CallPermit, Grant, Hold, Lane, ModelMsg, Outlook, Place, ProviderStatus,
    Refusal,
};
pub use restart::RestartWindow;
pub use session_port::{CallEvent, Credit, Earlier, RunEvent, SessionMsg, Work};
pub use stages::{CallStage, StageDone, Stages};
pub use store_port::{Read, StoreMsg};
pub use subagent_port::{NewSubagent, SubagentPort, SubagentSource};
pub use supervisor_port::{LiveStatus, Routed, SupervisorMsg, SupervisorStats, Woken};
pub use tool_port::{CallDetail, Lent, ToolMsg, ToolPermit};
