//! The routes: each method of the socket with its place.

use crate::query::Query::{self, Flag, Number, Selector, Text, Words};
use crate::shown::{Diagnostics, Nothing, Settings, Shown};
use agentd_protocol::{
    AppliedTo, ApplyParams, ApprovalChanges, ApprovalChangesParams, ApprovalListParams, ApprovalQuestion,
    ApprovalQuestionParams, AuditCheck, AuditPage, AuditParams, Backup, BackupEndParams, BackupPart,
    BackupPartParams, BlobParams, BlobPart, BranchParams, Branched, BulkDone, BulkParams, CancelInputParams,
    CancelTurnParams, CommandRow, ContextShown, CreateParams, CreateTokenParams, Created, DailyUsageParams,
    DailyUsageRow, DecideParams, Decided, DiffParams, Diffed, Done, ExportParams, Exported, FilesParams,
    FleetHistory, FleetNode, ForkParams, ImportParams, LifecycleParams, LinkTokenParams, ListParams,
    LogParams, LogTail, ModelStatus, NodeKeyParams, NodeKeyRow, NodeStatus, OpenApproval, PatchParams,
    PlaceParams, PromptShown, PutBackDone, QueuedInput, RecordedFiles, Reloaded, RemoveRuleParams,
    ResumeParams, RevokeTokenParams, RewindParams, RuleRow, SendParams, Sent, ServerRow, SessionParams,
    StoreCheck, Summary, TokenCreated, TokenLink, TokenRow, ToolRow, UndoParams, UpdateParams, UsageParams,
    UsageRow, WorkspaceListParams, WorkspacePruneParams, WorkspacePruned, WorkspaceRow,
};
use utoipa::ToSchema;

/// The verb of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Get,
    /// Creates or acts.
    Post,
    /// Changes some fields.
    Patch,
    /// Removes.
    Delete,
}

/// How a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// With the method's answer.
    One,
    /// With 201 and the method's answer.
    New,
    /// With `{items}`.
    List,
    /// With `{items, next}`.
    Page,
}

/// A method's place.
#[derive(Debug)]
pub struct Route {
    /// The method of the socket.
    pub method: &'static str,
    /// The verb.
    pub verb: Verb,
    /// The path; its parameters have the names of the method's.
    pub path: &'static str,
    /// How it answers.
    pub shape: Shape,
    /// The parameters in the query. Those of POST and PATCH are in the body instead.
    pub query: &'static [(&'static str, Query)],
    /// The type of the method's parameters.
    pub(crate) params: Shown,
    /// The type of the method's answer, or of an item of it.
    pub(crate) answer: Shown,
}

const fn get<P: ToSchema, A: ToSchema>(
    method: &'static str,
    path: &'static str,
    shape: Shape,
    query: &'static [(&'static str, Query)],
) -> Route {
    Route {
        query,
        ..act::<P, A>(Verb::Get, method, path, shape)
    }
}

const fn act<P: ToSchema, A: ToSchema>(
    verb: Verb,
    method: &'static str,
    path: &'static str,
    shape: Shape,
) -> Route {
    Route {
        method,
        verb,
        path,
        shape,
        query: &[],
        params: Shown::of::<P>(),
        answer: Shown::of::<A>(),
    }
}

use Shape::{List, New, One, Page};
use Verb::{Delete, Patch, Post};

/// All methods with a single answer.
pub const ROUTES: [Route; 65] = [
    act::<CreateParams, Created>(Post, "session.create", "/v1/sessions", New),
    get::<ListParams, Summary>(
        "session.list",
        "/v1/sessions",
        Page,
        &[
            ("all", Flag),
            ("sessions", Words),
            ("states", Words),
            ("labels", Selector),
            ("sort", Text),
            ("ascending", Flag),
            ("search", Text),
            ("limit", Number),
            ("after", Text),
        ],
    ),
    act::<ImportParams, Created>(Post, "session.import", "/v1/imports", New),
    get::<SessionParams, Summary>("session.get", "/v1/sessions/{session}", One, &[]),
    act::<UpdateParams, Done>(Patch, "session.update", "/v1/sessions/{session}", One),
    Route {
        query: &[("reason", Text), ("force", Flag)],
        ..act::<LifecycleParams, Done>(Delete, "session.delete", "/v1/sessions/{session}", One)
    },
    act::<LifecycleParams, Done>(Post, "session.close", "/v1/sessions/{session}/close", One),
    act::<LifecycleParams, Done>(Post, "session.pause", "/v1/sessions/{session}/pause", One),
    act::<ResumeParams, Done>(Post, "session.resume", "/v1/sessions/{session}/resume", One),
    act::<BulkParams, BulkDone>(Post, "session.bulk", "/v1/bulk", One),
    act::<SessionParams, Done>(Post, "session.compact", "/v1/sessions/{session}/compact", One),
    act::<SessionParams, Done>(Post, "session.summarize", "/v1/sessions/{session}/summarize", One),
    act::<ForkParams, Created>(Post, "session.fork", "/v1/sessions/{session}/fork", New),
    act::<RewindParams, PutBackDone>(Post, "session.rewind", "/v1/sessions/{session}/rewind", One),
    act::<UndoParams, PutBackDone>(Post, "session.undo", "/v1/sessions/{session}/undo", One),
    act::<ApplyParams, AppliedTo>(Post, "session.apply", "/v1/sessions/{session}/apply", One),
    act::<BranchParams, Branched>(Post, "session.branch", "/v1/sessions/{session}/branch", One),
    get::<PatchParams, agentd_protocol::Patch>(
        "session.patch",
        "/v1/sessions/{session}/patch",
        One,
        &[("bundle", Text)],
    ),
    get::<DiffParams, Diffed>(
        "session.diff",
        "/v1/sessions/{session}/diff",
        One,
        &[("turn", Text), ("at", Text)],
    ),
    get::<FilesParams, RecordedFiles>(
        "session.files",
        "/v1/sessions/{session}/files",
        One,
        &[("at", Number)],
    ),
    get::<SessionParams, PromptShown>("session.prompt", "/v1/sessions/{session}/prompt", One, &[]),
    get::<SessionParams, CommandRow>("session.commands", "/v1/sessions/{session}/commands", List, &[]),
    get::<SessionParams, ContextShown>("session.context", "/v1/sessions/{session}/context", One, &[]),
    get::<ExportParams, Exported>(
        "session.export",
        "/v1/sessions/{session}/export",
        One,
        &[("after_seq", Number), ("limit", Number)],
    ),
    get::<BlobParams, BlobPart>("session.blob", "/v1/blobs/{name}", One, &[("offset", Number)]),
    act::<SendParams, Sent>(Post, "input.send", "/v1/sessions/{session}/inputs", New),
    get::<SessionParams, QueuedInput>("input.list", "/v1/sessions/{session}/inputs", List, &[]),
    act::<CancelInputParams, Done>(
        Delete,
        "input.cancel",
        "/v1/sessions/{session}/inputs/{input}",
        One,
    ),
    act::<CancelTurnParams, Done>(Post, "turn.cancel", "/v1/sessions/{session}/turns/cancel", One),
    get::<ApprovalListParams, OpenApproval>(
        "approval.list",
        "/v1/approvals",
        List,
        &[("session", Text), ("labels", Selector)],
    ),
    get::<ApprovalChangesParams, ApprovalChanges>(
        "approval.changes",
        "/v1/approvals/{approval}/changes",
        One,
        &[],
    ),
    get::<ApprovalQuestionParams, ApprovalQuestion>(
        "approval.question",
        "/v1/approvals/{approval}/question",
        One,
        &[],
    ),
    act::<DecideParams, Decided>(Post, "approval.decide", "/v1/approvals/{approval}/decision", One),
    get::<Nothing, RuleRow>("rule.list", "/v1/rules", List, &[]),
    act::<RemoveRuleParams, RuleRow>(Delete, "rule.remove", "/v1/rules/{rule}", One),
    get::<Nothing, ModelStatus>("model.list", "/v1/models", List, &[]),
    get::<Nothing, ToolRow>("tool.list", "/v1/tools", List, &[]),
    get::<Nothing, ServerRow>("mcp.list", "/v1/tool-servers", List, &[]),
    get::<UsageParams, UsageRow>(
        "usage.query",
        "/v1/usage",
        List,
        &[("labels", Selector), ("by", Text)],
    ),
    get::<DailyUsageParams, DailyUsageRow>(
        "usage.daily",
        "/v1/usage/daily",
        List,
        &[("labels", Selector), ("by", Text), ("days", Number)],
    ),
    get::<Nothing, FleetHistory>("fleet.history", "/v1/fleet/history", One, &[]),
    get::<AuditParams, AuditPage>(
        "audit.query",
        "/v1/audit",
        One,
        &[
            ("before", Text),
            ("limit", Number),
            ("who", Text),
            ("event", Text),
            ("session", Text),
            ("since", Text),
            ("until", Text),
        ],
    ),
    get::<Nothing, AuditCheck>("audit.verify", "/v1/audit/check", One, &[]),
    act::<CreateTokenParams, TokenCreated>(Post, "token.create", "/v1/tokens", New),
    act::<LinkTokenParams, TokenLink>(Post, "token.link", "/v1/links", New),
    get::<Nothing, TokenRow>("token.list", "/v1/tokens", List, &[]),
    act::<RevokeTokenParams, TokenRow>(Delete, "token.revoke", "/v1/tokens/{name}", One),
    get::<WorkspaceListParams, WorkspaceRow>("workspace.list", "/v1/workspaces", List, &[("measure", Flag)]),
    act::<WorkspacePruneParams, WorkspacePruned>(Post, "workspace.prune", "/v1/workspaces/prune", One),
    get::<Nothing, FleetNode>("node.list", "/v1/nodes", List, &[]),
    act::<PlaceParams, Nothing>(Post, "node.place", "/v1/nodes/{node}/placing", One),
    act::<Nothing, NodeKeyRow>(Post, "node.rotate_key", "/v1/nodes/self/key", One),
    act::<NodeKeyParams, Nothing>(Delete, "node.remove_key", "/v1/nodes/{node}/key", One),
    act::<NodeKeyParams, Nothing>(Post, "node.admit_key", "/v1/nodes/{node}/key/admission", One),
    get::<Nothing, NodeStatus>("node.status", "/v1/nodes/self", One, &[]),
    get::<Nothing, Diagnostics>("node.diagnostics", "/v1/nodes/self/diagnostics", One, &[]),
    get::<Nothing, Settings>("node.config", "/v1/nodes/self/config", One, &[]),
    get::<LogParams, LogTail>("node.log", "/v1/nodes/self/log", One, &[("lines", Number)]),
    get::<Nothing, StoreCheck>("node.check", "/v1/nodes/self/check", One, &[]),
    act::<Nothing, Reloaded>(Post, "node.reload", "/v1/nodes/self/reload", One),
    act::<Nothing, Nothing>(Post, "node.drain", "/v1/nodes/self/drain", One),
    act::<Nothing, Nothing>(Post, "node.stop", "/v1/nodes/self/stop", One),
    act::<Nothing, Backup>(Post, "node.backup", "/v1/nodes/self/backups", New),
    get::<BackupPartParams, BackupPart>(
        "node.backup_part",
        "/v1/nodes/self/backups/{backup}/part",
        One,
        &[("path", Text), ("offset", Number)],
    ),
    act::<BackupEndParams, Nothing>(Delete, "node.backup_end", "/v1/nodes/self/backups/{backup}", One),
];

/// The methods that push, and what they are here.
pub const STREAMS: [(&str, &str); 3] = [
    ("session.attach", "/v1/sessions/{session}/events"),
    ("fleet.watch", "/v1/events"),
    ("session.detach", "the client closes the stream"),
];

impl Route {
    /// Whether its parameters are in the body.
    pub(crate) const fn has_body(&self) -> bool {
        matches!(self.verb, Verb::Post | Verb::Patch)
    }

    /// Whether the method has an idempotency key of its own, which is in the store.
    pub(crate) fn keyed(&self) -> bool {
        [
            "session.create",
            "session.import",
            "session.fork",
            "session.rewind",
            "session.undo",
            "input.send",
        ]
        .contains(&self.method)
    }

    /// Whether its answer holds a secret, which agentd never keeps.
    pub(crate) fn secret(&self) -> bool {
        ["token.create", "token.link"].contains(&self.method)
    }

    /// Whether a request may have an `Idempotency-Key`.
    pub(crate) fn takes_key(&self) -> bool {
        self.verb == Verb::Post && !self.secret()
    }

    /// Whether it makes an input, whose turn the client may wait for.
    pub(crate) fn waits(&self) -> bool {
        self.content().is_some()
    }

    /// The parameters in the path.
    pub(crate) fn path_params(&self) -> impl Iterator<Item = &'static str> + Clone {
        let parts = self.path.split('/');
        parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// The parameter that is a list of content blocks, for which a plain text will do.
    pub(crate) fn content(&self) -> Option<&'static str> {
        match self.method {
            "session.create" => Some("prompt"),
            "input.send" => Some("content"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_socket_method_has_one_route() {
        let here = ROUTES.iter().map(|route| route.method);
        let here: Vec<&str> = here.chain(STREAMS.map(|(method, _)| method)).collect();
        let socket: BTreeSet<&str> = agentd_api::methods().map(|(method, _)| method).collect();
        assert_eq!(here.iter().copied().collect::<BTreeSet<_>>(), socket);
        assert_eq!(here.len(), socket.len(), "a method has two places");
    }

    #[test]
    fn no_route_has_two_methods() {
        let places: BTreeSet<String> = ROUTES
            .iter()
            .map(|route| format!("{:?} {}", route.verb, route.path))
            .collect();
        assert_eq!(places.len(), ROUTES.len());
    }

    #[test]
    fn every_route_is_documented() {
        let page = include_str!("../../../docs/http.md");
        for route in &ROUTES {
            let mut rows = page.lines();
            let row = rows.find(|row| row.starts_with(&format!("| `{}` |", route.path)));
            let place = format!(
                "{} `{}`",
                format!("{:?}", route.verb).to_uppercase(),
                route.method
            );
            assert!(
                row.is_some_and(|row| row.contains(&place)),
                "{place} {}",
                route.path
            );
        }
    }
}
