//! `docs/protocol.md` against the method table: the same methods with the same scopes and parameters, and every event type.

use super::all;
use agentd_protocol::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// The section of a method.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    scope: String,
    parameters: BTreeSet<String>,
}

/// The methods of a page: each heading, with the scope and parameters below it.
fn sections(page: &str) -> BTreeMap<String, Section> {
    let mut found = BTreeMap::new();
    let mut method = None;
    for line in page.lines() {
        if line.starts_with('#') {
            method = quoted(line, "### ").filter(|name| name.contains('.'));
            if let Some(name) = &method {
                let before = found.insert(name.clone(), Section::default());
                assert_eq!(before, None, "{name} has two sections");
            }
        }
        let Some(section) = method.as_ref().and_then(|name| found.get_mut(name)) else {
            continue;
        };
        if let Some(scope) = quoted(line, "Scope ") {
            section.scope = scope;
        }
        section.parameters.extend(quoted(line, "| "));
    }
    found
}

/// The text in backticks right after `prefix` at the beginning of a line.
fn quoted(line: &str, prefix: &str) -> Option<String> {
    let rest = line.strip_prefix(prefix)?.strip_prefix('`')?;
    Some(rest.split_once('`')?.0.to_owned())
}

/// The fields of a parameter struct, as listed in serde's error for an unknown field.
fn fields<P: Serialize + DeserializeOwned>() -> BTreeSet<String> {
    let refused = from_named::<P>(&json!({ "no such field": 1 }));
    let error = refused.err().unwrap_or_default();
    let (_, expected) = error.split_once("expected ").unwrap_or_default();
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn parameters(method: &str) -> BTreeSet<String> {
    match method {
        "session.create" => fields::<CreateParams>(),
        "session.list" => fields::<ListParams>(),
        "session.update" => fields::<UpdateParams>(),
        "session.get" | "session.prompt" | "session.commands" | "session.context" | "session.compact"
        | "session.summarize" | "input.list" => fields::<SessionParams>(),
        "session.close" | "session.delete" | "session.pause" => fields::<LifecycleParams>(),
        "session.resume" => fields::<ResumeParams>(),
        "session.bulk" => fields::<BulkParams>(),
        "session.export" => fields::<ExportParams>(),
        "session.blob" => fields::<BlobParams>(),
        "audit.query" => fields::<AuditParams>(),
        "node.place" => fields::<PlaceParams>(),
        "node.remove_key" | "node.admit_key" => fields::<NodeKeyParams>(),
        "node.log" => fields::<LogParams>(),
        "node.backup_part" => fields::<BackupPartParams>(),
        "node.backup_end" => fields::<BackupEndParams>(),
        "workspace.list" => fields::<WorkspaceListParams>(),
        "workspace.prune" => fields::<WorkspacePruneParams>(),
        "session.import" => fields::<ImportParams>(),
        "session.diff" => fields::<DiffParams>(),
        "session.files" => fields::<FilesParams>(),
        "session.undo" => fields::<UndoParams>(),
        "session.rewind" => fields::<RewindParams>(),
        "session.fork" => fields::<ForkParams>(),
        "session.apply" => fields::<ApplyParams>(),
        "session.branch" => fields::<BranchParams>(),
        "session.patch" => fields::<PatchParams>(),
        "session.attach" => fields::<AttachParams>(),
        "session.detach" => fields::<DetachParams>(),
        "fleet.watch" => fields::<WatchParams>(),
        "input.send" => fields::<SendParams>(),
        "input.cancel" => fields::<CancelInputParams>(),
        "turn.cancel" => fields::<CancelTurnParams>(),
        "approval.list" => fields::<ApprovalListParams>(),
        "approval.changes" => fields::<ApprovalChangesParams>(),
        "approval.question" => fields::<ApprovalQuestionParams>(),
        "approval.decide" => fields::<DecideParams>(),
        "rule.remove" => fields::<RemoveRuleParams>(),
        "token.create" => fields::<CreateTokenParams>(),
        "token.link" => fields::<LinkTokenParams>(),
        "token.revoke" => fields::<RevokeTokenParams>(),
        "usage.query" => fields::<UsageParams>(),
        "usage.daily" => fields::<DailyUsageParams>(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn the_page_lists_exactly_the_methods_with_their_scopes_and_parameters() {
    let table = all().map(|(name, scope)| {
        let section = Section {
            scope: scope.as_str().to_owned(),
            parameters: parameters(name),
        };
        (name.to_owned(), section)
    });
    let (table, page) = (table.collect::<BTreeMap<_, _>>(), sections(PAGE));
    for (name, section) in &table {
        assert_eq!(
            page.get(name),
            Some(section),
            "{name}: left docs/protocol.md, right the program"
        );
    }
    let extra: Vec<&String> = page.keys().filter(|name| !table.contains_key(*name)).collect();
    assert!(
        extra.is_empty(),
        "docs/protocol.md has methods that do not exist: {extra:?}"
    );
}

#[test]
fn the_page_names_every_event_type() {
    let missing: Vec<&&str> = EVENT_KINDS
        .iter()
        .filter(|kind| !PAGE.contains(&format!("`{kind}`")))
        .collect();
    assert!(missing.is_empty(), "docs/protocol.md lacks {missing:?}");
}

#[test]
fn a_missing_section_and_a_wrong_parameter_are_reported() {
    let page = "### `a.b`\n\nScope `read`.\n\n| parameter | type | meaning |\n|---|---|---|\n| `x` | string | .. |\n\n## Types\n\n| `y` | .. |\n";
    let found = sections(page);
    let section = Section {
        scope: "read".to_owned(),
        parameters: ["x".to_owned()].into(),
    };
    assert_eq!(found, [("a.b".to_owned(), section)].into());
    assert!(parameters("session.create").contains("workdir"));
    assert_eq!(fields::<DetachParams>(), ["sub".to_owned()].into());
}
