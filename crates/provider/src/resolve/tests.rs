use super::*;
use crate::registry::Unusable;

fn registry(settings: &Settings, env: &[(&str, &str)], local: &[LocalServer]) -> Registry {
    let lookup = |name: &str| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    resolve(settings, &lookup, local)
}

fn default_of(env: &[(&str, &str)], local: &[LocalServer]) -> String {
    registry(&Settings::default(), env, local)
        .default_model()
        .to_owned()
}

fn server(provider: &str, models: &[&str]) -> LocalServer {
    LocalServer {
        provider: provider.into(),
        models: models.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn the_default_is_a_keyed_model_then_a_local_one_then_the_scripted_one() {
    let ollama = [server("ollama", &["qwen3:8b"])];
    assert_eq!(default_of(&[], &[]), "scripted");
    assert_eq!(default_of(&[], &ollama), "ollama");
    assert_eq!(default_of(&[("OPENAI_API_KEY", "k")], &ollama), "gpt");
    assert_eq!(
        default_of(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], &ollama),
        "sonnet"
    );
    assert_eq!(default_of(&[("ANTHROPIC_API_KEY", "  ")], &[]), "scripted");
}

#[test]
fn a_configured_default_wins_even_when_it_cannot_be_used() {
    let mut settings = Settings::default();
    settings.model.default = "sonnet".into();
    let registry = registry(&settings, &[], &[]);
    assert_eq!(registry.default_model(), "sonnet");
    let unusable = Unusable {
        name: "sonnet".into(),
        reason: "set ANTHROPIC_API_KEY in the environment of agentd and start it again".into(),
    };
    assert_eq!(registry.get("auto").map(|spec| spec.name.clone()), Err(unusable));
}

#[test]
fn an_unknown_model_is_answered_with_the_known_ones() {
    let error = registry(&Settings::default(), &[], &[])
        .get("gpt-9")
        .unwrap_err()
        .to_string();
    let expected = "model gpt-9 cannot be used: there is no such model under [models]; known are gpt, llamacpp, ollama, scripted, sonnet";
    assert_eq!(error, expected);
}

#[test]
fn i8_a_resolved_key_is_in_the_spec_and_in_no_row() {
    let registry = registry(&Settings::default(), &[("ANTHROPIC_API_KEY", "sk-ant-1")], &[]);
    let spec = registry.get("sonnet").unwrap();
    assert_eq!(
        spec.credential().map(|credential| credential.secret.expose()),
        Some("sk-ant-1")
    );
    assert!(!format!("{registry:?}{:?}", registry.rows()).contains("sk-ant-1"));
    assert_eq!(
        registry.secrets().map(Secret::expose).collect::<Vec<_>>(),
        ["sk-ant-1"]
    );
}

#[test]
fn i8_a_key_is_known_also_when_no_model_can_use_it() {
    let mut settings = Settings::default();
    settings.models.clear();
    let registry = registry(&settings, &[("OPENAI_API_KEY", "sk-idle-1")], &[]);
    assert_eq!(
        registry.secrets().map(Secret::expose).collect::<Vec<_>>(),
        ["sk-idle-1"]
    );
}

#[test]
fn a_local_server_without_the_configured_model_is_asked_for_what_it_has() {
    let of = |models: &[&str]| {
        let registry = registry(&Settings::default(), &[], &[server("ollama", models)]);
        registry.get("ollama").map(|spec| spec.model.clone())
    };
    assert_eq!(of(&["llama3", "qwen3:8b"]), Ok("qwen3".to_owned()));
    assert_eq!(of(&["llama3"]), Ok("llama3".to_owned()));
}

#[test]
fn dialects_that_are_not_there_yet_say_so() {
    let mut settings = Settings::default();
    if let Some(provider) = settings.providers.get_mut("openai") {
        provider.dialect = Dialect::Gemini;
    }
    let error = registry(&settings, &[("OPENAI_API_KEY", "k")], &[])
        .get("gpt")
        .unwrap_err();
    assert_eq!(
        error.reason,
        "dialect gemini is not available yet; use anthropic, openai-chat or scripted"
    );
}

#[test]
fn a_key_can_come_from_a_file_and_a_missing_file_is_named() {
    let mut settings = Settings::default();
    let path = std::env::temp_dir().join(format!("agentd-provider-key-{}", std::process::id()));
    std::fs::write(&path, "sk-from-file\n").unwrap();
    if let Some(provider) = settings.providers.get_mut("openai") {
        let file = Some(path.display().to_string());
        provider.credentials = vec![CredentialConfig {
            name: "f".into(),
            file,
            ..CredentialConfig::default()
        }];
    }
    let key = registry(&settings, &[], &[])
        .get("gpt")
        .map(|spec| spec.credentials.clone());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        key,
        Ok(vec![Credential {
            name: "f".into(),
            found_in: path.display().to_string(),
            secret: Secret::new("sk-from-file")
        }])
    );
    let reason = registry(&settings, &[], &[]).get("gpt").unwrap_err().reason;
    assert!(
        reason.starts_with(&format!("{} cannot be read", path.display())),
        "{reason}"
    );
}

#[test]
fn only_servers_on_this_machine_without_keys_are_probed() {
    let names: Vec<String> = crate::probe::local_servers(&Settings::default())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["ollama", "llamacpp"]);
}
