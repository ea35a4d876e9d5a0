//! Help topics and completion scripts.

use super::*;

#[test]
fn every_topic_is_found_and_named_by_the_program() {
    for (name, text) in TOPICS {
        assert!(super::text(Some(name)).unwrap().starts_with(text), "{name}");
        assert!(super::text(None).unwrap().contains(name), "{name}");
    }
}

#[test]
fn every_verb_has_its_help() {
    for verb in Cli::command().get_subcommands() {
        assert!(
            text(Some(verb.get_name())).unwrap().contains("Usage:"),
            "{}",
            verb.get_name()
        );
    }
    let fault = text(Some("nonsense")).unwrap_err().fault();
    assert_eq!(
        (fault.class.exit_code(), fault.code.as_str()),
        (2, "unknown_topic")
    );
}

#[test]
fn the_state_topic_names_every_state() {
    use agentd_protocol::{RunState, WaitReason};
    let states = [
        RunState::Queued,
        RunState::Starting,
        RunState::RunningModel,
        RunState::RunningTool,
        RunState::BackingOff,
        RunState::Compacting,
        RunState::Paused,
        RunState::Idle,
        RunState::Failed,
        RunState::Closed,
        RunState::Faulted,
    ];
    let waits = [
        WaitReason::Approval,
        WaitReason::Question,
        WaitReason::Limit,
        WaitReason::Child,
        WaitReason::Permit,
        WaitReason::RateLimit,
        WaitReason::Provider,
        WaitReason::Quota,
        WaitReason::Credentials,
        WaitReason::Workspace,
    ];
    let text = text(Some("states")).unwrap();
    for state in states.into_iter().chain(waits.map(RunState::Waiting)) {
        assert!(text.contains(&format!("\n  {state} ")), "{state}");
    }
}

#[test]
fn completion_scripts_ask_the_program_itself() {
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Elvish,
        Shell::Powershell,
    ] {
        let script = String::from_utf8(script(shell).unwrap()).unwrap();
        assert!(
            script.contains("COMPLETE") && script.contains("agentctl"),
            "{shell:?}"
        );
    }
}

#[test]
fn the_hooks_topic_names_every_event() {
    let topic = text(Some("hooks")).unwrap();
    for event in agentd_protocol::HookEvent::ALL {
        assert!(topic.contains(&format!("{event:?}")), "{event:?}");
    }
}
