//! One rule: a kind, a tool, a pattern and a source.

use crate::error::PolicyError;
use crate::pattern::{PathPattern, Pattern};
use crate::request::Subject;
use crate::tools::{self, BASH, Form};
use crate::url::UrlPattern;
use crate::words::Words;
use agentd_protocol::VerdictKind;
use std::fmt;

/// The source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Built into agentd.
    Builtin,
    /// The operator's configuration.
    Operator,
    /// Specified when the session was created.
    Session,
    /// A person granted it for the session.
    Grant,
    /// A person allowed it permanently.
    Always,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Builtin => "built-in",
            Self::Operator => "operator",
            Self::Session => "session",
            Self::Grant => "session grant",
            Self::Always => "always",
        })
    }
}

const EXAMPLE: &str = "Bash(cargo test:*), Write(/etc/**), WebFetch(domain:docs.rs) or Read";
/// The prefix of the hash of a tool's description and schema.
pub(crate) const VERSION: &str = "sha256:";
const SHORTEST_VERSION: usize = 32;
/// The longest rule.
const MAX_RULE: usize = 4_096;

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) kind: VerdictKind,
    pub(crate) source: Source,
    pub(crate) text: String,
    pub(crate) tool: String,
    pub(crate) pattern: Pattern,
}

impl Rule {
    /// Parses `deny Bash(sudo:*)`; a rule without a kind allows.
    ///
    /// # Errors
    /// The text is not a rule; the error has the position and an example of a rule.
    pub fn parse(line: &str, source: Source) -> Result<Self, PolicyError> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or(("", line));
        match word {
            "allow" => Self::new(VerdictKind::Allow, rest.trim(), source),
            "ask" => Self::new(VerdictKind::Ask, rest.trim(), source),
            "deny" => Self::new(VerdictKind::Deny, rest.trim(), source),
            _ => Self::new(VerdictKind::Allow, line, source),
        }
    }

    /// Parses `Bash(sudo:*)`.
    ///
    /// # Errors
    /// The text is not a rule; the error has the position and an example of a rule.
    pub fn new(kind: VerdictKind, text: &str, source: Source) -> Result<Self, PolicyError> {
        let fail = |position: usize, problem: &str| PolicyError {
            rule: text.chars().take(200).collect(),
            position,
            problem: problem.to_owned(),
            example: EXAMPLE,
        };
        if text.len() > MAX_RULE {
            return Err(fail(MAX_RULE, "it is too long"));
        }
        if let Some(at) = text
            .chars()
            .position(|c| crate::path::hidden(c) || c == '\n' || c == '\t')
        {
            return Err(fail(at + 1, "it has a control or invisible character"));
        }
        let open = text.find('(').unwrap_or(text.len());
        let (tool, rest) = text.split_at(open);
        if tool.is_empty()
            || !tool
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-*".contains(c))
        {
            return Err(fail(1, "it does not begin with a tool's name"));
        }
        // Read as a tool's name, a verdict without a rule would guard nothing.
        if ["allow", "ask", "deny"]
            .iter()
            .any(|verdict| verdict.eq_ignore_ascii_case(tool))
        {
            return Err(fail(1, "no tool follows the verdict"));
        }
        let pattern = match rest.strip_prefix('(') {
            None => Pattern::Any,
            Some(inner) => {
                let inner = inner
                    .strip_suffix(')')
                    .ok_or_else(|| fail(text.chars().count(), "the `)` at the end is missing"))?;
                let start = tool.chars().count() + 1;
                pattern(kind, tool, inner).map_err(|(at, problem)| fail(start + at, &problem))?
            }
        };
        Ok(Self {
            kind,
            source,
            text: text.to_owned(),
            tool: tool.to_owned(),
            pattern,
        })
    }

    /// The rule including its kind: `deny Bash(sudo:*)`.
    #[must_use]
    pub fn line(&self) -> String {
        let kind = match self.kind {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "deny",
        };
        format!("{kind} {}", self.text)
    }

    /// The source of the rule.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Whether it allows something.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.kind == VerdictKind::Allow
    }

    /// The tool it names.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it names this tool. Rules about commands also apply to background commands.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.has_name(tool) || (tools::is_background(tool) && self.has_name(BASH))
    }

    fn has_name(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(prefix) => tool
                .get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(prefix)),
            None => self.tool.eq_ignore_ascii_case(tool),
        }
    }

    /// Whether it applies to this tool when it asks or forbids. For a tool unknown to policy, the subject decides.
    pub(crate) fn restricts(&self, tool: &str, subject: Option<&Subject>) -> bool {
        self.names(tool) || tools::kin(tool, subject).is_some_and(|kin| self.names(kin))
    }

    /// Whether it asks about or forbids every call of this tool.
    pub(crate) fn restricts_whole(&self, tool: &str, subject: Option<&Subject>) -> bool {
        self.is_whole(tool) || tools::kin(tool, subject).is_some_and(|kin| self.is_whole(kin))
    }

    /// Whether it covers every call of this tool.
    fn is_whole(&self, tool: &str) -> bool {
        self.names(tool)
            && match &self.pattern {
                Pattern::Any => true,
                Pattern::Command(words) => words.is_everything(),
                Pattern::Path(path) => path.is_everything(),
                Pattern::Url(url) => url.is_everything(),
                Pattern::Version(_) => false,
            }
    }
}

fn pattern(kind: VerdictKind, tool: &str, inner: &str) -> Result<Pattern, (usize, String)> {
    if inner.is_empty() {
        return Err((1, "the parentheses are empty".to_owned()));
    }
    match tools::form(tool) {
        Some(Form::Command) => {
            return Words::parse(inner, kind != VerdictKind::Allow).map(Pattern::Command);
        }
        Some(Form::Path { .. }) => {
            let path = PathPattern::parse(inner).map_err(|problem| (1, problem))?;
            return Ok(Pattern::Path(path));
        }
        Some(Form::Url) => {
            return UrlPattern::parse(inner, kind != VerdictKind::Allow)
                .map(Pattern::Url)
                .map_err(|problem| (1, problem));
        }
        None => {}
    }
    if inner == "*" || inner == "**" {
        return Ok(Pattern::Any);
    }
    if let Some(version) = inner.strip_prefix(VERSION) {
        let good = version.len() >= SHORTEST_VERSION && version.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !good || kind != VerdictKind::Allow {
            return Err((
                1,
                "only an allow rule can name a version, as 32 hexadecimal digits".to_owned(),
            ));
        }
        return Ok(Pattern::Version(version.to_ascii_lowercase()));
    }
    Err((1, format!("only {} take a pattern", tools::with_patterns())))
}
