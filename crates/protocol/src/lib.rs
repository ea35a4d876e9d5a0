//! The shared vocabulary of agentd as types: ids, events, commands, faults. All other crates build on these.
//!
//! No I/O, no clock, no randomness: time and entropy come in as a [`Stamp`]. Field names are the contract with the
//! outside (JSON lines in exports, MessagePack named maps on the socket): new ones may be added, none is ever renamed.
//!
//! Invariants held here: an [`Event`] of an unknown type still parses (I2: a reader skips it, an owner faults the
//! session), and every [`Fault`] has one class of the closed list, so every failure has an exit code.

mod audit;
mod backup;
mod binding;
mod block;
mod bulk;
mod call;
mod command;
mod command_history;
mod command_work;
mod context_shown;
mod daily_usage;
mod delta;
mod done;
mod event;
mod event_body;
mod fault;
mod fleet;
mod fleet_node;
mod grant;
mod hanging;
mod ids;
mod kept;
mod limits;
mod listing;
mod log_tail;
mod model_row;
mod named;
mod nearest;
mod node_status;
mod open_approval;
mod payload_context;
mod payload_files;
mod payload_history;
mod payload_hook;
mod payload_imported;
mod payload_job;
mod payload_plan;
mod payload_prompt;
mod payload_session;
mod payload_side;
mod payload_subagent;
mod payload_todos;
mod payload_turn;
mod principal;
mod question;
mod reloaded;
mod request_item;
mod rule_row;
pub mod sandbox;
#[cfg(feature = "schema")]
mod schema;
mod selector;
mod server_row;
mod stamp;
mod store_check;
mod summary;
mod token;
mod unique;
mod usage;
mod vocabulary;
mod workspace;

pub use audit::{AuditBroken, AuditCheck, AuditLine, AuditPage, AuditParams};
pub use backup::*;
pub use binding::{About, Binding};
pub use block::{Block, ImageSource, Message, Role, image_media_type};
pub use bulk::*;
pub use call::{
    Advice, Choice, EffectClass, FailureClass, Reading, StopReason, ToolOutcome, ToolStatus, Truncated,
    Unmade, UnmadeCall, Verdict, VerdictKind,
};
pub use command::*;
pub use command_history::*;
pub use command_work::*;
pub use context_shown::*;
pub use daily_usage::{DailyUsageParams, DailyUsageRow, UsageParams};
pub use delta::{Delta, Fragment};
pub use done::Done;
pub use event::{EVENT_VERSION, Event, Seq};
pub use event_body::{EVENT_KINDS, EventBody};
pub use fault::{Fault, FaultClass};
pub use fleet::{FleetCounts, FleetHistory};
pub use fleet_node::{FleetNode, NodeKeyParams, NodeKeyRow, PlaceParams, Placing, ResumeParams};
pub use grant::{ABSENT, CHANGED_RULE, Grant, Reach, SharedPlace, VERSION};
pub use hanging::HangingFiles;
pub use ids::{AppendId, ApprovalId, CallId, InputId, ParseIdError, SessionId, ToolCallId, TurnId};
pub use kept::{BlobParams, BlobPart};
pub use limits::{
    Budget, BudgetChange, Latency, LoopLimits, OnDeny, OnLimit, PermissionMode, Planning, Preset,
    SandboxLevel, ThinkingLevel, ToolProtocol,
};
pub use listing::{ListPlace, Listed, SortBy, SortKey};
pub use log_tail::{LogParams, LogTail};
pub use model_row::{
    CircuitState, CredentialHealth, CredentialStatus, LastCall, ModelStatus, RateBucket, RateKind,
};
pub use named::{from_named, kind_of, without_types};
pub use nearest::nearest;
pub use node_status::NodeStatus;
pub use open_approval::OpenApproval;
pub use payload_context::*;
pub use payload_files::*;
pub use payload_history::*;
pub use payload_hook::*;
pub use payload_imported::*;
pub use payload_job::*;
pub use payload_plan::*;
pub use payload_prompt::*;
pub use payload_session::*;
pub use payload_side::*;
pub use payload_subagent::*;
pub use payload_todos::*;
pub use payload_turn::*;
pub use principal::Principal;
pub use question::*;
pub use reloaded::Reloaded;
pub use request_item::{RefusedItem, RequestItem};
pub use rule_row::{RemoveRuleParams, RuleRow};
pub use selector::{BadSelector, Selector};
pub use server_row::ServerRow;
pub use stamp::{Stamp, Timestamp};
pub use store_check::StoreCheck;
pub use summary::{Group, QueuedInput, RunState, SessionPlace, Status, Summary, WaitReason};
pub use token::{
    ClearToken, CreateTokenParams, LinkTokenParams, RevokeTokenParams, SignInParams, TokenCreated, TokenLink,
    TokenRights, TokenRow,
};
pub use unique::Unique;
pub use usage::{Price, Usage};
pub use vocabulary::*;
pub use workspace::*;
