//! `[hooks]`: commands of the operator that are told what happens, and may prevent some of it.

use crate::duration;
use agentd_protocol::HookEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most hooks.
const MOST: usize = 32;
/// The longest time that a hook may have.
const LONGEST: Duration = Duration::from_secs(600);

/// `[hooks]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HooksConfig {
    /// How many hooks of one session run at the same time.
    pub max_concurrent: u32,
    /// How often in one turn the hooks of its end may have it go on.
    pub stop_rounds: u32,
    /// The hooks, in the order in which they are asked.
    pub run: Vec<HookConfig>,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 5,
            stop_rounds: 2,
            run: Vec::new(),
        }
    }
}

/// How often the hooks before a call are asked until each of them has seen the input that runs; then the call is denied.
pub const HOOK_ROUNDS: u32 = 3;

/// What stands for the answer of a hook that gave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFallback {
    /// It goes on as if there were no such hook.
    Ignore,
    /// A person is asked.
    Ask,
    /// It is prevented.
    Deny,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// What people read of it.
    pub name: String,
    /// What it is told of.
    pub event: HookEvent,
    /// Of which tools; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The program, by its whole path, and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default = "minute", with = "duration::plain")]
    pub timeout: Duration,
    /// When it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<HookFallback>,
    /// When its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<HookFallback>,
    /// Its allow stands for a person's, where the rules want one to be asked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub may_allow: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn minute() -> Duration {
    Duration::from_secs(60)
}

impl HookConfig {
    /// A hook with nothing but what it must have.
    #[must_use]
    pub fn new(name: &str, event: HookEvent, command: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            event,
            tools: Vec::new(),
            command: command.iter().map(|&part| part.to_owned()).collect(),
            timeout: minute(),
            on_failure: None,
            on_timeout: None,
            may_allow: false,
        }
    }

    /// Whether it is told of this; what is about no call has no tool.
    #[must_use]
    pub fn hears(&self, event: HookEvent, tool: &str) -> bool {
        self.event == event && (self.tools.is_empty() || self.tools.iter().any(|name| name == tool))
    }

    /// What stands for a missing answer: what a hook may prevent is prevented (I7), a question stays with the person, and
    /// where nothing is left to decide nothing is decided.
    #[must_use]
    pub fn fallback(&self, timed_out: bool) -> HookFallback {
        let written = if timed_out {
            self.on_timeout
        } else {
            self.on_failure
        };
        written.unwrap_or(match self.event {
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit | HookEvent::Compaction => HookFallback::Deny,
            HookEvent::PermissionRequest => HookFallback::Ask,
            HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::SessionStart
            | HookEvent::SessionEnd
            | HookEvent::Stop
            | HookEvent::SubagentStop
            | HookEvent::Notification => HookFallback::Ignore,
        })
    }

    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let named = !self.name.is_empty()
            && self.name.len() <= 64
            && self
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !named {
            return Some(("the name of a hook is not a name", "use letters, digits, - and _"));
        }
        if !self
            .command
            .first()
            .is_some_and(|program| program.starts_with('/'))
        {
            return Some((
                "the command of a hook does not begin with the path of a program",
                "write command = [\"/usr/local/bin/check\", \"--strict\"]",
            ));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST {
            return Some((
                "the time of a hook is out of range",
                "give at most 10m, and not 0s",
            ));
        }
        self.misfit()
    }

    /// What does not go with its event.
    fn misfit(&self) -> Option<(&'static str, &'static str)> {
        let event = self.event;
        let fallbacks = || [self.on_failure, self.on_timeout].into_iter().flatten();
        if !event.prevents() && fallbacks().any(|fallback| fallback != HookFallback::Ignore) {
            return Some((
                "a hook of this event cannot prevent what it is told of",
                "take on_failure and on_timeout out, or use another event, such as PreToolUse",
            ));
        }
        if !event.is_of_call() && fallbacks().any(|fallback| fallback == HookFallback::Ask) {
            return Some((
                "nobody is asked about what is no tool call",
                "write on_failure and on_timeout = \"deny\" or \"ignore\"",
            ));
        }
        if !event.is_of_call() && !self.tools.is_empty() {
            return Some((
                "a hook that is told of no tool calls has a list of tools",
                "take tools out",
            ));
        }
        (self.may_allow && event != HookEvent::PermissionRequest).then_some((
            "only a hook of the event PermissionRequest may allow",
            "take may_allow out",
        ))
    }
}

impl HooksConfig {
    /// The first hook that makes no sense: which, what, and how to mend it.
    pub(crate) fn problem(&self) -> Option<(usize, &'static str, &'static str)> {
        let mut names = BTreeSet::new();
        self.run.iter().enumerate().find_map(|(n, hook)| {
            if n >= MOST {
                return Some((n, "there are too many hooks", "keep at most 32"));
            }
            if !names.insert(&hook.name) {
                return Some((n, "two hooks have the same name", "name them apart"));
            }
            hook.problem().map(|(what, fix)| (n, what, fix))
        })
    }

    /// The longest that all hooks before a call may take together.
    #[must_use]
    pub fn longest_before(&self) -> Duration {
        let of = |event| -> Duration {
            let hooks = self.run.iter().filter(|hook| hook.event == event);
            hooks.map(|hook| hook.timeout).sum()
        };
        of(HookEvent::PreToolUse)
            .saturating_mul(HOOK_ROUNDS)
            .saturating_add(of(HookEvent::PermissionRequest))
    }

    /// What hooks are told of.
    #[must_use]
    pub fn heard(&self) -> Vec<HookEvent> {
        let any = |event: &HookEvent| self.run.iter().any(|hook| hook.event == *event);
        HookEvent::ALL.into_iter().filter(any).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HooksConfig, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn i7_a_hook_before_a_call_denies_when_it_fails_unless_the_operator_says_otherwise() {
        let config = read(
            r#"run = [
                { name = "a", event = "PreToolUse", command = ["/bin/a"] },
                { name = "b", event = "PreToolUse", command = ["/bin/b"], on_failure = "ignore", on_timeout = "ask" },
                { name = "c", event = "PostToolUse", tools = ["Bash"], command = ["/bin/c"], timeout = "2s" },
            ]"#,
        )
        .unwrap();
        assert_eq!(config.problem(), None);
        let fallbacks: Vec<_> = config
            .run
            .iter()
            .map(|hook| (hook.fallback(false), hook.fallback(true)))
            .collect();
        use HookFallback::{Ask, Deny, Ignore};
        assert_eq!(fallbacks, [(Deny, Deny), (Ignore, Ask), (Ignore, Ignore)]);
        assert_eq!(config.longest_before(), Duration::from_secs(360));
        assert_eq!(config.heard(), [HookEvent::PreToolUse, HookEvent::PostToolUse]);
        assert!(config.run[2].hears(HookEvent::PostToolUse, "Bash"));
        assert!(!config.run[2].hears(HookEvent::PostToolUse, "Read"));
        let written = toml::to_string(&config).unwrap();
        assert_eq!(read(&written), Ok(config));
    }

    #[test]
    fn a_hook_that_makes_no_sense_is_refused() {
        for bad in [
            r#"{ name = "", event = "PreToolUse", command = ["/a"] }"#,
            r#"{ name = "a b", event = "PreToolUse", command = ["/a"] }"#,
            r#"{ name = "a", event = "PreToolUse", command = [] }"#,
            r#"{ name = "a", event = "PreToolUse", command = ["check"] }"#,
            r#"{ name = "a", event = "PreToolUse", command = ["/a"], timeout = "0s" }"#,
            r#"{ name = "a", event = "PreToolUse", command = ["/a"], timeout = "11m" }"#,
            r#"{ name = "a", event = "PostToolUse", command = ["/a"], on_failure = "deny" }"#,
            r#"{ name = "a", event = "Stop", command = ["/a"], on_timeout = "deny" }"#,
            r#"{ name = "a", event = "UserPromptSubmit", command = ["/a"], on_failure = "ask" }"#,
            r#"{ name = "a", event = "Notification", command = ["/a"], tools = ["Bash"] }"#,
            r#"{ name = "a", event = "PreToolUse", command = ["/a"], may_allow = true }"#,
            r#"{ name = "a", event = "PreToolUse", command = ["/a"] }, { name = "a", event = "PreToolUse", command = ["/a"] }"#,
        ] {
            let config = read(&format!("run = [{bad}]")).unwrap();
            assert!(config.problem().is_some(), "{bad}");
        }
        assert!(read(r#"run = [{ name = "a", event = "Midnight", command = ["/a"] }]"#).is_err());
        assert!(
            read(r#"run = [{ name = "a", event = "PreToolUse", command = ["/a"], tool = "Bash" }]"#).is_err()
        );
    }

    #[test]
    fn i7_a_hook_without_an_answer_prevents_what_it_may_prevent_and_never_answers_a_person() {
        let of = |event| HookConfig::new("a", event, &["/a"]).fallback(true);
        for event in HookEvent::ALL {
            let expected = match (event.prevents(), event) {
                (true, HookEvent::PermissionRequest) => HookFallback::Ask,
                (true, _) => HookFallback::Deny,
                (false, _) => HookFallback::Ignore,
            };
            assert_eq!(of(event), expected, "{event:?}");
        }
    }
}
