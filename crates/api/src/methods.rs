//! The names of all methods, and the scope that each one needs.

use agentd_protocol::{Fault, nearest};
use std::collections::BTreeSet;
use std::fmt;

/// A permission of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Read sessions and the node's state.
    Read,
    /// Create, send, cancel, close.
    Steer,
    /// Answer approvals.
    Approve,
    /// Import logs from elsewhere.
    Import,
    /// Stop the daemon.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Steer, Self::Approve, Self::Import, Self::Admin];

    /// Parses the name on the wire.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Steer => "steer",
            Self::Approve => "approve",
            Self::Import => "import",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a method reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Sessions that the caller sees, or settings that all share.
    Sessions,
    /// The whole daemon. Refused to a token that is limited to labels.
    Node,
}

use Reach::{Node, Sessions};

/// Methods with a single answer.
pub(crate) const METHODS: [(&str, Scope, Reach); 66] = [
    ("session.create", Scope::Steer, Sessions),
    ("session.get", Scope::Read, Sessions),
    ("session.list", Scope::Read, Sessions),
    ("session.prompt", Scope::Read, Sessions),
    ("session.commands", Scope::Read, Sessions),
    ("session.context", Scope::Read, Sessions),
    ("session.update", Scope::Steer, Sessions),
    ("session.close", Scope::Steer, Sessions),
    ("session.delete", Scope::Steer, Sessions),
    ("session.bulk", Scope::Steer, Sessions),
    ("session.pause", Scope::Steer, Sessions),
    ("session.resume", Scope::Steer, Sessions),
    ("session.compact", Scope::Steer, Sessions),
    ("session.summarize", Scope::Steer, Sessions),
    ("session.export", Scope::Read, Sessions),
    ("session.blob", Scope::Read, Sessions),
    ("session.import", Scope::Import, Sessions),
    ("session.diff", Scope::Read, Sessions),
    ("session.files", Scope::Read, Sessions),
    ("session.undo", Scope::Steer, Sessions),
    ("session.rewind", Scope::Steer, Sessions),
    ("session.fork", Scope::Steer, Sessions),
    ("session.apply", Scope::Approve, Sessions),
    ("session.branch", Scope::Approve, Sessions),
    ("session.patch", Scope::Read, Sessions),
    ("input.send", Scope::Steer, Sessions),
    ("input.cancel", Scope::Steer, Sessions),
    ("input.list", Scope::Read, Sessions),
    ("turn.cancel", Scope::Steer, Sessions),
    ("approval.list", Scope::Read, Sessions),
    ("approval.changes", Scope::Read, Sessions),
    ("approval.question", Scope::Read, Sessions),
    ("approval.decide", Scope::Approve, Sessions),
    ("rule.list", Scope::Read, Node),
    ("rule.remove", Scope::Approve, Node),
    ("node.status", Scope::Read, Sessions),
    ("node.list", Scope::Read, Node),
    ("node.place", Scope::Admin, Node),
    ("node.rotate_key", Scope::Admin, Node),
    ("node.remove_key", Scope::Admin, Node),
    ("node.admit_key", Scope::Admin, Node),
    ("node.diagnostics", Scope::Read, Node),
    ("node.config", Scope::Admin, Node),
    ("node.log", Scope::Admin, Node),
    ("node.check", Scope::Read, Node),
    ("node.reload", Scope::Admin, Node),
    ("node.backup", Scope::Admin, Node),
    ("node.backup_part", Scope::Admin, Node),
    ("node.backup_end", Scope::Admin, Node),
    ("node.drain", Scope::Admin, Node),
    ("node.stop", Scope::Admin, Node),
    ("workspace.list", Scope::Read, Node),
    ("workspace.prune", Scope::Admin, Node),
    ("model.list", Scope::Read, Sessions),
    ("tool.list", Scope::Read, Sessions),
    ("mcp.list", Scope::Read, Sessions),
    ("usage.query", Scope::Read, Sessions),
    ("usage.daily", Scope::Read, Sessions),
    ("fleet.history", Scope::Read, Sessions),
    ("session.detach", Scope::Read, Sessions),
    ("audit.query", Scope::Admin, Node),
    ("audit.verify", Scope::Admin, Node),
    ("token.create", Scope::Admin, Node),
    ("token.link", Scope::Admin, Node),
    ("token.list", Scope::Admin, Node),
    ("token.revoke", Scope::Admin, Node),
];

/// Methods that start a subscription.
pub(crate) const SUBSCRIPTIONS: [(&str, Scope, Reach); 2] = [
    ("session.attach", Scope::Read, Sessions),
    ("fleet.watch", Scope::Read, Sessions),
];

/// All methods with their scopes. Each transport offers all of them.
pub fn all() -> impl Iterator<Item = (&'static str, Scope)> + Clone {
    let known = METHODS.iter().chain(&SUBSCRIPTIONS);
    known.map(|(name, scope, _)| (*name, *scope))
}

/// The scope that a method needs, and how far it reaches.
///
/// # Errors
/// There is no such method.
pub(crate) fn method(method: &str) -> Result<(Scope, Reach), Fault> {
    let mut known = METHODS.iter().chain(&SUBSCRIPTIONS);
    if let Some((_, scope, reach)) = known.find(|(name, ..)| *name == method) {
        return Ok((*scope, *reach));
    }
    let shown: String = method.chars().take(64).collect();
    let fault = Fault::invalid("unknown_method", format!("there is no method {shown:?}"));
    let nearest = nearest(method, all().map(|(name, _)| name));
    Err(match nearest {
        Some(name) => fault.hint(format!("did you mean {name}?")),
        None => fault.hint(offer(method)),
    })
}

/// The hint for an unknown method: the methods of its family, or all families.
fn offer(method: &str) -> String {
    let split = all().filter_map(|(name, _)| name.split_once('.'));
    let asked = method.split_once('.').map_or(method, |(family, _)| family);
    let verbs: BTreeSet<&str> = split
        .clone()
        .filter_map(|(family, verb)| (family == asked).then_some(verb))
        .collect();
    let join = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
    if verbs.is_empty() {
        let families = split.map(|(family, _)| family).collect();
        format!(
            "methods are named FAMILY.VERB; the families are {}",
            join(families)
        )
    } else {
        format!("the verbs of {asked} are {}", join(verbs))
    }
}

#[cfg(test)]
mod protocol_page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_names_the_nearest_one() {
        let fault = method("session.creat").unwrap_err();
        assert_eq!(
            fault,
            Fault::invalid("unknown_method", "there is no method \"session.creat\"")
                .hint("did you mean session.create?")
        );
        let hint = |name| method(name).unwrap_err().hint.unwrap_or_default();
        assert_eq!(
            hint("rule.everything.about.it"),
            "the verbs of rule are list, remove"
        );
        assert!(
            hint("coffee").ends_with(
                "fleet, input, mcp, model, node, rule, session, token, tool, turn, usage, workspace"
            )
        );
        let far = method("make.coffee.with.milk").unwrap_err();
        assert_eq!(
            (far.code.as_str(), far.class),
            ("unknown_method", agentd_protocol::FaultClass::Invalid)
        );
    }

    #[test]
    fn an_import_needs_its_own_scope() {
        assert_eq!(method("session.import").unwrap().0, Scope::Import);
        assert_eq!(method("session.create").unwrap().0, Scope::Steer);
        assert_eq!(Scope::Import.to_string(), "import");
    }
}
