//! The routes: each method of the socket with its place.

use crate::query::Query::{self, Flag, Number, Selector, Text, Words};

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
}

const fn get(
    method: &'static str,
    path: &'static str,
    shape: Shape,
    query: &'static [(&'static str, Query)],
) -> Route {
    Route {
        method,
        verb: Verb::Get,
        path,
        shape,
        query,
    }
}

const fn act(verb: Verb, method: &'static str, path: &'static str, shape: Shape) -> Route {
    Route {
        method,
        verb,
        path,
        shape,
        query: &[],
    }
}

use Shape::{List, New, One, Page};
use Verb::{Delete, Patch, Post};

/// All methods with a single answer.
pub const ROUTES: [Route; 43] = [
    act(Post, "session.create", "/v1/sessions", New),
    get(
        "session.list",
        "/v1/sessions",
        Page,
        &[
            ("all", Flag),
            ("states", Words),
            ("labels", Selector),
            ("limit", Number),
            ("after", Text),
        ],
    ),
    act(Post, "session.import", "/v1/imports", New),
    get("session.get", "/v1/sessions/{session}", One, &[]),
    act(Patch, "session.update", "/v1/sessions/{session}", One),
    Route {
        query: &[("reason", Text), ("force", Flag)],
        ..act(Delete, "session.delete", "/v1/sessions/{session}", One)
    },
    act(Post, "session.close", "/v1/sessions/{session}/close", One),
    act(Post, "session.pause", "/v1/sessions/{session}/pause", One),
    act(Post, "session.resume", "/v1/sessions/{session}/resume", One),
    act(Post, "session.compact", "/v1/sessions/{session}/compact", One),
    act(Post, "session.summarize", "/v1/sessions/{session}/summarize", One),
    act(Post, "session.fork", "/v1/sessions/{session}/fork", New),
    act(Post, "session.rewind", "/v1/sessions/{session}/rewind", One),
    act(Post, "session.undo", "/v1/sessions/{session}/undo", One),
    get(
        "session.diff",
        "/v1/sessions/{session}/diff",
        One,
        &[("turn", Text)],
    ),
    get("session.prompt", "/v1/sessions/{session}/prompt", One, &[]),
    get(
        "session.export",
        "/v1/sessions/{session}/export",
        One,
        &[("after_seq", Number), ("limit", Number)],
    ),
    get("session.blob", "/v1/blobs/{name}", One, &[("offset", Number)]),
    act(Post, "input.send", "/v1/sessions/{session}/inputs", New),
    get("input.list", "/v1/sessions/{session}/inputs", List, &[]),
    act(
        Delete,
        "input.cancel",
        "/v1/sessions/{session}/inputs/{input}",
        One,
    ),
    act(Post, "turn.cancel", "/v1/sessions/{session}/turns/cancel", One),
    get(
        "approval.list",
        "/v1/approvals",
        List,
        &[("session", Text), ("labels", Selector)],
    ),
    act(Post, "approval.decide", "/v1/approvals/{approval}/decision", One),
    get("rule.list", "/v1/rules", List, &[]),
    act(Delete, "rule.remove", "/v1/rules/{rule}", One),
    get("model.list", "/v1/models", List, &[]),
    get("tool.list", "/v1/tools", List, &[]),
    get("mcp.list", "/v1/tool-servers", List, &[]),
    get(
        "usage.query",
        "/v1/usage",
        List,
        &[("labels", Selector), ("by", Text)],
    ),
    act(Post, "token.create", "/v1/tokens", New),
    get("token.list", "/v1/tokens", List, &[]),
    act(Delete, "token.revoke", "/v1/tokens/{name}", One),
    get("node.status", "/v1/nodes/self", One, &[]),
    get("node.diagnostics", "/v1/nodes/self/diagnostics", One, &[]),
    get("node.config", "/v1/nodes/self/config", One, &[]),
    get("node.check", "/v1/nodes/self/check", One, &[]),
    act(Post, "node.reload", "/v1/nodes/self/reload", One),
    act(Post, "node.drain", "/v1/nodes/self/drain", One),
    act(Post, "node.stop", "/v1/nodes/self/stop", One),
    act(Post, "node.backup", "/v1/nodes/self/backups", New),
    get(
        "node.backup_part",
        "/v1/nodes/self/backups/{backup}/part",
        One,
        &[("path", Text), ("offset", Number)],
    ),
    act(Delete, "node.backup_end", "/v1/nodes/self/backups/{backup}", One),
];

/// The methods that push, and what they are here.
pub const STREAMS: [(&str, &str); 3] = [
    ("session.attach", "/v1/sessions/{session}/events"),
    ("fleet.watch", "/v1/events"),
    ("session.detach", "the client closes the stream"),
];

impl Route {
    /// Whether the method has an idempotency key.
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
    fn every_method_of_the_socket_has_one_place() {
        let here = ROUTES.iter().map(|route| route.method);
        let here: Vec<&str> = here.chain(STREAMS.map(|(method, _)| method)).collect();
        let socket: BTreeSet<&str> = agentd_api::methods().map(|(method, _)| method).collect();
        assert_eq!(here.iter().copied().collect::<BTreeSet<_>>(), socket);
        assert_eq!(here.len(), socket.len(), "a method has two places");
    }

    #[test]
    fn no_place_has_two_methods() {
        let places: BTreeSet<String> = ROUTES
            .iter()
            .map(|route| format!("{:?} {}", route.verb, route.path))
            .collect();
        assert_eq!(places.len(), ROUTES.len());
    }

    #[test]
    fn every_place_is_on_the_page() {
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
