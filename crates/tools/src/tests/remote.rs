//! Tools of tool servers, as sessions see them.

use super::*;
use crate::{Subject, ToolEntry, ToolSpec};
use agentd_protocol::EffectClass;
use serde_json::json;

/// A tool of the server `s`.
pub(super) fn tool(name: &'static str, description: &str, schema: &Value) -> ToolEntry {
    ToolEntry::new(ToolSpec {
        name: name.into(),
        aliases: &[],
        title: "".into(),
        description: description.to_owned(),
        schema: schema.clone(),
        example: Value::Null,
        effect: EffectClass::Exec,
        idempotent: false,
        server: Some("s".to_owned()),
    })
}

fn registry(schema: &Value) -> Registry {
    let tools = ["mcp__s__run", "mcp__s__Run", "Read"].map(|name| tool(name, "", schema));
    Registry::builtin(&ToolLimits::default()).with(tools)
}

#[test]
fn i7_arguments_of_server_tools_have_no_built_in_meaning() {
    let registry = registry(&json!({ "type": "object" }));
    let input = json!({ "command": "ls", "path": "/etc/passwd", "file_path": "x/../y", "url": "http://h", "nothing": null });
    let prepared = registry.prepare("mcp__s__run", &input).unwrap();
    let arguments = input.to_string();
    let names = ["command", "path", "file_path", "url", "nothing"];
    let Subject::Remote { version, .. } = prepared.subject.clone() else {
        panic!("{prepared:?}");
    };
    let expected = Subject::Remote {
        arguments,
        version,
        undeclared: names.map(str::to_owned).to_vec(),
    };
    assert_eq!(prepared.subject, expected);
    assert_eq!(prepared.input, input, "it goes to the server as it was judged");
    assert_eq!((prepared.effect, prepared.idempotent), (EffectClass::Exec, false));
    let empty = registry.prepare("mcp__s__run", &json!({})).unwrap();
    assert_eq!(empty.title, "mcp__s__run");
}

#[test]
fn server_tool_names_are_exact_and_cannot_shadow_ours() {
    let registry = registry(&json!({ "type": "object" }));
    let name = |name: &str| registry.get(name).map(|spec| spec.name.to_string());
    assert_eq!(name("mcp__s__run").as_deref(), Some("mcp__s__run"));
    assert_eq!(name("mcp__s__Run").as_deref(), Some("mcp__s__Run"));
    assert_eq!(name("mcp__s__RUN"), None);
    assert_eq!(registry.get("Read").unwrap().server, None);
}

#[test]
fn arguments_are_checked_against_a_usable_server_schema() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let checked = registry(&schema);
    let refused = checked.prepare("mcp__s__run", &json!({})).unwrap_err().llm_text;
    assert!(
        refused.contains("`n` is missing") && !refused.contains("Example"),
        "{refused}"
    );
    let mended = checked.prepare("mcp__s__run", &json!({ "n": "3" })).unwrap();
    assert_eq!(mended.input, json!({ "n": 3 }));
    // A pattern that could take exponential time is not run: the server has to check it.
    let unread = registry(&json!({ "type": "object", "properties": { "n": { "pattern": "(?=a)(a+)+$" } } }));
    assert!(
        unread
            .prepare(
                "mcp__s__run",
                &json!({ "n": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" })
            )
            .is_ok()
    );
    assert!(unread.prepare("mcp__s__run", &json!([])).is_err());
}
