//! An explanation of a verdict, for people and programs.

use crate::render::{Paint, clean, one_line};
use agentd_policy::{Explanation, Source};
use agentd_protocol::{PermissionMode, Scope, VerdictKind};
use serde::Serialize;

/// The JSON shape of `policy check`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Explained {
    verdict: VerdictKind,
    rule: String,
    source: Option<String>,
    reason: String,
    mode: PermissionMode,
    title: String,
    parts: Vec<Part>,
    not_understood: Option<String>,
    writes: Vec<String>,
    reads: Vec<String>,
    scopes: Vec<Scope>,
    grant: Option<String>,
    risks: Vec<String>,
    /// Read denials that only match a command's text, so the sandbox does not enforce them.
    text_only: Vec<String>,
}

/// One command of the line.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Part {
    command: String,
    verdict: VerdictKind,
    rule: String,
    decides: bool,
}

impl Explained {
    pub(super) fn new(explanation: Explanation, mode: PermissionMode) -> Self {
        let judgement = explanation.judgement;
        let parts = explanation.parts.into_iter().map(|part| Part {
            command: part.command,
            verdict: part.verdict.kind,
            rule: part.verdict.rule,
            decides: part.decides,
        });
        Self {
            verdict: judgement.verdict.kind,
            rule: judgement.verdict.rule,
            source: explanation.source.as_ref().map(Source::to_string),
            reason: judgement.verdict.reason,
            mode,
            title: judgement.title,
            parts: parts.collect(),
            not_understood: explanation.not_understood,
            writes: explanation.writes,
            reads: explanation.reads,
            scopes: judgement.scopes,
            grant: judgement.grant,
            risks: judgement.risks,
            text_only: Vec::new(),
        }
    }

    /// Adds the rules that only match this command's text.
    pub(super) fn by_text_only(mut self, rules: Vec<String>) -> Self {
        self.text_only = rules;
        self
    }

    /// The verdict as one word.
    pub(super) const fn word(&self) -> &'static str {
        word(self.verdict)
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            text.push_str(&format!("{} {value}\n", paint.dim(&format!("{key:<8}"))));
        };
        line(
            "verdict",
            &format!("{} {}", painted(self.verdict, paint), one_line(&self.title, 200)),
        );
        let source = self.source.as_ref().map(|source| format!(" ({source} rule)"));
        line(
            "rule",
            &format!("{}{}", one_line(&self.rule, 300), source.unwrap_or_default()),
        );
        line("why", &one_line(&self.reason, 400));
        let several = self.parts.len() > 1 || self.not_understood.is_some();
        for part in self.parts.iter().filter(|_| several) {
            // Padded before it is coloured, so that colour codes do not shift the columns.
            let pad = " ".repeat(6_usize.saturating_sub(word(part.verdict).len()));
            let mark = if part.decides { "  <- decides" } else { "" };
            line(
                "part",
                &format!(
                    "{}{pad}{}  {}{mark}",
                    painted(part.verdict, paint),
                    one_line(&part.command, 200),
                    paint.dim(&one_line(&part.rule, 100))
                ),
            );
        }
        if let Some(what) = &self.not_understood {
            line("unclear", &format!("it has {what}"));
        }
        for (key, files) in [("writes", &self.writes), ("reads", &self.reads)] {
            if !files.is_empty() {
                line(key, &one_line(&files.join(", "), 400));
            }
        }
        for risk in &self.risks {
            line("risk", &one_line(risk, 400));
        }
        for rule in &self.text_only {
            line("limit", &format!("{}: by text only", one_line(rule, 200)));
        }
        if let Some(grant) = &self.grant {
            line(
                "grant",
                &format!(
                    "an answer with scope session or always adds: allow {}",
                    clean(grant)
                ),
            );
        }
        text
    }
}

pub(super) const fn word(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Allow => "allow",
        VerdictKind::Ask => "ask",
        VerdictKind::Deny => "deny",
    }
}

fn painted(kind: VerdictKind, paint: Paint) -> String {
    match kind {
        VerdictKind::Allow => paint.good(word(kind)),
        VerdictKind::Ask => paint.warn(word(kind)),
        VerdictKind::Deny => paint.bad(word(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_policy::{Policy, Request, Rule, Subject, explain};
    use agentd_protocol::EffectClass;

    fn explained(command: &str) -> Explained {
        let rules = [
            ("allow Bash(cargo test:*)", Source::Operator),
            ("deny Bash(rm -rf:*)", Source::Builtin),
        ];
        let rules = rules.map(|(rule, source)| Rule::parse(rule, source).unwrap());
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
        let policy = Policy::new(None).with(rules.to_vec());
        Explained::new(explain(&policy, &request), PermissionMode::Default)
    }

    #[test]
    fn the_deciding_part_and_its_rule_are_shown() {
        assert_eq!(
            explained("cargo test; rm -rf /").text(Paint::new(false)),
            "verdict  deny Run cargo test; rm -rf /\n\
             rule     Bash(rm -rf:*) (built-in rule)\n\
             why      the built-in rule Bash(rm -rf:*) forbids this\n\
             part     allow cargo test  Bash(cargo test:*)\n\
             part     deny  rm -rf /  Bash(rm -rf:*)  <- decides\n\
             writes   /\n\
             risk     it writes /\n"
        );
    }

    #[test]
    fn the_rule_that_a_lasting_answer_adds_is_shown() {
        let text = explained("make").text(Paint::new(false));
        assert!(
            text.ends_with("grant    an answer with scope session or always adds: allow Bash(make)\n"),
            "{text}"
        );
    }

    #[test]
    fn unparsed_parts_are_shown() {
        let text = explained("echo $(date)").text(Paint::new(false));
        assert!(text.contains("\nunclear  it has "), "{text}");
    }
}
