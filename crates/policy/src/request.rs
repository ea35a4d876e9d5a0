//! A request for a verdict, and the judgement.

use agentd_protocol::{EffectClass, PermissionMode, Scope, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

/// The part of a call that the rules check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A file or directory.
    Path {
        /// Whether the call writes it.
        write: bool,
        /// Relative to the working directory, or absolute.
        path: String,
    },
    /// Several files at once: each is judged, and the strictest verdict stands.
    Paths {
        /// Whether the call writes them.
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
        /// A hash of the server's description of the tool; empty when unknown.
        version: String,
        /// Arguments that the tool's schema does not declare.
        undeclared: Vec<String>,
    },
    /// Nothing outside the session.
    Nothing,
}

/// A tool call that needs a verdict.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The canonical tool name.
    pub tool: &'a str,
    /// The target of the call.
    pub subject: &'a Subject,
    /// The effect on the world.
    pub effect: EffectClass,
    /// The session's mode.
    pub mode: PermissionMode,
    /// The session's absolute working directory.
    pub workdir: &'a str,
}

/// The verdict, and the information that a person needs to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Allow, ask or deny, with the rule that decided.
    pub verdict: Verdict,
    /// The rule that an answer with scope session or always adds (`Bash(cargo test)`); absent if it has no safe form.
    pub grant: Option<String>,
    /// The scopes that an allow may have.
    pub scopes: Vec<Scope>,
    /// One line for people.
    pub title: String,
    /// The exact action.
    pub detail: String,
    /// The risks.
    pub risks: Vec<String>,
    /// It is allowed only while the files that it runs are those that were judged.
    pub by_content: bool,
}

impl Judgement {
    /// A denial, for the case that judging itself failed (I7).
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
            by_content: false,
        }
    }
}
