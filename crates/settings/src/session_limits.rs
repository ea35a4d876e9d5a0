//! The limits of one session: the requested values, bounded by the operator's.
//!
//! A value that the operator set (in a file, the environment, or a flag of the daemon) is a ceiling: a preset or a
//! client's flag can make it stricter, never looser. Built-in defaults and the configured preset are no ceilings.

use crate::load::Loaded;
use crate::origin::Origin;
use crate::preset::{Values, values};
use crate::session::Shape;
use agentd_protocol::{Budget, LoopLimits, OnDeny, OnLimit, Planning, Preset, ThinkingLevel, ToolProtocol};
use std::collections::BTreeMap;
use std::time::Duration;

/// Tokens of one answer in the preset `openclaw`. A model with a lower limit keeps it.
const OPENCLAW_OUTPUT: u32 = 8_192;

/// The origin of a value that came with a request.
pub const CLIENT: &str = "the client";

/// The values that one session requests over the daemon's settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LimitOverrides {
    /// A preset other than the daemon's.
    pub preset: Option<Preset>,
    /// Steps per turn, and who requests them.
    pub max_turns: Option<(i32, String)>,
    /// Its budget; absent: as configured.
    pub budget: Option<Budget>,
    /// Whether the session runs without a viewer.
    pub headless: bool,
    /// The model's thinking level.
    pub thinking: Option<ThinkingLevel>,
}

/// A budget above an operator's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveCeiling {
    /// The key of the limit.
    pub key: String,
    /// The limit as text.
    pub limit: String,
    /// Where it was set.
    pub origin: Origin,
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The ceilings, and the origin of each resulting limit.
struct Ceilings<'a> {
    origins: &'a BTreeMap<String, Origin>,
    from: BTreeMap<String, String>,
}

impl Ceilings<'_> {
    /// The effective limit: the requested value if it is stricter or no operator set one, else the configured value.
    fn hold<T: PartialEq>(
        &mut self,
        (section, key): (&str, &str),
        configured: T,
        asked: Option<(T, &str)>,
        stricter: impl FnOnce(&T, &T) -> bool,
    ) -> T {
        let origin = self.origins.get(&format!("{section}.{key}"));
        let name = section
            .strip_suffix(".session")
            .map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"));
        match asked {
            Some((value, who))
                if origin.is_none_or(|origin| !origin.is_operator()) || stricter(&value, &configured) =>
            {
                self.from.insert(name, who.to_owned());
                value
            }
            _ => {
                if let Some(origin) = origin.filter(|origin| !matches!(origin, Origin::Shipped(_))) {
                    self.from.insert(name, origin.to_string());
                }
                configured
            }
        }
    }
}

/// Whether the value is stricter; 0: no limit.
fn less<T: PartialOrd + Default>(value: &T, than: &T) -> bool {
    let none = T::default();
    *value != none && (*than == none || value < than)
}

/// Whether the requested value exceeds the limit; 0 requests no limit.
fn exceeds<T: PartialOrd + Default>(asked: &T, limit: &T) -> bool {
    let none = T::default();
    *limit != none && (*asked == none || asked > limit)
}

/// Whether the number of steps is stricter; -1 stands for the cap.
fn fewer_turns(value: &i32, than: &i32) -> bool {
    let steps = |turns: i32| u32::try_from(turns).unwrap_or(u32::MAX);
    steps(*value) < steps(*than)
}

const fn rank(on_limit: OnLimit) -> u8 {
    match on_limit {
        OnLimit::Stop => 0,
        OnLimit::Summarize => 1,
        OnLimit::Ask => 2,
    }
}

impl Loaded {
    /// The loop settings and the budget of one session, with the origin of each limit.
    #[must_use]
    pub fn limits(&self, asked: &LimitOverrides) -> (LoopLimits, Budget) {
        let mut ceilings = Ceilings {
            origins: &self.origins,
            from: BTreeMap::new(),
        };
        let mut limits = self.configured(asked);
        let preset = asked
            .preset
            .filter(|preset| *preset != self.settings.r#loop.preset);
        let named = preset.map(|preset| (values(preset), format!("preset {}", preset.as_str())));
        let named = named.as_ref().map(|(values, name)| (values, name.as_str()));
        let turns = asked
            .max_turns
            .as_ref()
            .map(|(turns, who)| ((*turns).max(-1), who.as_str()));
        ceilings.hold_limits(&mut limits, named, turns);
        if let Some((values, _)) = named {
            limits.planning.enabled = values.planning;
            limits.planning.intent_gate = values.planning;
            limits.keyword_windows = values.shape == Shape::Keywords;
        }
        let configured = self.settings.budget.session.budget();
        let budget = ceilings.hold_budget(configured, asked.budget);
        limits.from = ceilings.from;
        (limits, budget)
    }

    /// The part of a budget that exceeds the operator's limit, if any.
    #[must_use]
    pub fn above_ceiling(&self, asked: &Budget) -> Option<AboveCeiling> {
        let own = &self.settings.budget.session;
        let limit = own.budget();
        let time = || humantime::format_duration(own.time).to_string();
        let rows = [
            (
                "tokens",
                exceeds(&asked.tokens, &limit.tokens),
                limit.tokens.to_string(),
            ),
            ("usd", exceeds(&asked.usd, &limit.usd), limit.usd.to_string()),
            ("time", exceeds(&asked.time_ms, &limit.time_ms), time()),
            (
                "steps",
                exceeds(&asked.steps, &limit.steps),
                limit.steps.to_string(),
            ),
        ];
        rows.into_iter()
            .filter(|(_, above, _)| *above)
            .find_map(|(key, _, limit)| {
                let key = format!("budget.session.{key}");
                let origin = self
                    .origins
                    .get(&key)
                    .filter(|origin| origin.is_operator())?
                    .clone();
                Some(AboveCeiling { key, limit, origin })
            })
    }

    /// The configured limits, before any request.
    fn configured(&self, asked: &LimitOverrides) -> LoopLimits {
        let (of_loop, permission) = (&self.settings.r#loop, &self.settings.permission);
        let preset = asked.preset.unwrap_or(of_loop.preset);
        LoopLimits {
            max_turns: of_loop.max_turns,
            turn_cap: of_loop.turn_cap,
            on_limit: of_loop.on_limit,
            intent_retries: of_loop.incomplete_intent_retries,
            max_parallel_tools: of_loop.max_parallel_tools,
            on_deny: permission.on_deny,
            failing_steps: of_loop.failing_steps,
            repeated_calls: of_loop.repeated_calls,
            longest_cycle: of_loop.longest_cycle,
            stutter_guard: of_loop.stutter_guard,
            headless: asked.headless,
            ask_timeout_ms: permission.ask_timeout.map(ms),
            unattended_ms: permission.unattended_timeout.filter(|_| asked.headless).map(ms),
            thinking: asked.thinking,
            tool_protocol: (preset == Preset::React).then_some(ToolProtocol::JsonText),
            max_output: (preset == Preset::Openclaw).then_some(OPENCLAW_OUTPUT),
            keyword_windows: self.settings.tools.shape == Shape::Keywords,
            planning: Planning {
                enabled: of_loop.planning,
                intent_gate: of_loop.intent_gate,
                max_steps: of_loop.plan_steps,
                max_replans: of_loop.plan_changes,
            },
            max_messages: self.settings.context.max_messages,
            from: BTreeMap::new(),
        }
    }
}

impl Ceilings<'_> {
    fn hold_limits(
        &mut self,
        limits: &mut LoopLimits,
        preset: Option<(&Values, &str)>,
        turns: Option<(i32, &str)>,
    ) {
        let turns = turns.or(preset.map(|(it, who)| (it.max_turns, who)));
        limits.max_turns = self.hold(("loop", "max_turns"), limits.max_turns, turns, fewer_turns);
        let asked = preset.map(|(it, who)| (it.turn_cap, who));
        limits.turn_cap = self.hold(("loop", "turn_cap"), limits.turn_cap, asked, |a, b| a < b);
        let asked = preset.map(|(it, who)| (it.on_limit, who));
        limits.on_limit = self.hold(("loop", "on_limit"), limits.on_limit, asked, |a, b| {
            rank(*a) < rank(*b)
        });
        let (key, asked) = (
            "incomplete_intent_retries",
            preset.map(|(it, who)| (it.intent_retries, who)),
        );
        limits.intent_retries = self.hold(("loop", key), limits.intent_retries, asked, |a, b| a < b);
        let asked = preset.map(|(it, who)| (it.stutter_guard, who));
        limits.stutter_guard = self.hold(("loop", "stutter_guard"), limits.stutter_guard, asked, |a, b| {
            a > b
        });
        let asked = preset.map(|(it, who)| (it.on_deny, who));
        let stops = |a: &OnDeny, b: &OnDeny| *a == OnDeny::Stop && *b != OnDeny::Stop;
        limits.on_deny = self.hold(("permission", "on_deny"), limits.on_deny, asked, stops);
        let asked = preset.map(|(it, who)| (it.max_messages, who));
        limits.max_messages = self.hold(("context", "max_messages"), limits.max_messages, asked, less);
        limits.failing_steps = self.hold(("loop", "failing_steps"), limits.failing_steps, None, less);
        limits.repeated_calls = self.hold(("loop", "repeated_calls"), limits.repeated_calls, None, less);
        limits.longest_cycle = self.hold(("loop", "longest_cycle"), limits.longest_cycle, None, less);
    }

    fn hold_budget(&mut self, configured: Budget, asked: Option<Budget>) -> Budget {
        const SECTION: &str = "budget.session";
        let client = |budget: Budget| (budget, CLIENT);
        let asked = asked.map(client);
        Budget {
            tokens: self.hold(
                (SECTION, "tokens"),
                configured.tokens,
                asked.map(|(it, who)| (it.tokens, who)),
                less,
            ),
            usd: self.hold(
                (SECTION, "usd"),
                configured.usd,
                asked.map(|(it, who)| (it.usd, who)),
                less,
            ),
            time_ms: self.hold(
                (SECTION, "time"),
                configured.time_ms,
                asked.map(|(it, who)| (it.time_ms, who)),
                less,
            ),
            steps: self.hold(
                (SECTION, "steps"),
                configured.steps,
                asked.map(|(it, who)| (it.steps, who)),
                less,
            ),
        }
    }
}

#[cfg(test)]
mod tests;
