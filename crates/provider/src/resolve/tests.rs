use super::*;
use crate::registry::Unusable;
use crate::secret::Secret;
use crate::spec::{Adjust, Credential};
use agentd_settings::Credential as CredentialConfig;

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
        ..LocalServer::default()
    }
}

#[test]
fn the_default_is_a_keyed_model_then_a_local_one_and_never_a_scripted_one() {
    let ollama = [server("ollama", &["qwen3:8b"])];
    assert_eq!(default_of(&[], &[]), "");
    assert_eq!(default_of(&[], &ollama), "ollama");
    assert_eq!(default_of(&[("OPENAI_API_KEY", "k")], &ollama), "gpt");
    assert_eq!(
        default_of(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], &ollama),
        "sonnet"
    );
    assert_eq!(default_of(&[("ANTHROPIC_API_KEY", "  ")], &[]), "");
    assert_eq!(default_of(&[("GEMINI_API_KEY", "k")], &ollama), "gemini");
    let mut settings = Settings::default();
    let key = CredentialConfig {
        name: "main".into(),
        env: Some("OLLAMA_KEY".into()),
        ..CredentialConfig::default()
    };
    settings.providers.get_mut("ollama").unwrap().credentials = vec![key];
    let of = |env: &[(&str, &str)]| registry(&settings, env, &[]).default_model().to_owned();
    assert_eq!(
        of(&[("OLLAMA_KEY", "k")]),
        "ollama",
        "a dialect that mostly needs no key"
    );
    assert_eq!(of(&[("OLLAMA_KEY", "k"), ("GEMINI_API_KEY", "k")]), "gemini");
}

#[test]
fn i8_a_key_in_a_header_is_known_as_a_secret() {
    let mut settings = Settings::default();
    settings.models.clear();
    let headers = [
        ("X-Api-Key", "hk-4711-1"),
        ("authorization", "Bearer hk-4711-2"),
        ("x-team", "infrastructure"),
    ];
    let openai = settings.providers.get_mut("openai").unwrap();
    openai.headers = headers.map(|(name, value)| (name.into(), value.into())).into();
    let registry = registry(&settings, &[], &[]);
    assert_eq!(
        registry.secrets().map(Secret::expose).collect::<Vec<_>>(),
        ["hk-4711-1", "Bearer hk-4711-2", "hk-4711-2"]
    );
}

#[test]
fn without_a_model_the_reason_names_the_ways_to_one() {
    let mut settings = Settings::default();
    let why = registry(&settings, &[], &[]).get("auto").unwrap_err().to_string();
    for way in [
        "ANTHROPIC_API_KEY or GEMINI_API_KEY or OPENAI_API_KEY",
        "Ollama",
        "agentd/config.toml",
        "agentctl demo",
    ] {
        assert!(why.contains(way), "{way}: {why}");
    }
    // A model with a script of its own is not chosen either.
    let played = ModelConfig {
        provider: "scripted".into(),
        model: "builtin".into(),
        ..ModelConfig::default()
    };
    settings.models.insert("played".into(), played);
    let registry = registry(&settings, &[], &[]);
    assert_eq!(registry.default_model(), "");
    assert_eq!(registry.get("played").unwrap().dialect, Dialect::Scripted);
}

#[test]
fn a_configured_default_wins_even_when_it_cannot_be_used() {
    let mut settings = Settings::default();
    settings.model.default = "sonnet".into();
    let registry = registry(&settings, &[], &[]);
    assert_eq!(registry.default_model(), "sonnet");
    let unusable = Unusable {
        name: "sonnet".into(),
        reason: "set ANTHROPIC_API_KEY in the environment of agentd and restart it".into(),
    };
    assert_eq!(registry.get("auto").map(|spec| spec.name.clone()), Err(unusable));
}

#[test]
fn an_unknown_model_is_answered_with_the_known_ones() {
    let error = registry(&Settings::default(), &[], &[])
        .get("gpt-9")
        .unwrap_err()
        .to_string();
    let expected = "cannot use model gpt-9: there is no such model under [models]; the known models are: gemini, gpt, llamacpp, ollama, scripted, sonnet";
    assert_eq!(error, expected);
}

#[test]
fn i8_a_resolved_key_is_in_the_spec_and_in_no_row() {
    let registry = registry(&Settings::default(), &[("ANTHROPIC_API_KEY", "sk-ant-1")], &[]);
    let spec = registry.get("sonnet").unwrap();
    assert_eq!(
        spec.credential(None).map(|credential| credential.secret.expose()),
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
fn a_local_server_knows_better_how_much_it_holds() {
    let mut local = server("llamacpp", &["q.gguf"]);
    local.windows.insert("q.gguf".into(), 4_096);
    local.slots = Some(1);
    local.seeing = vec!["q.gguf".into()];
    let spec = |local: &LocalServer| {
        let registry = registry(&Settings::default(), &[], std::slice::from_ref(local));
        let note = registry.models.get("llamacpp").map(|entry| entry.note.clone());
        let spec = registry.get("llamacpp").unwrap();
        let learned = (
            spec.context_window,
            spec.max_output,
            spec.max_concurrent,
            spec.capabilities.images,
        );
        (spec.model.clone(), learned, note.unwrap())
    };
    let note = "the server has q.gguf instead of default; the context window of the server is 4096 tokens instead of 32768";
    assert_eq!(
        spec(&local),
        ("q.gguf".into(), (4_096, 2_048, 1, true), note.into())
    );
    let larger = LocalServer {
        windows: std::iter::once(("q.gguf".to_owned(), 1 << 20)).collect(),
        ..server("llamacpp", &["q.gguf"])
    };
    let note = "the server has q.gguf instead of default";
    assert_eq!(
        spec(&larger),
        ("q.gguf".into(), (32_768, 4_096, 2, false), note.into())
    );
}

#[test]
fn a_raw_completion_is_told_about_tools_in_text() {
    let mut settings = Settings::default();
    if let Some(provider) = settings.providers.get_mut("llamacpp") {
        provider.dialect = Dialect::LlamaCompletion;
    }
    let spec = registry(&settings, &[], &[]).get("llamacpp").unwrap();
    assert_eq!(spec.tool_protocol, ToolProtocol::JsonText);
    let native = Adjust {
        tool_protocol: Some(ToolProtocol::Native),
        ..Adjust::default()
    };
    assert_eq!(spec.adjusted(&native).tool_protocol, ToolProtocol::JsonText);
}

#[test]
fn several_credentials_are_found_and_what_is_missing_is_told() {
    let mut settings = Settings::default();
    let credential = |name: &str, variable: &str| CredentialConfig {
        name: name.into(),
        env: Some(variable.into()),
        ..CredentialConfig::default()
    };
    if let Some(provider) = settings.providers.get_mut("openai") {
        provider.credentials = vec![
            credential("a", "KEY_A"),
            credential("b", "KEY_B"),
            credential("c", "KEY_C"),
        ];
    }
    let registry = registry(&settings, &[("KEY_A", "k-a"), ("KEY_C", "k-c")], &[]);
    let spec = registry.get("gpt").unwrap();
    let names: Vec<&str> = spec.credentials.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(
        registry.models["gpt"].note,
        "credentials a, c; set KEY_B in the environment of agentd and restart it"
    );
}

#[test]
fn a_configuration_that_promises_more_than_the_model_is_told() {
    let mut settings = Settings::default();
    if let Some(model) = settings.models.get_mut("gpt") {
        model.max_output = 200_000;
        model.context_window = 2_000_000;
    }
    let registry = registry(&settings, &[("OPENAI_API_KEY", "k")], &[]);
    assert_eq!(
        registry.models["gpt"].note,
        "credential main; context_window 2000000 exceeds the model's 1047576; max_output 200000 exceeds the model's 32768"
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
        reason.starts_with(&format!("cannot read {}", path.display())),
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

#[test]
fn a_window_that_a_server_told_leaves_room_for_the_question() {
    let registry = registry(&Settings::default(), &[("ANTHROPIC_API_KEY", "k")], &[]);
    let spec = registry.get("sonnet").unwrap();
    let sizes = |window| {
        let adjusted = spec.adjusted(&Adjust {
            window,
            ..Adjust::default()
        });
        (adjusted.context_window, adjusted.max_output)
    };
    assert_eq!(sizes(None), (200_000, 8_192));
    assert_eq!(sizes(Some(400_000)), (200_000, 8_192));
    assert_eq!(sizes(Some(32_768)), (32_768, 8_192));
    assert_eq!(sizes(Some(4_096)), (4_096, 2_048));
}
