use crate::layer::{dotted, settings_with};
use crate::{
    CredentialSource, Loaded, Origin, RuleConfig, SHIPPED, Settings, SettingsError, Sources, load, mask_url,
};
use agentd_protocol::{Budget, SandboxLevel};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeTable;
use toml::{Table, Value};

fn keys(table: &Table, path: &mut Vec<String>, found: &mut BTreeSet<String>) {
    for (name, value) in table {
        path.push(name.clone());
        match value {
            Value::Table(inner) => keys(inner, path, found),
            _ => {
                found.insert(dotted(path));
            }
        }
        path.pop();
    }
}

fn all_keys(table: &Table) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(table, &mut Vec::new(), &mut found);
    found
}

pub(crate) fn flags(flags: &[(&str, &str)]) -> Sources {
    let flags = flags
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Sources {
        flags,
        ..Sources::default()
    }
}

/// Loads with one file above the defaults.
pub(crate) fn with_file(text: &str) -> (Result<Loaded, SettingsError>, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    (
        load(&Sources {
            file: Some(path.clone()),
            ..Sources::default()
        }),
        path,
    )
}

/// The only problem of a file, without the file's name.
fn problem(text: &str) -> String {
    let (loaded, path) = with_file(text);
    loaded
        .unwrap_err()
        .to_string()
        .replace(&format!("{}:", path.display()), "line ")
}

#[test]
fn the_defaults_are_those_of_the_shipped_file() {
    assert_eq!(load(&Sources::default()).unwrap().settings, Settings::default());
    // A crate below has the same list, for sandboxes without settings.
    let unprotected = Settings::default().permission.unprotected;
    assert_eq!(unprotected, agentd_protected::DEFAULT_EXCEPTIONS);
    // What the file does not have, because another section decides it.
    let tools = Settings::default().tools;
    assert!(tools.project_skills && tools.search && tools.operator_directory.is_none());
}

#[test]
fn the_shipped_file_has_every_key_and_comments_each_section() {
    let shipped: Table = toml::from_str(SHIPPED).unwrap();
    let defaults = Table::try_from(Settings::default()).unwrap();
    assert_eq!(all_keys(&shipped), all_keys(&defaults));
    for (number, line) in SHIPPED.lines().enumerate() {
        // Each rule and each list is on one line, so these lines may be longer.
        let most = if line.starts_with('#') { 125 } else { 170 };
        assert!(line.len() <= most, "line {} is long", number + 1);
    }
}

#[test]
fn layers_override_single_keys_and_every_key_knows_its_origin() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let system = file(
        "system.toml",
        "[loop]\nturn_cap = 10\nmax_turns = 4\n\n[models.sonnet]\nmax_output = 100\n",
    );
    let user = file("user.toml", "loop.turn_cap = 20\n");
    let given = file("given.toml", "[sandbox]\nenv = [\"CARGO_HOME\"]\n");
    let sources = Sources {
        optional: vec![system.clone(), dir.path().join("missing.toml"), user.clone()],
        file: Some(given.clone()),
        environment: [
            ("AGENTD_TOOLS__MAX_LINES", "7"),
            ("AGENTD_STORE__URL", "memory:"),
            ("AGENTD_NODE__NAME", "17"),
            ("AGENTD_SOCKET", "/not/a/key"),
            ("HOME", "/x"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec(),
        flags: vec![("log.level".to_owned(), "debug".to_owned())],
    };
    let loaded = load(&sources).unwrap();
    let mut expected = Settings::default();
    expected.r#loop.turn_cap = 20;
    expected.r#loop.max_turns = 4;
    expected.models.get_mut("sonnet").unwrap().max_output = 100;
    expected.sandbox.env = vec!["CARGO_HOME".into()];
    expected.tools.max_lines = 7;
    expected.store.url = "memory:".into();
    expected.node.name = "17".into();
    expected.log.level = "debug".into();
    assert_eq!(loaded.settings, expected);
    let origin = |key: &str| loaded.origins.get(key).unwrap().clone();
    assert_eq!(origin("loop.turn_cap"), Origin::File(user, 1));
    assert_eq!(origin("loop.max_turns"), Origin::File(system.clone(), 3));
    assert_eq!(origin("models.sonnet.max_output"), Origin::File(system, 6));
    assert_eq!(origin("sandbox.env"), Origin::File(given, 2));
    assert_eq!(
        origin("store.url"),
        Origin::Environment("AGENTD_STORE__URL".into())
    );
    assert_eq!(origin("log.level"), Origin::Flag("log.level".into()));
    assert!(matches!(origin("store.jsonl_dir"), Origin::Shipped(_)));
}

#[test]
fn rules_of_all_layers_add_up_and_the_builtin_ones_can_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.toml");
    std::fs::write(
        &path,
        "[permission]\nrules = [\n  { deny = \"Read(a)\" },\n  { ask = \"Read(b)\" },\n]\nbuiltin = []\n",
    )
    .unwrap();
    let rules = (
        "AGENTD_PERMISSION__RULES".to_owned(),
        "[{ allow = \"Read(c)\" }]".to_owned(),
    );
    let sources = Sources {
        optional: vec![path.clone()],
        environment: vec![rules],
        ..Sources::default()
    };
    let loaded = load(&sources).unwrap();
    let expected = [
        RuleConfig::new(agentd_protocol::VerdictKind::Deny, "Read(a)"),
        RuleConfig::new(agentd_protocol::VerdictKind::Ask, "Read(b)"),
        RuleConfig::new(agentd_protocol::VerdictKind::Allow, "Read(c)"),
    ];
    assert_eq!(loaded.settings.permission.rules, expected);
    assert_eq!(
        expected.map(|rule| rule.text()),
        ["deny Read(a)", "ask Read(b)", "allow Read(c)"]
    );
    assert_eq!(loaded.settings.permission.builtin, []);
    assert_eq!(
        loaded.origins.get("permission.rules[1]"),
        Some(&Origin::File(path, 4))
    );
}

#[test]
fn an_unknown_key_is_reported_with_place_and_fix() {
    assert_eq!(
        problem("[loop]\nmax_turn = 3\n"),
        "line 2: loop.max_turn: unknown key `max_turn`; did you mean `max_turns`?"
    );
    let (error, _) = with_file("[lopp]\n");
    assert!(
        error
            .unwrap_err()
            .to_string()
            .ends_with("lopp: unknown key `lopp`; did you mean `loop`?")
    );
    assert_eq!(
        problem("\n[loop]\nmax_turns = \"many\"\n"),
        "line 3: loop.max_turns: invalid type: string \"many\", expected a whole number; the default is `loop.max_turns = -1`"
    );
    assert_eq!(
        problem("[permission]\nask_timeout = \"soon\"\n")
            .split("; ")
            .next()
            .unwrap(),
        "line 2: permission.ask_timeout: \"soon\" is not a duration such as \"30s\" or \"5m\": expected number at 0, or \"never\""
    );
    assert!(problem("[loop\n").starts_with("line 1: invalid TOML: "));
    assert!(problem("[loop]\npreset = \"fast\"\n").contains("line 2: loop.preset: unknown variant `fast`"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn a_value_out_of_range_is_reported_with_place_and_fix() {
    for (text, expected) in [
        (
            "[loop]\nturn_cap = 0",
            "line 2: loop.turn_cap: 0 is out of range; give a value from 1 to 1000000",
        ),
        (
            "[loop]\nmax_turns = -2",
            "line 2: loop.max_turns: -2 is not a valid limit; give -1, 0 or a number of steps",
        ),
        (
            "[retry]\ncap_ms = 10",
            "line 2: retry.cap_ms: 10 is out of range; give a value from 1000 to 86400000",
        ),
        (
            "[model]\ndefault = \"sonet\"",
            "line 2: model.default: there is no \"sonet\" under [models]; did you mean \"sonnet\"?",
        ),
        (
            "[store]\nurl = \"mysql://u:secret@h/d\"",
            "line 2: store.url: \"mysql://u:***@h/d\" is not a store URL; give sqlite:PATH, memory: or postgres://USER@HOST/DATABASE",
        ),
        (
            "[providers.openai]\nbase_url = \"api.openai.com\"",
            "line 2: providers.openai.base_url: \"api.openai.com\" is not a base URL; give http://HOST or https://HOST, with the path if it has one",
        ),
        (
            "[providers.openai]\ncredentials = [{ name = \"a\" }]",
            "line 2: providers.openai.credentials: credential \"a\" needs exactly one source; give one of env = \"VARIABLE\" and file = \"PATH\"",
        ),
        (
            "[models.sonnet]\nfallbacks = [\"sonnet\"]",
            "line 2: models.sonnet.fallbacks: a model cannot be its own fallback; name another model",
        ),
        (
            "[models.sonnet]\ntemperature = 3.0",
            "line 2: models.sonnet.temperature: 3 is not a valid temperature; give 0.0 to 2.0",
        ),
        (
            "[scheduler]\nweights = { red = 0.0 }",
            "line 2: scheduler.weights.red: 0 is not a valid weight; give a number such as 1.0 or 3.0",
        ),
        (
            "[scheduler]\ncooldown_cap_ms = 10",
            "line 2: scheduler.cooldown_cap_ms: 10 is out of range; give a value from 60000 to 86400000",
        ),
        (
            "[loop]\nintent_patterns = [\"(\"]",
            "line 2: loop.intent_patterns: \"(\" is not a valid regular expression; fix or remove it",
        ),
        (
            "[permission]\nunprotected = [\".cache/pip\"]",
            "line 2: permission.unprotected: \".cache/pip\" is not a file name; write one name without slashes, such as \".cache\" or \"target\"",
        ),
        (
            "[permission]\nunprotected = [\".cache\", \".*\"]",
            "line 2: permission.unprotected: \".*\" matches \".git\", which is always protected; write a name or a pattern that does not match it",
        ),
        (
            "[log]\nlevel = \"loud\"",
            "line 2: log.level: \"loud\" is not a level; give one of off, error, warn, info, debug, trace, and modules as NAME=LEVEL",
        ),
        (
            "[http]\norigins = [\"https://a.example:8443\", \"x\"]",
            "line 2: http.origins: \"x\" is not an origin; write what browsers send: https://HOST or https://HOST:PORT, without a path",
        ),
        (
            "[http]\nlisten = \"0.0.0.0:7433\"",
            "line 2: http.listen: 0.0.0.0:7433 is reachable from other machines, without encryption; set http.tls.cert and key, or http.behind_proxy = true behind a proxy with TLS, or listen on 127.0.0.1",
        ),
        (
            "[providers.openai]\nbase_url = \"https://h.example/v1/chat/completions/\"",
            "line 2: providers.openai.base_url: it ends with /chat/completions, which agentd adds itself; give the part before it, such as https://HOST/v1",
        ),
        (
            "[providers.mine]\nbase_url = \"https://h.example/v1\"",
            "providers.mine.dialect: it is missing; give the protocol of the server: \"openai-chat\" for most, or another one of config/agentd.toml",
        ),
        (
            "[context]\ncompact_at = 1.5",
            "line 2: context.compact_at: 1.5 is not a share of the window; give a share such as 0.8",
        ),
    ] {
        assert_eq!(problem(text), expected);
    }
}

#[test]
fn addresses_and_levels_that_work_are_accepted() {
    for good in [
        "[log]\nlevel = \"warn,agentd_store=debug\"",
        "[http]\nlisten = \"[::1]:7433\"\norigins = [\"http://[::1]:3000\"]",
        "[http]\nlisten = \"0.0.0.0:7433\"\nbehind_proxy = true",
        "[providers.mine]\ndialect = \"openai-responses\"\nbase_url = \"https://h.example/responses/v1\"",
    ] {
        assert!(with_file(good).0.is_ok(), "{good}");
    }
}

#[test]
fn a_model_without_a_name_gives_one_error() {
    let text = problem("[models.x]\nprovider = \"openai\"");
    assert_eq!(
        text,
        "models.x.model: it is empty; give the name that the provider uses"
    );
}

#[test]
fn an_invalid_header_is_refused_without_showing_its_value() {
    let header = |header: &str| problem(&format!("[providers.openai]\nheaders = {{ {header} }}"));
    assert_eq!(
        header("\"x:team\" = \"s3cret\""),
        "providers.openai.headers.x:team: \"x:team\" is not a valid header name; give a name of letters, digits and dashes, such as x-team"
    );
    assert_eq!(
        header(r#"x-team = "s3\ncret""#),
        "line 2: providers.openai.headers.x-team: the value contains control characters; give printable characters only"
    );
}

#[test]
fn shared_paths_are_plain_and_labels_of_a_node_are_words() {
    for bad in ["srv", "/srv/", "/srv//a", "/srv/../a", "/srv/./a", ""] {
        let said = problem(&format!("[node]\nshared_paths = [\"/\", \"/srv/a\", {bad:?}]"));
        let what =
            format!("line 2: node.shared_paths: {bad:?} is not a plain absolute path; write it from /");
        assert!(said.starts_with(&what), "{said}");
    }
    for bad in ["gpu = \"\"", "gpu = \"a b\"", "\"-gpu\" = \"a\"", "gpu = \"{\""] {
        let said = problem(&format!("[node]\nlabels = {{ zone = \"eu/1\", {bad} }}"));
        assert!(said.starts_with("line 2: node.labels"), "{said}");
        assert!(
            said.contains("is not a label that sessions can require"),
            "{said}"
        );
    }
    let long = "a".repeat(63);
    let (loaded, _) = with_file(&format!(
        "[node]\nlabels = {{ {long} = \"{long}\" }}\nshared_paths = [\"/\"]"
    ));
    assert_eq!(loaded.unwrap().settings.node.labels.len(), 1);
    assert!(problem(&format!("[node]\nlabels = {{ {long}a = \"x\" }}")).contains("node.labels"));
}

#[test]
fn i7_an_invalid_entry_of_the_web_guard_prevents_the_start() {
    assert_eq!(
        problem("[tools.web]\nallow_private = [\"10.0.0.0/8\", \"10.0.0\"]"),
        "line 2: tools.web.allow_private: \"10.0.0\" is not a network, address or host; give \"10.0.0.0/8\", \"10.1.2.3\", \"wiki.example\" or \"wiki.example:8080\""
    );
    assert_eq!(
        problem("[tools.web]\ntimeout_ms = 5"),
        "line 2: tools.web.timeout_ms: 5 is out of range; give a value from 100 to 600000"
    );
}

#[test]
fn invalid_variables_and_flags_are_named() {
    let environment = vec![("AGENTD_LOOP__MAX_TURNZ".to_owned(), "3".to_owned())];
    let error = load(&Sources {
        environment,
        ..Sources::default()
    })
    .unwrap_err()
    .to_string();
    let expected = "environment variable AGENTD_LOOP__MAX_TURNZ: loop.max_turnz: unknown key `max_turnz`; did you mean `max_turns`?";
    assert_eq!(error, expected);
    let error = load(&flags(&[("loop.max_turns", "3\nturn_cap = 9")]))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("flag loop.max_turns: loop.max_turns: invalid type: string"),
        "{error}"
    );
}

#[test]
fn a_named_file_must_exist() {
    let sources = Sources {
        file: Some("/nowhere/x.toml".into()),
        ..Sources::default()
    };
    let error = load(&sources).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the configuration file /nowhere/x.toml: "),
        "{error}"
    );
}

#[test]
fn a_table_on_the_command_line_sets_its_keys_and_keeps_the_others() {
    let loaded = load(&flags(&[("http", "{ listen = \"off\", grace_ms = 5 }")])).unwrap();
    let mut expected = Settings::default();
    expected.http.listen = "off".to_owned();
    expected.http.grace_ms = 5;
    assert_eq!(loaded.settings, expected);
    assert_eq!(loaded.origins["http.grace_ms"], Origin::Flag("http".to_owned()));
    let error = load(&flags(&[("http", "{ grace = 5 }")]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown key `grace`"), "{error}");
}

#[test]
fn the_printed_settings_parse_back_unchanged() {
    let loaded = load(&flags(&[
        ("permission.rules", "[{ deny = \"Read(a)\" }]"),
        ("node.name", "a\"b"),
    ]))
    .unwrap();
    for origins in [false, true] {
        let text = loaded.shown().text(origins);
        let read = settings_with(&DeTable::parse(&text).unwrap()).unwrap();
        assert_eq!(read, loaded.settings);
    }
    let view = loaded.shown().text(true);
    assert!(
        view.contains("permission.rules = [{ deny = \"Read(a)\" }]  # flag permission.rules\n"),
        "{view}"
    );
    assert!(
        view.contains("loop.turn_cap = 100  # the defaults (config/agentd.toml:"),
        "{view}"
    );
}

#[test]
fn i8_the_printed_settings_hide_passwords_in_urls() {
    let loaded = load(&flags(&[("store.url", "postgres://ana:hunter2@db/x")])).unwrap();
    assert!(
        loaded
            .shown()
            .text(true)
            .contains("store.url = \"postgres://ana:***@db/x\"")
    );
    let mut settings = Settings::default();
    settings.permission.escalate_to = vec!["https://ana:hunter2@host/x".into()];
    let listed = Loaded::from(settings);
    assert!(
        !format!("{:?}", listed.shown()).contains("hunter2"),
        "in a list, too"
    );
    assert_eq!(mask_url("https://host/a@b"), "https://host/a@b");
}

#[test]
fn a_limit_on_messages_leaves_room_for_a_call_and_its_result() {
    for (text, good) in [("0", true), ("4", true), ("3", false), ("1", false)] {
        let loaded = load(&flags(&[("context.max_messages", text)]));
        assert_eq!(loaded.is_ok(), good, "{text}: {loaded:?}");
    }
}

#[test]
fn unsupported_settings_prevent_the_start() {
    let text = "[providers.openai]\ncredentials = [{ name = \"a\", exec = [\"pass\"] }, { name = \"b\", env = \"B\" }]";
    let said = problem(text);
    let wanted = "line 2: providers.openai.credentials: this version does not support exec; ";
    assert!(said.starts_with(wanted) && said.lines().count() == 1, "{said}");
    for level in ["isolated", "confined", "none"] {
        let text = format!("[sandbox]\nlevel = {level:?}\nrequire = {level:?}\nnetwork = \"none\"\n");
        assert!(with_file(&text).0.is_ok());
    }
}

#[test]
fn unusual_values_have_the_right_types() {
    let text = "budget.session = { tokens = 5, usd = 2, time = \"1h 30m\", steps = 0 }\nsandbox.require = \"none\"\n\
                providers.x = { dialect = \"gemini\", base_url = \"http://x\", credentials = [{ name = \"k\", file = \"/run/key\" }] }\n";
    let settings = with_file(text).0.unwrap().settings;
    let expected = Budget {
        tokens: 5,
        usd: 2.0,
        time_ms: 5_400_000,
        steps: 0,
    };
    assert_eq!(settings.budget.session.budget(), expected);
    assert_eq!(settings.budget.session.time, Duration::from_secs(5_400));
    assert_eq!(settings.sandbox.require, SandboxLevel::None);
    let credential = settings
        .providers
        .get("x")
        .unwrap()
        .credentials
        .first()
        .unwrap()
        .clone();
    assert_eq!(credential.source(), Some(CredentialSource::File("/run/key")));
}

#[test]
fn an_invalid_hook_is_named_by_its_position() {
    let (result, _) =
        with_file("[hooks]\nrun = [{ name = \"a\", event = \"PreToolUse\", command = [\"check\"] }]");
    let error = result.unwrap_err().to_string();
    assert!(error.contains("hooks.run[0]"), "{error}");
}
