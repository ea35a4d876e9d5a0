//! The rules in force, in shared layers.

use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::tools::{EDIT, READ, WRITE};
use agentd_protected::ProtectedPaths;
use agentd_protocol::VerdictKind;
use std::sync::Arc;

/// The rules in force. Cheap to clone and to extend: sessions share the node's rules.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    layers: Vec<Arc<Vec<Rule>>>,
    home: Option<Arc<str>>,
    protected: Arc<ProtectedPaths>,
}

impl Policy {
    /// No rules. `home` is the directory that `~/` means.
    #[must_use]
    pub fn new(home: Option<&str>) -> Self {
        Self {
            layers: Vec::new(),
            home: home.map(Arc::from),
            protected: Arc::default(),
        }
    }

    /// The same rules with these protected paths. Without this call the built-in definition applies.
    #[must_use]
    pub fn protecting(mut self, protected: ProtectedPaths) -> Self {
        self.protected = Arc::new(protected);
        self
    }

    /// The protected paths.
    #[must_use]
    pub fn protected(&self) -> &ProtectedPaths {
        &self.protected
    }

    /// Adds these rules.
    #[must_use]
    pub fn with(&self, rules: Vec<Rule>) -> Self {
        let mut policy = self.clone();
        if !rules.is_empty() {
            policy.layers.push(Arc::new(rules));
        }
        policy
    }

    /// All rules. Their order only decides which of several matching rules is named.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.layers.iter().flat_map(|layer| layer.iter())
    }

    /// Whether a deny rule forbids reading this absolute path. A sandbox hides such paths.
    #[must_use]
    pub fn denies_reading(&self, workdir: &str, path: &str) -> bool {
        self.of(VerdictKind::Deny).any(|rule| match &rule.pattern {
            Pattern::Path(pattern) => rule.names(READ) && pattern.matches(workdir, self.home(), path),
            Pattern::Any | Pattern::Command(_) | Pattern::Url(_) | Pattern::Version(_) => false,
        })
    }

    /// The globs of all deny rules about writing paths, for a sandbox: absolute, or relative to the working directory.
    #[must_use]
    pub fn denied_writes(&self) -> Vec<String> {
        let globs = self.of(VerdictKind::Deny).filter_map(|rule| match &rule.pattern {
            Pattern::Path(pattern) if writes(rule) => Some(pattern.text(self.home())),
            Pattern::Path(_) | Pattern::Any | Pattern::Command(_) | Pattern::Url(_) | Pattern::Version(_) => {
                None
            }
        });
        globs.collect()
    }

    /// Whether any deny rule is about reading paths.
    #[must_use]
    pub fn has_denied_reads(&self) -> bool {
        self.of(VerdictKind::Deny)
            .any(|rule| rule.names(READ) && matches!(rule.pattern, Pattern::Path(_)))
    }

    /// `source: rule` lines, for display.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.rules()
            .map(|rule| format!("{}: {}", rule.source, rule.line()))
            .collect()
    }

    /// The directory that `~/` means.
    #[must_use]
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    pub(crate) fn of(&self, kind: VerdictKind) -> impl Iterator<Item = &Rule> {
        self.rules().filter(move |rule| rule.kind == kind)
    }
}

fn writes(rule: &Rule) -> bool {
    [WRITE, EDIT].iter().any(|tool| rule.names(tool))
}

/// The tools whose every call is denied; they are not offered to a model.
#[must_use]
pub fn wholly_denied<S: AsRef<str>>(policy: &Policy, tools: &[S]) -> Vec<String> {
    let denied = |tool: &str| {
        policy
            .of(VerdictKind::Deny)
            .any(|rule| rule.restricts_whole(tool, None))
    };
    tools
        .iter()
        .map(AsRef::as_ref)
        .filter(|tool| denied(tool))
        .map(str::to_owned)
        .collect()
}
