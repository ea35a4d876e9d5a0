//! How the checks rate given facts.

use super::*;
use crate::verbs::doctor::Level;
use agentd_protocol::{CircuitState, CredentialHealth, CredentialStatus};

fn status(default: bool, dialect: &str, usable: bool) -> ModelStatus {
    ModelStatus {
        name: "m".into(),
        provider: "p".into(),
        model: "x".into(),
        dialect: dialect.into(),
        usable,
        note: "key main".into(),
        default,
        images: false,
        images_known: false,
        context_window: 0,
        price: None,
        running: 0,
        waiting: 0,
        permits: 0,
        paused_until: None,
        circuit: CircuitState::Closed,
        credentials: Vec::new(),
        untried: false,
        last_call: None,
    }
}

#[test]
fn the_default_model_must_exist_and_be_usable() {
    assert_eq!(model(&[status(true, "anthropic", true)]).level, Level::Ok);
    assert_eq!(model(&[status(true, "scripted", true)]).level, Level::Warn);
    assert_eq!(model(&[status(true, "anthropic", false)]).level, Level::Fail);
    assert_eq!(model(&[status(false, "anthropic", true)]).level, Level::Fail);
    let untried = ModelStatus {
        untried: true,
        ..status(true, "ollama", true)
    };
    assert_eq!(model(&[untried]).level, Level::Warn);
}

#[test]
fn credentials_that_need_a_person_are_named_once() {
    let credential = |name: &str, class| CredentialStatus {
        name: name.into(),
        health: CredentialHealth::Cooling,
        running: 0,
        until: None,
        class,
        failures: 1,
        buckets: Vec::new(),
    };
    let well = status(true, "anthropic", true);
    assert!(refused(std::slice::from_ref(&well)).is_none());
    let ill = ModelStatus {
        credentials: vec![
            credential("busy", Some(FailureClass::RateLimited)),
            credential("old", Some(FailureClass::Auth)),
            credential("poor", Some(FailureClass::QuotaExhausted)),
        ],
        ..well
    };
    let check = refused(&[ill.clone(), ill]).unwrap();
    assert_eq!(
        (check.level, check.message.as_str()),
        (
            Level::Warn,
            "currently unusable: old of p (auth), poor of p (quota_exhausted)"
        )
    );
}

#[test]
fn a_data_directory_that_others_can_read_fails() {
    let dir = tempfile::tempdir().unwrap();
    let set = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o700);
    assert_eq!(permissions(dir.path()).level, Level::Ok);
    set(0o750);
    let check = permissions(dir.path());
    assert_eq!(
        (check.level, check.fix),
        (Level::Fail, Some(format!("chmod 700 {}", dir.path().display())))
    );
    assert_eq!(permissions(&dir.path().join("none")).level, Level::Ok);
}

#[test]
fn low_disk_space_warns_and_less_fails() {
    let levels = [10 << 20, 500 << 20, 5 << 30].map(|bytes| free(Path::new("/d"), bytes).level);
    assert_eq!(levels, [Level::Fail, Level::Warn, Level::Ok]);
    assert_eq!(free(Path::new("/d"), 3 << 29).message, "1.5 GiB free at /d");
}

#[test]
fn a_clock_in_the_past_fails() {
    assert_eq!(clock(Timestamp(0)).level, Level::Fail);
    assert_eq!(clock(NOT_BEFORE).level, Level::Ok);
}
