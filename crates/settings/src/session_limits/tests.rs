use super::{CLIENT, LimitOverrides};
use crate::tests::{flags, with_file};
use crate::{Loaded, Origin, load};
use agentd_protocol::{Budget, LoopLimits, OnDeny, OnLimit, Planning, Preset, ToolProtocol};

/// The limits alone, without their origins.
fn values(loaded: &Loaded, asked: &LimitOverrides) -> LoopLimits {
    let mut limits = loaded.limits(asked).0;
    limits.from.clear();
    limits
}

fn asking(preset: Preset) -> LimitOverrides {
    LimitOverrides {
        preset: Some(preset),
        ..LimitOverrides::default()
    }
}

fn limits(preset: Preset) -> LoopLimits {
    values(&Loaded::default(), &asking(preset))
}

#[test]
fn presets_default_and_clawd_have_100_steps_and_ask() {
    assert_eq!(limits(Preset::Default), LoopLimits::default());
    assert_eq!(limits(Preset::Clawd), LoopLimits::default());
}

#[test]
fn preset_openclaw_has_30_steps_and_stops() {
    let expected = LoopLimits {
        max_turns: 30,
        on_limit: OnLimit::Stop,
        intent_retries: 0,
        max_output: Some(8_192),
        ..LoopLimits::default()
    };
    assert_eq!(limits(Preset::Openclaw), expected);
}

#[test]
fn preset_etcode_has_no_step_limit_and_stops_at_a_denial() {
    let expected = LoopLimits {
        turn_cap: 1_000_000,
        on_limit: OnLimit::Stop,
        intent_retries: 0,
        on_deny: OnDeny::Stop,
        ..LoopLimits::default()
    };
    assert_eq!(limits(Preset::Etcode), expected);
}

#[test]
fn preset_react_has_its_documented_limits() {
    let expected = LoopLimits {
        planning: Planning {
            enabled: true,
            intent_gate: true,
            ..Planning::default()
        },
        max_turns: 20,
        on_limit: OnLimit::Stop,
        intent_retries: 0,
        tool_protocol: Some(ToolProtocol::JsonText),
        max_messages: 30,
        keyword_windows: true,
        ..LoopLimits::default()
    };
    assert_eq!(limits(Preset::React), expected);
    assert!(expected.stutter_guard);
}

#[test]
fn a_configured_preset_applies_to_sessions() {
    for preset in [
        Preset::Default,
        Preset::Clawd,
        Preset::Openclaw,
        Preset::Etcode,
        Preset::React,
    ] {
        let name = toml::Value::try_from(preset).unwrap();
        let loaded = load(&flags(&[("loop.preset", name.as_str().unwrap())])).unwrap();
        let got = values(&loaded, &LimitOverrides::default());
        assert_eq!(got, limits(preset), "{preset:?}");
    }
}

#[test]
fn explicit_settings_override_the_preset() {
    let loaded = load(&flags(&[
        ("loop.preset", "etcode"),
        ("permission.on_deny", "continue"),
    ]))
    .unwrap();
    let expected = LoopLimits {
        on_deny: OnDeny::Continue,
        ..limits(Preset::Etcode)
    };
    assert_eq!(values(&loaded, &LimitOverrides::default()), expected);
    assert_eq!(
        loaded.origins.get("loop.turn_cap"),
        Some(&Origin::Preset(Preset::Etcode))
    );
    assert_eq!(
        loaded.origins.get("permission.on_deny"),
        Some(&Origin::Flag("permission.on_deny".into()))
    );
}

#[test]
fn a_session_may_override_its_limits() {
    let loaded = load(&flags(&[
        ("permission.ask_timeout", "2m"),
        ("permission.unattended_timeout", "3s"),
    ]))
    .unwrap();
    let overrides = LimitOverrides {
        max_turns: Some((5, CLIENT.to_owned())),
        headless: true,
        ..LimitOverrides::default()
    };
    let expected = LoopLimits {
        max_turns: 5,
        headless: true,
        ask_timeout_ms: Some(120_000),
        unattended_ms: Some(3_000),
        ..LoopLimits::default()
    };
    assert_eq!(values(&loaded, &overrides), expected);
    let attended = LimitOverrides {
        headless: false,
        ..overrides
    };
    assert_eq!(
        values(&loaded, &attended),
        LoopLimits {
            headless: false,
            unattended_ms: None,
            ..expected
        }
    );
}

#[test]
fn i7_no_preset_or_flag_raises_the_operators_limits() {
    let text = "[loop]\nmax_turns = 40\nturn_cap = 50\non_limit = \"stop\"\nincomplete_intent_retries = 1\n\
                [permission]\non_deny = \"stop\"\n[context]\nmax_messages = 20\n";
    let loaded = with_file(text).0.unwrap();
    for preset in [
        Preset::Default,
        Preset::Clawd,
        Preset::Openclaw,
        Preset::Etcode,
        Preset::React,
    ] {
        let mut asked = asking(preset);
        let (limits, _) = loaded.limits(&asked);
        let steps = match preset {
            Preset::Openclaw => 30,
            Preset::React => 20,
            Preset::Default | Preset::Clawd | Preset::Etcode => 40,
        };
        assert_eq!(limits.step_cap(), Some(steps), "{preset:?}");
        assert_eq!((limits.turn_cap, limits.max_messages), (50, 20), "{preset:?}");
        assert_eq!(
            (limits.on_deny, limits.on_limit),
            (OnDeny::Stop, OnLimit::Stop),
            "{preset:?}"
        );
        assert!(
            limits.intent_retries <= 1 && limits.failing_steps == 3,
            "{preset:?}"
        );
        for turns in [-1, 45, 1_000_000] {
            asked.max_turns = Some((turns, CLIENT.to_owned()));
            assert_eq!(loaded.limits(&asked).0.step_cap(), Some(40), "{preset:?} {turns}");
        }
        asked.max_turns = Some((7, CLIENT.to_owned()));
        assert_eq!(loaded.limits(&asked).0.step_cap(), Some(7), "{preset:?}");
    }
}

#[test]
fn each_limit_says_where_it_comes_from() {
    let (loaded, file) = with_file("[loop]\nturn_cap = 50\nfailing_steps = 2\n");
    let (loaded, file) = (loaded.unwrap(), file.display().to_string());
    let mut asked = asking(Preset::Etcode);
    asked.max_turns = Some((9, CLIENT.to_owned()));
    asked.budget = Some(Budget {
        tokens: 10,
        ..Budget::default()
    });
    let (limits, budget) = loaded.limits(&asked);
    let from = |key: &str| limits.from.get(key).map_or("", String::as_str);
    assert_eq!(budget.tokens, 10);
    assert_eq!(from("turn_cap"), format!("{file}:2"));
    assert_eq!(from("failing_steps"), format!("{file}:3"));
    assert_eq!(from("max_turns"), "the client");
    assert_eq!(from("on_deny"), "preset etcode");
    assert_eq!(from("budget.tokens"), "the client");
    assert_eq!(from("repeated_calls"), "", "a built-in default needs no word");
    let configured = load(&flags(&[("loop.preset", "etcode")])).unwrap();
    let (limits, _) = configured.limits(&LimitOverrides::default());
    let from = limits.from.get("on_deny").map(String::as_str);
    assert_eq!(from, Some("loop.preset = etcode"));
    let (limits, _) = configured.limits(&asking(Preset::Clawd));
    assert_eq!(
        limits.on_deny,
        OnDeny::Continue,
        "a configured preset is a default, not a limit"
    );
}

#[test]
fn an_operators_budget_is_a_ceiling_and_a_default() {
    let text = "[budget]\nsession = { tokens = 1000, usd = 0.5, time = \"1m\", steps = 10 }\n";
    let (loaded, file) = with_file(text);
    let loaded = loaded.unwrap();
    let spend = |asked: Budget| {
        let asked = LimitOverrides {
            budget: Some(asked),
            ..LimitOverrides::default()
        };
        loaded.limits(&asked).1
    };
    let own = loaded.settings.budget.session.budget();
    assert_eq!(spend(Budget::default()), own, "0 is no way around it");
    let (much, little) = (
        Budget {
            tokens: 5000,
            usd: 9.0,
            time_ms: 3_600_000,
            steps: 99,
        },
        Budget {
            tokens: 10,
            usd: 0.1,
            time_ms: 1_000,
            steps: 1,
        },
    );
    assert_eq!((spend(much), spend(little)), (own, little));
    assert_eq!(loaded.above_ceiling(&little), None);
    assert_eq!(loaded.above_ceiling(&own), None);
    let above = loaded.above_ceiling(&much).unwrap();
    assert_eq!(
        (above.key.as_str(), above.limit.as_str()),
        ("budget.session.tokens", "1000")
    );
    assert_eq!(above.origin, Origin::File(file, 2));
    let unlimited = loaded.above_ceiling(&Budget { time_ms: 0, ..own }).unwrap();
    assert_eq!(
        (unlimited.key.as_str(), unlimited.limit.as_str()),
        ("budget.session.time", "1m")
    );
    assert_eq!(Loaded::default().above_ceiling(&much), None);
}
