//! Calls that a rule must and must not match: a rule that does not mean what its author intended is found when it loads.

use crate::judge::judge;
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::request::{Request, Subject};
use crate::rule::Rule;
use crate::tools::{Form, form};
use agentd_protocol::{EffectClass, PermissionMode};

/// The directory for examples with relative paths.
const WORKDIR: &str = "/workdir";

/// An example that a rule contradicts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExampleError {
    /// The rule should decide this call and does not.
    #[error("the rule does not match its example {0:?}")]
    NoMatch(String),
    /// The rule should not decide this call and does.
    #[error("the rule matches {0:?}, an example that it must not match")]
    Match(String),
    /// The form of an example for such a rule is not defined.
    #[error("rules for {0} cannot have examples: only rules for commands, paths and addresses can")]
    NoSubject(String),
}

impl Rule {
    /// Checks that it decides, without any other rule, each of `matches` and none of `no_match`: commands, paths or
    /// addresses, depending on its tool.
    ///
    /// # Errors
    /// The first example that it contradicts.
    pub fn prove(
        &self,
        home: Option<&str>,
        matches: &[String],
        no_match: &[String],
    ) -> Result<(), ExampleError> {
        let alone = Policy::new(home).with(vec![self.clone()]);
        let decides = |example: &str| {
            let (subject, effect) = self
                .about(example)
                .ok_or_else(|| ExampleError::NoSubject(self.tool.clone()))?;
            let request = Request {
                tool: &self.tool,
                subject: &subject,
                effect,
                mode: PermissionMode::Default,
                workdir: WORKDIR,
            };
            let verdict = judge(&alone, &request).verdict;
            Ok(verdict.kind == self.kind && verdict.rule == self.text)
        };
        for example in matches {
            if !decides(example)? {
                return Err(ExampleError::NoMatch(example.clone()));
            }
        }
        for example in no_match {
            if decides(example)? {
                return Err(ExampleError::Match(example.clone()));
            }
        }
        Ok(())
    }

    /// The call that an example describes.
    fn about(&self, example: &str) -> Option<(Subject, EffectClass)> {
        if matches!(self.pattern, Pattern::Version(_)) {
            return None;
        }
        let example = example.to_owned();
        Some(match form(&self.tool)? {
            Form::Command => (Subject::Command { command: example }, EffectClass::Exec),
            Form::Path { write } => {
                let effect = if write {
                    EffectClass::Write
                } else {
                    EffectClass::Read
                };
                (Subject::Path { write, path: example }, effect)
            }
            Form::Url => (Subject::Url(example), EffectClass::Network),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Source;

    fn prove(rule: &str, matches: &[&str], no_match: &[&str]) -> Result<(), ExampleError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let rule = Rule::parse(rule, Source::Operator).unwrap();
        rule.prove(Some("/home/ana"), &owned(matches), &owned(no_match))
    }

    #[test]
    fn a_rule_is_held_to_its_examples() {
        let good: [(&str, &[&str], &[&str]); 6] = [
            (
                "allow Bash(cargo test:*)",
                &["cargo test -p x"],
                &["cargo test; rm -rf /", "cargo"],
            ),
            ("deny Bash(rm -rf:*)", &["rm -rf /", "ls && rm -fr x"], &["rm x"]),
            (
                "deny Write(/etc/**)",
                &["/etc/passwd"],
                &["etc/passwd", "/etcetera"],
            ),
            ("allow Write(src/**)", &["src/a.rs"], &["src/../x", "../src/a"]),
            ("ask Read(~/notes/**)", &["/home/ana/notes/a"], &["notes/a"]),
            (
                "allow WebFetch(domain:docs.rs)",
                &["https://docs.rs/serde"],
                &["https://docs.rs.evil.example/"],
            ),
        ];
        for (rule, matches, no_match) in good {
            assert_eq!(prove(rule, matches, no_match), Ok(()), "{rule}");
        }
    }

    #[test]
    fn the_first_example_that_is_contradicted_is_named() {
        assert_eq!(
            prove("allow Bash(cargo test)", &["cargo test -p x"], &[]),
            Err(ExampleError::NoMatch("cargo test -p x".into()))
        );
        assert_eq!(
            prove("deny Bash(git:*)", &[], &["cargo build", "git status"]),
            Err(ExampleError::Match("git status".into()))
        );
        assert_eq!(
            prove("allow mcp__x", &["anything"], &[]),
            Err(ExampleError::NoSubject("mcp__x".into()))
        );
    }
}
