use super::*;
use crate::{Prepared, Subject, is_usual};
use agentd_protocol::{EffectClass, Preset};
use serde_json::json;
use std::path::Path;

fn registry() -> Registry {
    Registry::builtin(&ToolLimits::default())
}

fn prepare(name: &str, input: &Value) -> Prepared {
    registry()
        .prepare(name, input)
        .unwrap_or_else(|refusal| panic!("{}", refusal.llm_text))
}

fn refusal(name: &str, input: &Value) -> (String, String) {
    let refused = registry().prepare(name, input).unwrap_err();
    assert_eq!(refused.status, ToolStatus::Error);
    (code(&refused), refused.llm_text)
}

#[test]
fn the_builtin_tools_have_the_contracts_names_and_schemas_that_accept_their_examples() {
    let registry = registry();
    let names: Vec<_> = registry.specs().map(|spec| spec.name.as_ref()).collect();
    assert_eq!(
        names,
        [
            "Read",
            "Write",
            "Edit",
            "MultiEdit",
            "ApplyPatch",
            "UndoPatch",
            "Ls",
            "Glob",
            "Grep",
            "Bash",
            "Job",
            "BashStart",
            "BashPoll",
            "BashWrite",
            "BashKill",
            "TodoWrite",
            "AskUser",
            "ExitPlanMode",
            "Plan",
            "Skill",
            "Task",
            "RepoMap",
            "SemanticSearch",
            "WebFetch"
        ]
    );
    for spec in registry.specs() {
        prepare(&spec.name, &spec.example);
        assert!(spec.schema["additionalProperties"] == json!(false));
    }
}

#[test]
fn the_default_tools_take_at_most_2600_tokens_with_one_way_to_edit() {
    let patching = &["ApplyPatch", "UndoPatch"][..];
    for (template, preset, edits) in [
        ("anthropic", Preset::Default, &["Edit"][..]),
        ("openai", Preset::Default, &["ApplyPatch"]),
        ("chat", Preset::Etcode, &["Edit"]),
        ("local", Preset::Default, &["Edit"]),
        ("local", Preset::React, patching),
        ("openai", Preset::React, patching),
    ] {
        let usual = registry();
        let usual: Vec<_> = usual
            .entries()
            .filter(|tool| is_usual(&tool.spec().name, template, preset))
            .collect();
        let ways: Vec<&str> = usual
            .iter()
            .map(|tool| tool.spec().name.as_ref())
            .filter(|name| ["Edit", "MultiEdit", "ApplyPatch", "UndoPatch"].contains(name))
            .collect();
        assert_eq!(ways, edits, "{template} {preset:?}");
        // Plan and Skill are there only for sessions that plan or have skills.
        let sent = usual.iter().filter(|tool| tool.spec().name != "Plan");
        let bytes: usize = sent
            .map(|tool| {
                let spec = tool.spec();
                let sent = json!({ "name": spec.name, "description": spec.description, "input_schema": *tool.sent_schema() });
                sent.to_string().len()
            })
            .sum();
        assert!(bytes / 4 <= 2_600, "{template}: {}", bytes / 4);
    }
    assert!(
        registry()
            .specs()
            .all(|spec| is_usual(&spec.name, "", Preset::React))
    );
}

#[test]
fn tools_are_found_by_alias_in_any_case() {
    let registry = registry();
    for (given, name) in [
        ("exec", "Bash"),
        ("run_cmd", "Bash"),
        ("BASH", "Bash"),
        ("read_file", "Read"),
        ("write_file", "Write"),
        ("Edit_File", "Edit"),
        ("list_dir", "Ls"),
        ("glob_file_search", "Glob"),
        ("grep", "Grep"),
    ] {
        assert_eq!(
            registry.get(given).map(|spec| spec.name.as_ref()),
            Some(name),
            "{given}"
        );
    }
}

#[test]
fn no_two_tools_share_a_name() {
    let registry = registry();
    let mut names: Vec<String> = registry
        .specs()
        .flat_map(|spec| {
            spec.aliases
                .iter()
                .copied()
                .chain([spec.name.as_ref()])
                .map(|name| name.to_lowercase())
        })
        .collect();
    let all = names.len();
    names.sort();
    names.dedup();
    // Grep and Glob already match in lower case, so those are not aliases.
    assert_eq!(names.len(), all);
}

#[test]
fn an_unknown_tool_gets_the_names_and_a_suggestion() {
    let (code, text) = refusal("Reed", &json!({}));
    assert_eq!(code, "E_UNKNOWN_TOOL");
    assert_eq!(
        text,
        "Unknown tool: `Reed`. Did you mean `Read`? The tools are: Read, Write, Edit, MultiEdit, ApplyPatch, UndoPatch, Ls, Glob, Grep, Bash, Job, BashStart, BashPoll, BashWrite, BashKill, TodoWrite, AskUser, ExitPlanMode, Plan, Skill, Task, RepoMap, SemanticSearch, WebFetch."
    );
    assert!(
        !refusal("deploy_to_production", &json!({}))
            .1
            .contains("Did you mean")
    );
}

#[test]
fn a_prepared_call_has_its_subject() {
    let read = prepare(
        "read_file",
        &json!({ "path": "./src//a/../main.rs", "offset": "3" }),
    );
    assert_eq!(
        read,
        Prepared {
            name: "Read".into(),
            input: json!({ "offset": 3, "file_path": "src/main.rs" }),
            title: "Read src/main.rs".to_owned(),
            effect: EffectClass::Read,
            idempotent: true,
            subject: Subject::Path {
                write: false,
                path: "src/main.rs".to_owned()
            },
            ..read.clone()
        }
    );
    let bash = prepare(
        "exec",
        &json!({ "cmd": "cargo test\n# more", "description": null }),
    );
    assert_eq!(
        bash.subject,
        Subject::Command {
            command: "cargo test\n# more".to_owned()
        }
    );
    assert_eq!(
        (bash.title.as_str(), bash.effect, bash.idempotent),
        ("Bash cargo test⏎# more", EffectClass::Exec, false)
    );
    let ls = prepare("Ls", &json!({}));
    assert_eq!(
        ls.subject,
        Subject::Path {
            write: false,
            path: ".".to_owned()
        }
    );
    let write = prepare("Write", &json!({ "file_path": "../x", "content": "" }));
    assert_eq!(
        write.subject,
        Subject::Path {
            write: true,
            path: "../x".to_owned()
        }
    );
}

#[test]
fn i7_the_judged_path_is_the_opened_path() {
    let inside = prepare("Read", &json!({ "file_path": "/w/a/../b" })).within(Path::new("/w"));
    assert_eq!(
        inside.subject,
        Subject::Path {
            write: false,
            path: "b".to_owned()
        }
    );
    assert_eq!(inside.input, json!({ "file_path": "b" }));
    let outside = prepare("Read", &json!({ "file_path": "/w/../etc/passwd" })).within(Path::new("/w"));
    assert_eq!(
        outside.subject,
        Subject::Path {
            write: false,
            path: "/etc/passwd".to_owned()
        }
    );
    let root = prepare("Ls", &json!({ "path": "/w/" })).within(Path::new("/w"));
    assert_eq!(
        root.subject,
        Subject::Path {
            write: false,
            path: ".".to_owned()
        }
    );
}

#[test]
fn alternative_field_names_are_accepted() {
    let edit = prepare(
        "edit",
        &json!({ "path": "a", "old_text": "x", "new_text": "y", "replace_all": "true" }),
    );
    assert_eq!(
        edit.input,
        json!({ "file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true })
    );
    let edit = prepare("Edit", &json!({ "path": "a", "old": "x", "new": "y" }));
    assert_eq!(edit.text("old_string"), "x");
    assert_eq!(
        prepare("exec", &json!({ "command": "x", "timeout": 30 })).number("timeout_ms"),
        Some(30_000)
    );
    assert_eq!(
        prepare("Bash", &json!({ "command": "x", "timeout": 30_000 })).number("timeout_ms"),
        Some(30_000)
    );
    assert!(prepare("Grep", &json!({ "query": "x", "-i": true })).flag("case_insensitive"));
}

#[test]
fn invalid_arguments_are_named_with_an_example() {
    let (code, text) = refusal("Read", &json!({ "file_pth": "a", "limit": "many", "offset": 0 }));
    assert_eq!(code, "E_INVALID_ARGS");
    for part in [
        "`file_path` is missing",
        "`file_pth` is not an argument (did you mean `file_path`?)",
        "`limit` must be of type integer, got a string",
        "`offset` must be at least 1",
        "Got: {\"file_pth\":\"a\"",
        "file_path (string, required), offset (integer), limit (integer)",
        "Example: {\"file_path\":\"src/main.rs\"",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(
        refusal("Bash", &json!({ "command": "x", "timeout_ms": 600_001 }))
            .1
            .contains("`timeout_ms` must be at most 600000")
    );
    prepare("Bash", &json!({ "command": "x", "timeout_ms": 600_000 }));
    assert!(
        refusal("Bash", &json!({ "command": "" }))
            .1
            .contains("`command` must not be empty")
    );
    assert!(
        refusal("Bash", &json!({ "command": "a\u{0}b" }))
            .1
            .contains("NUL")
    );
    assert!(
        refusal("Grep", &json!({ "pattern": "x", "output_mode": "all" }))
            .1
            .contains("output_mode")
    );
}

#[test]
fn arguments_other_than_an_object_are_refused() {
    let cut = refusal("Read", &json!("{\"file_path\": \"a")).1;
    let why = "the arguments are not valid JSON: the string that begins here does not end (line 1, column 15, at \"\\\"a\"); \
               if they were cut off, give less at once.";
    assert!(cut.contains(why), "{cut}");
    let quote = refusal("Read", &json!("{\"file_path\": \"a\"b\"}")).1;
    assert!(
        quote.contains("perhaps a quote within a string is not escaped"),
        "{quote}"
    );
    assert!(!quote.contains("cut off"), "{quote}");
    assert!(refusal("Read", &json!(["a"])).1.contains("not a JSON object"));
    assert!(refusal("Read", &json!(null)).1.contains("not a JSON object"));
    let long = refusal("Write", &json!("x".repeat(100_000))).1;
    assert!(
        long.len() < 1_500,
        "what was got is quoted in part: {}",
        long.len()
    );
}

#[test]
fn an_edit_that_changes_nothing_is_refused_before_any_approval() {
    let (code, text) = refusal(
        "Edit",
        &json!({ "file_path": "a", "old_string": "x", "new_string": "x" }),
    );
    assert_eq!(code, "E_INVALID_ARGS");
    assert!(text.contains("are equal"));
}
