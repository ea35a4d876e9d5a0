//! `[hooks]`: the operator's commands that agentd runs on events, and that may prevent some of them.

use crate::duration;
use agentd_protocol::HookEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The maximum number of hooks.
const MOST: usize = 32;
/// The maximum time limit of a hook.
const LONGEST: Duration = Duration::from_secs(600);

/// `[hooks]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksConfig {
    /// Concurrent hooks of one session.
    pub max_concurrent: u32,
    /// How often per turn Stop hooks may make it continue.
    pub stop_rounds: u32,
    /// The hooks, in the order in which they run.
    pub run: Vec<HookConfig>,
}

/// How often the hooks before a call run until each has seen the final input. After that, the call is denied.
pub const HOOK_ROUNDS: u32 = 3;

/// Replaces the missing answer of a hook that failed or timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFallback {
    /// Continue as if the hook did not exist.
    Ignore,
    /// Ask a person.
    Ask,
    /// Prevent the action.
    Deny,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The name that users see.
    pub name: String,
    /// The event that it runs on.
    pub event: HookEvent,
    /// The tools whose calls it runs on; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The absolute path of the program, and its arguments.
    pub command: Vec<String>,
    /// Its time limit.
    #[serde(default = "minute", with = "duration::plain")]
    pub timeout: Duration,
    /// What happens if it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<HookFallback>,
    /// What happens if its time limit expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<HookFallback>,
    /// Whether its allow replaces a person's approval where the rules ask for one.
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
    /// A hook with only the required fields.
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

    /// Whether the hook runs on this event; events without a call have no tool.
    #[must_use]
    pub fn hears(&self, event: HookEvent, tool: &str) -> bool {
        self.event == event && (self.tools.is_empty() || self.tools.iter().any(|name| name == tool))
    }

    /// The replacement for a missing answer: an action that a hook may prevent is prevented (I7), a question goes to
    /// the person, and where there is nothing to decide, agentd ignores the hook.
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
            return Some(("invalid name of a hook", "use letters, digits, -, _ and ."));
        }
        if !self
            .command
            .first()
            .is_some_and(|program| program.starts_with('/'))
        {
            return Some((
                "the command of a hook must begin with the absolute path of a program",
                "write command = [\"/usr/local/bin/check\", \"--strict\"]",
            ));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST {
            return Some((
                "the timeout of a hook is out of range",
                "give more than 0s and at most 10m",
            ));
        }
        self.misfit()
    }

    /// A setting that does not fit the hook's event.
    fn misfit(&self) -> Option<(&'static str, &'static str)> {
        let event = self.event;
        let fallbacks = || [self.on_failure, self.on_timeout].into_iter().flatten();
        if !event.prevents() && fallbacks().any(|fallback| fallback != HookFallback::Ignore) {
            return Some((
                "a hook of this event cannot prevent anything",
                "remove on_failure and on_timeout, or use another event, such as PreToolUse",
            ));
        }
        if !event.is_of_call() && fallbacks().any(|fallback| fallback == HookFallback::Ask) {
            return Some((
                "only events of tool calls support \"ask\"",
                "write on_failure and on_timeout = \"deny\" or \"ignore\"",
            ));
        }
        if !event.is_of_call() && !self.tools.is_empty() {
            return Some((
                "only hooks for events of tool calls can have a list of tools",
                "remove tools",
            ));
        }
        (self.may_allow && event != HookEvent::PermissionRequest).then_some((
            "only a hook of the event PermissionRequest may allow",
            "remove may_allow",
        ))
    }
}

impl HooksConfig {
    /// The first invalid hook: its index, the problem, and the remedy.
    pub(crate) fn problem(&self) -> Option<(usize, &'static str, &'static str)> {
        let mut names = BTreeSet::new();
        self.run.iter().enumerate().find_map(|(n, hook)| {
            if n >= MOST {
                return Some((n, "too many hooks", "keep at most 32"));
            }
            if !names.insert(&hook.name) {
                return Some((n, "two hooks have the same name", "give each hook its own name"));
            }
            hook.problem().map(|(what, fix)| (n, what, fix))
        })
    }

    /// The longest time that all hooks before a call may take together.
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

    /// The events that have hooks.
    #[must_use]
    pub fn heard(&self) -> Vec<HookEvent> {
        let any = |event: &HookEvent| self.run.iter().any(|hook| hook.event == *event);
        HookEvent::ALL.into_iter().filter(any).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::settings_with;
    use toml::Table;
    use toml::de::DeTable;

    fn read(text: &str) -> Result<HooksConfig, String> {
        let settings = DeTable::parse(text).and_then(|layer| settings_with(&layer));
        settings
            .map(|settings| settings.hooks)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn i7_a_hook_before_a_call_denies_when_it_fails_unless_the_operator_says_otherwise() {
        let config = read(
            r#"hooks.run = [
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
        let written = toml::Value::try_from(&config).unwrap();
        let written = Table::from_iter([("hooks".to_owned(), written)]).to_string();
        assert_eq!(read(&written), Ok(config));
    }

    #[test]
    fn an_invalid_hook_is_refused() {
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
            let config = read(&format!("hooks.run = [{bad}]")).unwrap();
            assert!(config.problem().is_some(), "{bad}");
        }
        assert!(read(r#"hooks.run = [{ name = "a", event = "Midnight", command = ["/a"] }]"#).is_err());
        assert!(
            read(r#"hooks.run = [{ name = "a", event = "PreToolUse", command = ["/a"], tool = "Bash" }]"#)
                .is_err()
        );
    }

    #[test]
    fn i7_a_failed_hook_blocks_its_action_and_never_answers_for_a_person() {
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
