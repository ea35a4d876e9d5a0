//! The control protocol's parameters and answers, one struct per method, and what is pushed.
//!
//! Every parameter struct refuses unknown fields, so a typing error is a fault and not a silent default.

use crate::block::Block;
use crate::event::Seq;
use crate::ids::{ApprovalId, InputId, SessionId, TurnId};
use crate::limits::{Budget, PermissionMode, Preset};
use crate::open_approval::OpenApproval;
use crate::selector::Selector;
use crate::stamp::Timestamp;
use crate::summary::Status;
use crate::vocabulary::{Decision, Delivery, Labels, Scope};
use serde::{Deserialize, Serialize};

/// The lowest and highest protocol version this build speaks.
pub const PROTOCOL_VERSIONS: (u32, u32) = (1, 1);

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$fdoc])* #[serde(skip_serializing_if = "crate::command::is_default")] pub $field: $ty),* })*
    };
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

params! {
    /// `session.create`.
    CreateParams {
        /// The first input; absent: the session starts idle.
        prompt: Option<Vec<Block>>,
        /// What people call it; default: made from the prompt.
        title: Option<String>,
        /// The absolute working directory.
        workdir: String,
        /// A configured model's name; default: the node's.
        model: Option<String>,
        /// The permission mode; default: the node's.
        mode: Option<PermissionMode>,
        /// Labels.
        labels: Labels,
        /// Loop settings; default: the node's.
        preset: Option<Preset>,
        /// Steps in a turn.
        max_turns: Option<i32>,
        /// How hard the model is asked to think; default: as the model is configured.
        thinking: Option<crate::limits::ThinkingLevel>,
        /// Budget; default: the node's.
        budget: Option<Budget>,
        /// Tools offered; default: all that are not wholly denied.
        tools: Option<Vec<String>>,
        /// Rules: `allow Tool(x)`, `deny Tool(x)`, `ask Tool(x)`.
        rules: Vec<String>,
        /// The custom agent that it runs.
        agent: Option<String>,
        /// Replaces the base prompt.
        system_prompt: Option<String>,
        /// Appended to the system prompt.
        append_system_prompt: Option<String>,
        /// The prompt is typed by a person: `@path` attaches files, `/plan` and the like are commands.
        commands: bool,
        /// Nobody watches: approvals are denied after `permission.unattended_timeout`, limits are not asked about.
        headless: bool,
        /// Idempotency key.
        key: Option<String>,
        /// The session that creates it.
        parent: Option<SessionId>,
    }
    /// Methods that take a session and nothing else.
    SessionParams {
        /// An id, an unambiguous prefix of either end, or a name.
        session: String,
    }
    /// `session.list`.
    ListParams {
        /// Closed ones, too.
        all: bool,
        /// Only these states (`running` matches `running(model)`).
        states: Vec<String>,
        /// Only sessions with these labels: a selector, or a map of labels to carry.
        labels: Selector,
        /// At most this many; 0: the node's limit.
        limit: u32,
        /// The next page: only sessions after this one, in the order of the list.
        after: Option<SessionId>,
    }
    /// `session.update`.
    UpdateParams {
        /// Which.
        session: String,
        /// New title.
        title: Option<String>,
        /// New model.
        model: Option<String>,
        /// New mode.
        mode: Option<PermissionMode>,
        /// New labels.
        labels: Option<Labels>,
        /// New budget.
        budget: Option<Budget>,
    }
    /// `session.close`, `session.delete`, `session.pause`, `session.resume`.
    LifecycleParams {
        /// Which.
        session: String,
        /// Why.
        reason: Option<String>,
        /// Also while it runs.
        force: bool,
    }
    /// `input.send`.
    SendParams {
        /// Which.
        session: String,
        /// What.
        content: Vec<Block>,
        /// How it joins; default: start, or steer while a turn runs.
        delivery: Option<Delivery>,
        /// Idempotency key.
        key: Option<String>,
        /// The model for the turn it starts.
        model: Option<String>,
        /// The custom agent that shall do it, as a sub-agent.
        agent: Option<String>,
        /// It is typed by a person: `@path` attaches files, `/plan` and the like are commands.
        commands: bool,
    }
    /// `input.cancel`.
    CancelInputParams {
        /// Which session.
        session: String,
        /// Which input.
        input: Option<InputId>,
    }
    /// `turn.cancel`.
    CancelTurnParams {
        /// Which session.
        session: String,
        /// Refused with `conflict` when another turn runs.
        expect_turn: Option<TurnId>,
        /// Why.
        reason: Option<String>,
        /// Do not let commands end by themselves: KILL at once, background jobs, too.
        kill: bool,
    }
    /// `approval.list`.
    ApprovalListParams {
        /// Only this session's.
        session: Option<String>,
        /// Only of sessions with these labels: a selector, or a map of labels to carry.
        labels: Selector,
    }
    /// `approval.decide`.
    DecideParams {
        /// The approval, an unambiguous prefix of it, or a session with exactly one open.
        approval: String,
        /// allow, deny or answer.
        decision: Option<Decision>,
        /// How far an allow reaches.
        scope: Scope,
        /// The answer to a question or a choice.
        answer: Option<String>,
        /// Words for the model.
        message: Option<String>,
    }
    /// `session.attach`.
    AttachParams {
        /// Which.
        session: String,
        /// Events after this one.
        after_seq: Option<Seq>,
        /// The last N events; wins over `after_seq`.
        tail: Option<u32>,
        /// Deltas, too.
        deltas: bool,
        /// This viewer may answer approvals (headless sessions wait for it).
        decides: bool,
    }
    /// `session.detach`.
    DetachParams {
        /// Which subscription.
        sub: u64,
    }
    /// `fleet.watch`.
    WatchParams {
        /// Only of sessions with these labels: a selector, or a map of labels to carry.
        labels: Selector,
        /// Only these event types, or families of them (`tool`).
        kinds: Vec<String>,
        /// Events after this cursor; absent: from now on.
        after: Option<u64>,
        /// Stop at the present end instead of following.
        once: bool,
    }
    /// `session.export`.
    ExportParams {
        /// Which.
        session: String,
        /// Events after this one.
        after_seq: Seq,
        /// At most this many; 0: a page of the node's choice.
        limit: u32,
    }
    /// `session.import`: the JSON lines of an export. Long ones come in pages that share a key. The lines are history:
    /// what the session may do is asked for here (in the last page), as in `session.create`, and never read from them.
    ImportParams {
        /// JSON lines.
        lines: Vec<String>,
        /// Idempotency key; names the import when it has several pages.
        key: Option<String>,
        /// Another page follows; the answer to this one is null.
        more: bool,
        /// Where the lines come from, in words: usually a file's name.
        source: Option<String>,
        /// The absolute working directory.
        workdir: String,
        /// What people call it; default: "imported: " and the source.
        title: Option<String>,
        /// A configured model's name; default: the node's.
        model: Option<String>,
        /// The permission mode; default: the node's.
        mode: Option<PermissionMode>,
        /// Labels.
        labels: Labels,
        /// Loop settings; default: the node's.
        preset: Option<Preset>,
        /// Steps in a turn.
        max_turns: Option<i32>,
        /// How hard the model is asked to think; default: as the model is configured.
        thinking: Option<crate::limits::ThinkingLevel>,
        /// Budget; default: the node's.
        budget: Option<Budget>,
        /// Tools offered; default: all that are not wholly denied.
        tools: Option<Vec<String>>,
        /// Rules: `allow Tool(x)`, `deny Tool(x)`, `ask Tool(x)`.
        rules: Vec<String>,
        /// The custom agent that it runs.
        agent: Option<String>,
    }
    /// `usage.query`.
    UsageParams {
        /// Only of sessions with these labels: a selector, or a map of labels to carry.
        labels: Selector,
        /// Group by `model`, `session`, or a label's name.
        by: Option<String>,
    }
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),* })*
    };
}

answers! {
    /// Answer of `session.create`.
    Created {
        /// The new session.
        session: SessionId,
        /// Its name.
        name: String,
        /// The first input, if there was a prompt.
        input: Option<InputId>,
        /// The log's head.
        seq: Seq,
        /// What the person who typed it should know, and no fault.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    }
    /// Answer of `input.send`: it is durable.
    Sent {
        /// Its id; zero when the text was a command and became no input.
        input: InputId,
        /// Where in the log.
        seq: Seq,
        /// What a command answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// What the person who typed it should know, and no fault.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    }
    /// Answer of `session.attach` and `fleet.watch`.
    Subscribed {
        /// The number of the subscription.
        sub: u64,
        /// The log's head now; for the fleet the last cursor now.
        head: Seq,
    }
    /// Pushed once a `fleet.watch` has caught up.
    CaughtUp {
        /// The last cursor that was looked at.
        cursor: u64,
    }
    /// Answer of `session.export`.
    Exported {
        /// The exact stored lines.
        lines: Vec<String>,
        /// The log's head now.
        head: Seq,
    }
    /// Pushed once an attach has caught up.
    Synced {
        /// The last seq replayed.
        seq: Seq,
        /// The derived state.
        status: Status,
        /// Open approvals.
        approvals: Vec<OpenApproval>,
        /// The current partial text of a streaming model call.
        partial: Option<String>,
    }
    /// Pushed when a viewer was too slow: deltas were dropped, events come from the log.
    Lagged {
        /// Events are read from the log after this one.
        after_seq: Seq,
    }
    /// Answer of `node.status`.
    NodeStatus {
        /// The node's name.
        node: String,
        /// Version of the program.
        version: String,
        /// Process id.
        pid: u32,
        /// Since when.
        started_at: Timestamp,
        /// Whether it drains.
        draining: bool,
        /// The control socket.
        socket: String,
        /// The store's URL without secrets.
        store: String,
        /// The data directory.
        data_dir: String,
        /// The default model and why.
        model: String,
        /// The level of the sandbox and the number of its gaps; empty from a daemon that does not say it.
        #[serde(default)]
        sandbox: String,
        /// Sessions with an actor.
        hot: u64,
        /// Sessions in the store, closed ones included.
        sessions: u64,
        /// Open connections.
        connections: u64,
        /// Restarts of singleton actors since the start.
        restarts: u64,
        /// File systems in which calls hang.
        #[serde(default)]
        hanging: Vec<crate::hanging::HangingFiles>,
    }
    /// One row of `tool.list`.
    ToolRow {
        /// Canonical name.
        name: String,
        /// Other names it answers to.
        aliases: Vec<String>,
        /// What it does to the world.
        effect: crate::call::EffectClass,
        /// What it is for.
        description: String,
        /// The JSON Schema of its arguments.
        schema: serde_json::Value,
    }
    /// One row of `usage.query`.
    UsageRow {
        /// The group.
        group: String,
        /// Sessions in it.
        sessions: u64,
        /// Steps.
        steps: u64,
        /// Tokens.
        usage: crate::limits::Usage,
        /// US dollars.
        cost_usd: f64,
    }
    /// Answer of `approval.decide`.
    Decided {
        /// Which.
        approval: ApprovalId,
        /// Whose.
        session: SessionId,
        /// The log's head.
        seq: Seq,
    }
}
