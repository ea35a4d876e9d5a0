//! The last defence of the file tools: nothing unapproved is written, whatever the gate missed.

use super::*;
use crate::{Guarding, Prepared};
use serde_json::json;
use std::os::unix::fs::symlink;

/// Calls that write a protected path, on files that [`world`] creates.
fn attacks() -> Vec<(&'static str, Value)> {
    let patch = |text: &str| json!({ "patch": format!("*** Begin Patch\n{text}\n*** End Patch") });
    vec![
        (
            "Write",
            json!({ "file_path": ".git/hooks/pre-commit", "content": "x" }),
        ),
        (
            "Write",
            json!({ "file_path": ".git/modules/m/config", "content": "x" }),
        ),
        (
            "Write",
            json!({ "file_path": "sub/.git", "content": "gitdir: ../evil" }),
        ),
        ("Write", json!({ "file_path": "./src/../.envrc", "content": "x" })),
        // CVE-2026-25725: a settings file that does not exist yet.
        (
            "Write",
            json!({ "file_path": ".claude/settings.json", "content": "{}" }),
        ),
        // CVE-2025-59944: the same name in a different case.
        (
            "Write",
            json!({ "file_path": ".cUrSoR/mcp.json", "content": "{}" }),
        ),
        (
            "Edit",
            json!({ "file_path": "AGENTS.md", "old_string": "a", "new_string": "b" }),
        ),
        (
            "MultiEdit",
            json!({ "file_path": "AGENTS.md", "edits": [{ "old_string": "a", "new_string": "b" }] }),
        ),
        (
            "ApplyPatch",
            patch("*** Add File: src/ok\n+x\n*** Add File: .github/workflows/ci.yml\n+x"),
        ),
        (
            "ApplyPatch",
            patch("*** Update File: src/a\n*** Move to: .vscode/tasks.json\n@@\n-1\n+2"),
        ),
        (
            "ApplyPatch",
            patch("*** Update File: .npmrc\n*** Move to: src/npmrc\n@@\n-a\n+b"),
        ),
        ("ApplyPatch", patch("*** Delete File: .gitattributes")),
    ]
}

fn world() -> World {
    let mut world = World::new();
    for file in ["AGENTS.md", ".npmrc", ".gitattributes"] {
        world.put(file, "a\n");
    }
    world.put("src/a", "1\n");
    world.guarding = Guarding::default();
    world
}

async fn read_all(world: &mut World) {
    for file in ["AGENTS.md", ".npmrc", ".gitattributes", "src/a"] {
        world.ok("Read", json!({ "file_path": file })).await;
    }
}

#[tokio::test]
async fn i7_redteam_no_tool_writes_a_protected_path_without_approval() {
    for (tool, input) in attacks() {
        let mut world = world();
        read_all(&mut world).await;
        world
            .ok("Write", json!({ "file_path": "src/plain", "content": "x" }))
            .await;
        let (code, text) = world.refused(tool, input.clone()).await;
        assert_eq!(code, "E_DENIED", "{tool} {input}: {text}");
        assert!(text.contains("is protected"), "{text}");
        assert_eq!(world.get("AGENTS.md"), "a\n");
        assert!(!world.root().join("src/ok").exists(), "all or nothing");
        // Positive control: the same call works with an approval.
        world.guarding = Guarding::Approved;
        world.ok(tool, input).await;
    }
}

#[tokio::test]
async fn i7_redteam_undo_writes_no_protected_path_without_approval() {
    let mut world = world();
    read_all(&mut world).await;
    world.guarding = Guarding::Approved;
    world
        .ok(
            "Edit",
            json!({ "file_path": ".npmrc", "old_string": "a", "new_string": "b" }),
        )
        .await;
    let undo = json!({ "undo_id": world.undo_id });
    world.guarding = Guarding::default();
    let (code, text) = world.refused("UndoPatch", undo.clone()).await;
    assert_eq!(
        (code.as_str(), world.get(".npmrc").as_str()),
        ("E_DENIED", "b\n"),
        "{text}"
    );
    world.guarding = Guarding::Approved;
    world.ok("UndoPatch", undo).await;
    assert_eq!(world.get(".npmrc"), "a\n");
}

#[tokio::test]
async fn i7_redteam_a_link_does_not_lead_to_a_protected_path() {
    let mut world = world();
    fs::create_dir(world.root().join(".github")).unwrap();
    // Refused even with an approval: the path that would be written is not the one that was judged.
    for guarding in [Guarding::default(), Guarding::Approved] {
        world.guarding = guarding;
        for (link, target, path) in [
            ("docs", ".github", "docs/ci.yml"),
            ("notes.md", "AGENTS.md", "notes.md"),
            ("new.md", ".envrc", "new.md"),
        ] {
            let _ = fs::remove_file(world.root().join(link));
            symlink(target, world.root().join(link)).unwrap();
            let (_, text) = world
                .refused("Write", json!({ "file_path": path, "content": "x" }))
                .await;
            assert!(text.contains("symbolic link"), "{path}: {text}");
        }
    }
    assert_eq!(world.get("AGENTS.md"), "a\n");
    assert!(!world.root().join(".github/ci.yml").exists());
}

#[tokio::test]
async fn i7_a_tool_writes_only_declared_paths() {
    let world = world();
    let prepare = |path: &str| {
        let input = json!({ "file_path": path, "content": "x" });
        Registry::builtin(&world.limits).prepare("Write", &input).unwrap()
    };
    // As if the tool took its path from a different source than the gate.
    let forgot = Prepared {
        input: prepare("src/other").input,
        ..prepare("src/judged")
    };
    let permit = forgot.permit(&world.context());
    assert!(permit.judged(std::path::Path::new("src/judged")).is_ok());
    let refused = permit
        .judged(std::path::Path::new("src/other"))
        .unwrap_err()
        .to_string();
    assert!(refused.contains("does not cover"), "{refused}");
}
