//! Parameters and answers of the control protocol, one struct per method, and the push messages.
//!
//! Every parameter struct rejects unknown fields, so a typo is a fault and not a silent default.

use crate::block::Block;
use crate::event::Seq;
use crate::ids::{ApprovalId, InputId, SessionId, TurnId};
use crate::limits::{Budget, BudgetChange, PermissionMode, Preset};
use crate::listing::{ListPlace, SortBy};
use crate::open_approval::OpenApproval;
use crate::selector::Selector;
use crate::summary::Status;
use crate::vocabulary::{Decision, Delivery, Labels, Scope};
use serde::{Deserialize, Serialize};

/// The lowest and highest protocol version this build speaks.
pub const PROTOCOL_VERSIONS: (u32, u32) = (1, 1);

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
        /// The first input; if absent, the session starts idle.
        prompt: Option<Vec<Block>>,
        /// The title that people see; default: derived from the prompt.
        title: Option<String>,
        /// The absolute working directory.
        #[cfg_attr(feature = "schema", schema(required = true))]
        workdir: String,
        /// A configured model's name; default: the node's.
        model: Option<String>,
        /// The permission mode; default: the node's.
        mode: Option<PermissionMode>,
        /// Labels.
        labels: Labels,
        /// Labels that a node must have to run the session and its sub-agents.
        requires: Labels,
        /// Loop settings; default: the node's.
        preset: Option<Preset>,
        /// The maximum number of steps per turn.
        max_turns: Option<i32>,
        /// How hard the model thinks; default: the model's configuration.
        thinking: Option<crate::limits::ThinkingLevel>,
        /// Budget; default: the node's.
        budget: Option<Budget>,
        /// The offered tools; default: all that no rule denies entirely.
        tools: Option<Vec<String>>,
        /// Rules: `allow Tool(x)`, `deny Tool(x)`, `ask Tool(x)`.
        rules: Vec<String>,
        /// The custom agent to run.
        agent: Option<String>,
        /// Replaces the base prompt.
        system_prompt: Option<String>,
        /// Appended to the system prompt.
        append_system_prompt: Option<String>,
        /// A person typed the prompt: `@path` attaches files, and `/plan` and the like are commands.
        commands: bool,
        /// Unattended: approvals are denied after `permission.unattended_timeout`, and limits raise no question.
        headless: bool,
        /// Idempotency key.
        key: Option<String>,
        /// The session that creates it.
        parent: Option<SessionId>,
        /// Where the session works; default: the node's setting for `workdir`.
        workspace: Option<crate::workspace::WorkspaceRequest>,
        /// Works in `workdir` even if it is a protected place, such as `~/.ssh`. Refused to tokens.
        force: bool,
    }
    /// Parameters of methods that take only a session.
    SessionParams {
        /// An id, an unambiguous prefix of either end, or a name.
        session: String,
    }
    /// `session.list`.
    ListParams {
        /// Also lists closed sessions.
        all: bool,
        /// Only these sessions, at most 200 ids; none: all.
        sessions: Vec<SessionId>,
        /// Only sessions in these states (`running` matches `running(model)`).
        states: Vec<String>,
        /// Only sessions with these labels: a selector, or a map of required labels.
        labels: Selector,
        /// The maximum number of rows; 0: the node's limit.
        limit: u32,
        /// The order.
        sort: SortBy,
        /// The smallest first; absent: the largest, so that the newest is first.
        ascending: bool,
        /// Only sessions in which each of these words occurs: in the title, the id, the state, its reason, the model, the
        /// directory or the value of a label. At most 1,000 characters; upper and lower case are the same.
        #[cfg_attr(feature = "schema", schema(max_length = 1000))]
        search: String,
        /// For the next page: the last session of this one, and with an order other than `created` a colon and its value in
        /// that order (over HTTP: `next`).
        #[cfg_attr(feature = "schema", schema(value_type = Option<String>, pattern = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:.*)?$"))]
        after: Option<ListPlace>,
    }
    /// `session.update`.
    UpdateParams {
        /// The session to change.
        session: String,
        /// The `settings_tag` that the session must still have.
        expect: Option<String>,
        /// New title.
        title: Option<String>,
        /// New model.
        model: Option<String>,
        /// New mode.
        mode: Option<PermissionMode>,
        /// New labels.
        labels: Option<Labels>,
        /// The limits of the budget that change.
        budget: Option<BudgetChange>,
    }
    /// `session.close`, `session.delete`, `session.pause`.
    LifecycleParams {
        /// The session.
        session: String,
        /// The reason.
        reason: Option<String>,
        /// Acts even while the session is running.
        force: bool,
    }
    /// `input.send`.
    SendParams {
        /// The session that gets the input.
        session: String,
        /// The input.
        #[cfg_attr(feature = "schema", schema(required = true))]
        content: Vec<Block>,
        /// How the input joins; default: it starts a turn, or steers the running one.
        delivery: Option<Delivery>,
        /// Idempotency key.
        key: Option<String>,
        /// The model for the turn that the input starts.
        model: Option<String>,
        /// The custom agent that does the work, as a sub-agent.
        agent: Option<String>,
        /// A person typed the input: `@path` attaches files, and `/plan` and the like are commands.
        commands: bool,
    }
    /// `input.cancel`.
    CancelInputParams {
        /// The session.
        session: String,
        /// The input.
        input: Option<InputId>,
    }
    /// `turn.cancel`.
    CancelTurnParams {
        /// The session.
        session: String,
        /// The turn that must be running; otherwise the method fails with `conflict`.
        expect_turn: Option<TurnId>,
        /// The reason.
        reason: Option<String>,
        /// Kills commands at once instead of letting them exit, and background jobs as well.
        kill: bool,
    }
    /// `approval.list`.
    ApprovalListParams {
        /// Only approvals of this session.
        session: Option<String>,
        /// Only approvals of sessions with these labels: a selector, or a map of required labels.
        labels: Selector,
    }
    /// `approval.changes`.
    ApprovalChangesParams {
        /// The approval, an unambiguous prefix of it, or a session with exactly one open approval.
        approval: String,
    }
    /// `approval.decide`.
    DecideParams {
        /// The approval, an unambiguous prefix of it, or a session with exactly one open approval.
        approval: String,
        /// `allow`, `deny` or `answer`.
        #[cfg_attr(feature = "schema", schema(required = true))]
        decision: Option<Decision>,
        /// How far an `allow` reaches.
        scope: Scope,
        /// The answer to a question or a choice.
        answer: Option<String>,
        /// A message for the model.
        message: Option<String>,
        /// The hash of the question that the person saw, from `approval.question`; all but `deny` need it.
        shown: Option<String>,
        /// Instead of `shown`: a program decides by a rule of its own. The log says so.
        policy: bool,
    }
    /// `session.attach`.
    AttachParams {
        /// The session.
        session: String,
        /// Sends the events after this one.
        after_seq: Option<Seq>,
        /// Sends the last N events; overrides `after_seq`.
        tail: Option<u32>,
        /// Sends deltas as well.
        deltas: bool,
        /// This viewer may answer approvals; while it is attached, headless sessions wait for an answer.
        decides: bool,
    }
    /// `session.detach`.
    DetachParams {
        /// The subscription to end.
        sub: u64,
    }
    /// `fleet.watch`.
    WatchParams {
        /// Only events of sessions with these labels: a selector, or a map of required labels.
        labels: Selector,
        /// Only events of these types or families of types (`tool`).
        kinds: Vec<String>,
        /// Sends the events after this cursor; absent: only new ones.
        after: Option<u64>,
        /// Stops at the current end instead of following.
        once: bool,
    }
    /// `session.export`.
    ExportParams {
        /// The session.
        session: String,
        /// Exports the events after this one.
        after_seq: Seq,
        /// The maximum number of events; 0: a page size that the node chooses.
        limit: u32,
    }
    /// `session.import`: the JSON lines of an export, if long in pages that share a key. The lines are history:
    /// permissions come from the fields here (in the last page), as in `session.create`, and never from the lines.
    ImportParams {
        /// JSON lines.
        lines: Vec<String>,
        /// Idempotency key; names the import when it has several pages.
        key: Option<String>,
        /// Another page follows; this page is answered with null.
        more: bool,
        /// Where the lines come from, in free text: usually a file name.
        source: Option<String>,
        /// The absolute working directory.
        #[cfg_attr(feature = "schema", schema(required = true))]
        workdir: String,
        /// The title that people see; default: "imported: " and the source.
        title: Option<String>,
        /// A configured model's name; default: the node's.
        model: Option<String>,
        /// The permission mode; default: the node's.
        mode: Option<PermissionMode>,
        /// Labels.
        labels: Labels,
        /// Loop settings; default: the node's.
        preset: Option<Preset>,
        /// The maximum number of steps per turn.
        max_turns: Option<i32>,
        /// How hard the model thinks; default: the model's configuration.
        thinking: Option<crate::limits::ThinkingLevel>,
        /// Budget; default: the node's.
        budget: Option<Budget>,
        /// The offered tools; default: all that no rule denies entirely.
        tools: Option<Vec<String>>,
        /// Rules: `allow Tool(x)`, `deny Tool(x)`, `ask Tool(x)`.
        rules: Vec<String>,
        /// The custom agent to run.
        agent: Option<String>,
    }
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),* })*
    };
}

answers! {
    /// Answer of `session.create`.
    Created {
        /// The new session.
        session: SessionId,
        /// The title of the session.
        name: String,
        /// The first input, if there was a prompt.
        input: Option<InputId>,
        /// The log's head.
        seq: Seq,
        /// Notices for the person who typed the prompt; they are not faults.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    }
    /// Answer of `input.send`: the input is durable.
    Sent {
        /// The id of the input; zero if the text was a command and became no input.
        input: InputId,
        /// The position of the input in the log.
        seq: Seq,
        /// The answer, if the text was a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<String>,
        /// Notices for the person who typed the input; they are not faults.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    }
    /// Answer of `session.attach` and `fleet.watch`.
    Subscribed {
        /// The id of the subscription.
        sub: u64,
        /// The current head of the log; for the fleet, the current last cursor.
        head: Seq,
    }
    /// Pushed when a `fleet.watch` has caught up.
    CaughtUp {
        /// The last cursor that the watch has read.
        cursor: u64,
    }
    /// Answer of `session.export`.
    Exported {
        /// The lines exactly as stored.
        lines: Vec<String>,
        /// The current head of the log.
        head: Seq,
    }
    /// Pushed when an attach has caught up.
    Synced {
        /// The last seq replayed.
        seq: Seq,
        /// The derived state.
        status: Status,
        /// Open approvals.
        approvals: Vec<OpenApproval>,
        /// The text that the running model call has streamed so far.
        partial: Option<String>,
    }
    /// Pushed when a viewer was too slow: its deltas were dropped, and it gets its events from the log.
    Lagged {
        /// The viewer continues with the events after this one.
        after_seq: Seq,
    }
    /// One row of `tool.list`.
    ToolRow {
        /// Canonical name.
        name: String,
        /// Other accepted names.
        aliases: Vec<String>,
        /// The class of its effects.
        effect: crate::call::EffectClass,
        /// The purpose of the tool.
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
        usage: crate::usage::Usage,
        /// US dollars.
        cost_usd: f64,
    }
    /// Answer of `approval.changes`.
    ApprovalChanges {
        /// Whether agentd could compare; not for questions without a call, and not for the tools of tool servers.
        compared: bool,
        /// What differs from what was asked about, such as `the file a.sh`: an `allow` is void then.
        changes: Vec<String>,
    }
    /// Answer of `approval.decide`.
    Decided {
        /// The decided approval.
        approval: ApprovalId,
        /// The session of the approval.
        session: SessionId,
        /// The log's head.
        seq: Seq,
    }
}
