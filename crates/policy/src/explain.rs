//! A judgement with its reasons: the verdict of each command of a line alone, and the parts that could not be parsed.

use crate::judge::judge;
use crate::policy::Policy;
use crate::request::{Judgement, Request, Subject};
use crate::rule::Source;
use crate::shell::analyse;
use agentd_protocol::Verdict;

/// A judgement with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The judgement of [`judge`].
    pub judgement: Judgement,
    /// Who made the rule that decided, if a rule did.
    pub source: Option<Source>,
    /// The commands that were found, including nested ones; empty when the subject is not a command line.
    pub parts: Vec<Part>,
    /// The part of the command line that cannot be judged separately.
    pub not_understood: Option<String>,
    /// Files that redirections write.
    pub writes: Vec<String>,
    /// Files that redirections read.
    pub reads: Vec<String>,
}

/// One command of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its words, quoted where that is needed.
    pub command: String,
    /// The verdict that it would get alone.
    pub verdict: Verdict,
    /// Whether it determines the verdict of the whole line.
    pub decides: bool,
}

/// Judges a call and explains the judgement.
#[must_use]
pub fn explain(policy: &Policy, request: &Request<'_>) -> Explanation {
    let judgement = judge(policy, request);
    let source = policy
        .rules()
        .find(|rule| rule.kind == judgement.verdict.kind && rule.text == judgement.verdict.rule)
        .map(|rule| rule.source);
    let mut explanation = Explanation {
        judgement,
        source,
        parts: Vec::new(),
        not_understood: None,
        writes: Vec::new(),
        reads: Vec::new(),
    };
    let Subject::Command { command } = request.subject else {
        return explanation;
    };
    let analysis = analyse(command);
    let whole = &explanation.judgement.verdict;
    let alone = |argv: &Vec<String>| {
        let command = argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let subject = Subject::Command {
            command: command.clone(),
        };
        let verdict = judge(
            policy,
            &Request {
                subject: &subject,
                ..request.clone()
            },
        )
        .verdict;
        Part {
            decides: verdict.kind == whole.kind && verdict.rule == whole.rule,
            command,
            verdict,
        }
    };
    let mut parts: Vec<Part> = Vec::new();
    for argv in &analysis.commands {
        let part = alone(argv);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    explanation.parts = parts;
    explanation.not_understood = analysis.segments.err().map(str::to_owned);
    explanation.writes = analysis.writes;
    explanation.reads = analysis.reads;
    explanation
}

/// A word quoted so that a shell reads it back unchanged.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;
    use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};

    fn explained(command: &str) -> Explanation {
        let rules = ["allow Bash(cargo test:*)", "deny Bash(rm -rf:*)"];
        let rules = rules.map(|rule| Rule::parse(rule, Source::Operator).unwrap());
        let subject = Subject::Command {
            command: command.to_owned(),
        };
        let request = Request {
            tool: "Bash",
            subject: &subject,
            effect: EffectClass::Exec,
            mode: PermissionMode::Default,
            workdir: "/w",
        };
        explain(&Policy::new(None).with(rules.to_vec()), &request)
    }

    fn parts(explanation: &Explanation) -> Vec<(&str, VerdictKind, &str, bool)> {
        let parts = explanation.parts.iter();
        parts
            .map(|part| {
                (
                    part.command.as_str(),
                    part.verdict.kind,
                    part.verdict.rule.as_str(),
                    part.decides,
                )
            })
            .collect()
    }

    #[test]
    fn the_part_that_decides_is_named() {
        let why = explained("cargo test -p 'a b' && rm -rf /");
        assert_eq!(
            (why.judgement.verdict.kind, why.source),
            (VerdictKind::Deny, Some(Source::Operator))
        );
        assert_eq!(
            parts(&why),
            [
                (
                    "cargo test -p 'a b'",
                    VerdictKind::Allow,
                    "Bash(cargo test:*)",
                    false
                ),
                ("rm -rf /", VerdictKind::Deny, "Bash(rm -rf:*)", true),
            ]
        );
        assert_eq!(why.not_understood, None);
    }

    #[test]
    fn what_no_rule_decides_is_the_modes() {
        let why = explained("cargo test; make");
        assert_eq!(
            parts(&why),
            [
                ("cargo test", VerdictKind::Allow, "Bash(cargo test:*)", false),
                ("make", VerdictKind::Ask, "mode:default", true),
            ]
        );
        assert_eq!(why.source, None);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let why = explained("cargo test > $(date)");
        assert_eq!(why.judgement.verdict.rule, "gate:not_plain");
        assert!(why.not_understood.is_some(), "{why:?}");
        assert_eq!(explained("echo hi > out").writes, ["out"]);
    }
}
