//! Implements every method of the control protocol once, for every codec over it (the Unix socket now, HTTP later).
//!
//! Checks external input (fields, sizes, references to sessions, scopes), looks up idempotency keys, sends commands to the
//! loop supervisor and reads to the store, and turns every error into a [`agentd_protocol::Fault`].
//!
//! Invariants: I1 (an answer to a command comes only when it is durable), I2 (an attach and a watch have no gap and no
//! duplicate: the feed first, then the log, then live), I6 (every wait has a deadline, every queue a bound, and reading
//! never wakes a session), I7 (no session without a gate: if the gate does not answer, the request is refused).
//!
//! Flow: [`Api::call`] -> parameters -> scope -> key -> actor -> answer or fault; [`Api::attach`] -> [`Attachment::run`].

mod actors;
mod answers;
mod api;
mod approval_changes;
mod approvals;
mod attach;
mod audit;
mod backup;
mod batch;
mod bulk;
mod carried;
mod claims;
mod commands;
mod compare;
mod context;
mod create;
mod crowd;
mod daily;
mod directories;
mod dispatch;
mod family;
mod fleet;
mod fork;
mod history;
mod idempotency;
mod images;
mod importing;
mod inputs;
mod lifecycle;
mod live;
mod lowered;
mod mapping;
mod mentioned;
mod methods;
mod node_calls;
mod node_keys;
mod node_log;
mod offered_tools;
mod params;
mod past;
mod past_below;
mod past_files;
mod peers;
mod placing;
mod prompting;
mod reads;
mod recorded;
mod relayed;
mod replay;
mod rights;
mod rules;
mod settings_tag;
mod sight;
mod sign_in;
mod subagent;
mod token_methods;
mod token_words;
mod tokens;
mod transfer;
mod transfers;
mod turns;
mod typed;
mod update;
mod uploads;
mod usage;
mod validate;
mod watch;
mod words;
mod work_origin;
mod work_out;
mod workspace_methods;
mod workspaces;

pub use actors::{ActorRow, IndexRow};
pub use api::{Api, ConnectionCount, NodeFacts, NodeView, Parts, Reload, StopRequest};
pub use attach::Attachment;
pub use backup::STAGING;
pub use daily::DailyUsage;
pub use idempotency::{check_key, key_busy, key_reused};
pub use live::{Push, Pushed};
pub use methods::{Scope, all as methods};
pub use params::read_params;
pub use peers::{Fragments, NODE_GONE, PeerCall, PeerFollow, Peers, Relay, Statuses};
pub use subagent::SubagentApi;
pub use watch::Watching;
pub use workspaces::making_limits;
