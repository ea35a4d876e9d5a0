//! The names of all methods, and the scope that each one needs.

use agentd_protocol::Fault;
use std::collections::BTreeSet;
use std::fmt;

/// A permission of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Methods with a single answer.
const METHODS: [(&str, Scope); 41] = [
    ("session.create", Scope::Steer),
    ("session.get", Scope::Read),
    ("session.list", Scope::Read),
    ("session.prompt", Scope::Read),
    ("session.update", Scope::Steer),
    ("session.close", Scope::Steer),
    ("session.delete", Scope::Steer),
    ("session.pause", Scope::Steer),
    ("session.resume", Scope::Steer),
    ("session.compact", Scope::Steer),
    ("session.summarize", Scope::Steer),
    ("session.export", Scope::Read),
    ("session.blob", Scope::Read),
    ("session.import", Scope::Import),
    ("session.diff", Scope::Read),
    ("session.undo", Scope::Steer),
    ("session.rewind", Scope::Steer),
    ("session.fork", Scope::Steer),
    ("input.send", Scope::Steer),
    ("input.cancel", Scope::Steer),
    ("input.list", Scope::Read),
    ("turn.cancel", Scope::Steer),
    ("approval.list", Scope::Read),
    ("approval.decide", Scope::Approve),
    ("rule.list", Scope::Read),
    ("rule.remove", Scope::Approve),
    ("node.status", Scope::Read),
    ("node.diagnostics", Scope::Read),
    ("node.config", Scope::Admin),
    ("node.check", Scope::Read),
    ("node.reload", Scope::Admin),
    ("node.backup", Scope::Admin),
    ("node.backup_part", Scope::Admin),
    ("node.backup_end", Scope::Admin),
    ("node.drain", Scope::Admin),
    ("node.stop", Scope::Admin),
    ("model.list", Scope::Read),
    ("tool.list", Scope::Read),
    ("mcp.list", Scope::Read),
    ("usage.query", Scope::Read),
    ("session.detach", Scope::Read),
];

/// Methods that start a subscription.
const SUBSCRIPTIONS: [(&str, Scope); 2] = [("session.attach", Scope::Read), ("fleet.watch", Scope::Read)];

/// The scope that a method needs.
///
/// # Errors
/// There is no such method.
pub(crate) fn scope_of(method: &str) -> Result<Scope, Fault> {
    let known = METHODS.iter().chain(&SUBSCRIPTIONS);
    if let Some((_, scope)) = known.clone().find(|(name, _)| *name == method) {
        return Ok(*scope);
    }
    let shown: String = method.chars().take(64).collect();
    let fault = Fault::invalid("unknown_method", format!("there is no method {shown:?}"));
    let nearest = nearest(method, known.map(|(name, _)| *name));
    Err(match nearest {
        Some(name) => fault.hint(format!("did you mean {name}?")),
        None => fault.hint(offer(method)),
    })
}

/// The hint for an unknown method: the methods of its family, or all families.
fn offer(method: &str) -> String {
    let known = METHODS.iter().chain(&SUBSCRIPTIONS);
    let split = known.filter_map(|(name, _)| name.split_once('.'));
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
        format!("{asked} has {}", join(verbs))
    }
}

/// The known word closest to `word`, if one is close enough.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).flat_map(char::to_lowercase).collect();
    let far = (word.len() / 3).max(2);
    let near = known
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, _)| *distance <= far);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The edit distance: insertions, deletions and replacements.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for (pair, y) in row.windows(2).zip(&b) {
            let (diagonal, above) = match pair {
                [diagonal, above] => (*diagonal, *above),
                _ => continue,
            };
            left = (diagonal + usize::from(x != y)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod protocol_page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_names_the_nearest_one() {
        let fault = scope_of("session.creat").unwrap_err();
        assert_eq!(
            fault,
            Fault::invalid("unknown_method", "there is no method \"session.creat\"")
                .hint("did you mean session.create?")
        );
        let hint = |method| scope_of(method).unwrap_err().hint.unwrap_or_default();
        assert_eq!(hint("rule.everything.about.it"), "rule has list, remove");
        assert!(hint("coffee").ends_with("fleet, input, mcp, model, node, rule, session, tool, turn, usage"));
        let far = scope_of("make.coffee.with.milk").unwrap_err();
        assert_eq!(
            (far.code.as_str(), far.class),
            ("unknown_method", agentd_protocol::FaultClass::Invalid)
        );
    }

    #[test]
    fn an_import_has_a_scope_of_its_own() {
        assert_eq!(scope_of("session.import").unwrap(), Scope::Import);
        assert_eq!(scope_of("session.create").unwrap(), Scope::Steer);
        assert_eq!(Scope::Import.to_string(), "import");
    }

    #[test]
    fn distances_count_edits() {
        let count = |a: &str, b| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(count("read", "Read"), 0);
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(nearest("Grpe", ["Glob", "Grep", "Ls"].into_iter()), Some("Grep"));
        assert_eq!(nearest("Telephone", ["Glob", "Grep", "Ls"].into_iter()), None);
    }
}
