//! Deny rules for reading that the sandbox does not enforce on commands.

use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::rule::{Rule, Source};
use crate::tools::READ;
use agentd_protocol::{SandboxLevel, VerdictKind};

/// The rules `deny Read(...)` that bind the file tools, but only the text of a command: a command that reaches the file in
/// another way can read it. At `none` these are all such rules. At `confined` they are those whose files may be in a working
/// directory, since nothing else is readable there but programs and toolchains. At `isolated` the configured rules become
/// unreadable mounts, so only rules that people added later remain.
#[must_use]
pub fn by_text_only(policy: &Policy, level: SandboxLevel) -> Vec<String> {
    let near = |rule: &&Rule| match &rule.pattern {
        Pattern::Path(path) => {
            let anywhere = rule
                .text
                .split_once('(')
                .is_some_and(|(_, inner)| inner.starts_with("**"));
            level == SandboxLevel::None || path.is_everything() || path.is_near(anywhere)
        }
        Pattern::Any | Pattern::Command(_) | Pattern::Url(_) | Pattern::Version(_) => false,
    };
    let mounted = |rule: &&Rule| {
        level == SandboxLevel::Isolated && matches!(rule.source, Source::Builtin | Source::Operator)
    };
    let denied = policy
        .of(VerdictKind::Deny)
        .filter(|rule| rule.names(READ) && !mounted(rule));
    denied.filter(near).map(Rule::line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_working_directories_is_held_by_walls() {
        let lines = [
            "deny Read(**/.env)",
            "deny Read(secret/**)",
            "deny Read(~/.ssh/**)",
            "deny Read(/srv/keys/**)",
            "deny Write(a)",
            "ask Read(b)",
        ];
        let rules = lines.map(|line| Rule::parse(line, Source::Operator).unwrap());
        let policy = Policy::new(Some("/home/ana")).with(rules.to_vec());
        assert_eq!(by_text_only(&policy, SandboxLevel::None), lines[..4]);
        assert_eq!(by_text_only(&policy, SandboxLevel::Confined), lines[..2]);
        assert_eq!(by_text_only(&policy, SandboxLevel::Isolated), [""; 0]);
        let later = Rule::parse("deny Read(notes/**)", Source::Always).unwrap();
        let policy = policy.with(vec![later]);
        assert_eq!(
            by_text_only(&policy, SandboxLevel::Isolated),
            ["deny Read(notes/**)"]
        );
    }
}
