//! What is judged, and what comes of it.

use agentd_protocol::{EffectClass, PermissionMode, Scope, Verdict, VerdictKind};

/// What the rules look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A file or directory.
    Path {
        /// Whether it is changed.
        write: bool,
        /// Relative to the working directory, or absolute.
        path: String,
    },
    /// Several files at once: each is judged, and the strictest verdict stands.
    Paths {
        /// Whether they are changed.
        write: bool,
        /// Relative to the working directory, or absolute.
        paths: Vec<String>,
    },
    /// A command for the shell.
    Command {
        /// The whole text.
        command: String,
    },
    /// An address.
    Url(String),
    /// A tool of a tool server.
    Remote {
        /// Its arguments as JSON.
        arguments: String,
        /// A hash of what the server says of the tool; empty when that is not known.
        version: String,
        /// Arguments that the tool's schema does not declare.
        undeclared: Vec<String>,
    },
    /// Nothing outside the session.
    Nothing,
}

/// A tool call that wants a verdict.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The canonical tool name.
    pub tool: &'a str,
    /// What it is about.
    pub subject: &'a Subject,
    /// What it does to the world.
    pub effect: EffectClass,
    /// The session's mode.
    pub mode: PermissionMode,
    /// The session's absolute working directory.
    pub workdir: &'a str,
}

/// The verdict, and what a person needs to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// allow, ask or deny, with the rule that decided.
    pub verdict: Verdict,
    /// The rule that an answer with scope session or always adds (`Bash(cargo test)`); absent when it cannot be said safely.
    pub grant: Option<String>,
    /// The scopes that an allow may have.
    pub scopes: Vec<Scope>,
    /// One line for people.
    pub title: String,
    /// What exactly will happen.
    pub detail: String,
    /// What to look out for.
    pub risks: Vec<String>,
}

impl Judgement {
    /// A judgement that only denies, for the case that judging itself failed (I7).
    #[must_use]
    pub fn denied(rule: &str, reason: &str) -> Self {
        let verdict = Verdict {
            kind: VerdictKind::Deny,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
        };
        Self {
            verdict,
            grant: None,
            scopes: Vec::new(),
            title: String::new(),
            detail: String::new(),
            risks: Vec::new(),
        }
    }
}
