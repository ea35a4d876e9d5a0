use super::*;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

impl World {
    /// The arguments for undoing the last change.
    fn last(&self, mut input: Value) -> Value {
        input["undo_id"] = self.undo_id.clone();
        input
    }

    async fn undo_ok(&mut self, input: Value) -> String {
        let input = self.last(input);
        self.ok("UndoPatch", input).await
    }

    async fn undo_refused(&mut self, input: Value) -> (String, String) {
        let input = self.last(input);
        self.refused("UndoPatch", input).await
    }
}

#[tokio::test]
async fn an_undo_can_be_undone() {
    let mut world = World::new();
    world.put("f", "a\n");
    world.ok("Read", json!({ "file_path": "f" })).await;
    world
        .ok(
            "Edit",
            json!({ "file_path": "f", "old_string": "a", "new_string": "b" }),
        )
        .await;
    let text = world.undo_ok(json!({})).await;
    assert!(text.contains("M f\n"), "{text}");
    assert_eq!(world.get("f"), "a\n");
    world.undo_ok(json!({})).await;
    assert_eq!(world.get("f"), "b\n");
}

#[tokio::test]
async fn equal_changes_have_different_ids() {
    let mut world = World::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..3 {
        world
            .ok("Write", json!({ "file_path": "f", "content": "same\n" }))
            .await;
        ids.insert(world.undo_id.to_string());
        world.undo_ok(json!({})).await;
        ids.insert(world.undo_id.to_string());
    }
    assert_eq!(ids.len(), 6, "{ids:?}");
}

#[tokio::test]
async fn a_patch_is_undone_by_its_id_including_deletions() {
    let mut world = World::new();
    world.put("a", "1\n").put("run", "#!/bin/sh\n").put("old", "x\n");
    fs::set_permissions(world.root().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Delete File: run\n*** Add File: new\n+n\n*** Update File: old\n*** Move to: moved\n@@\n-x\n+y\n*** End Patch";
    let outcome = world.call("ApplyPatch", json!({ "patch": patch })).await;
    let id = outcome.details.unwrap()["undo_id"].clone();
    world
        .ok("Write", json!({ "file_path": "other", "content": "o\n" }))
        .await;
    let outcome = world.call("undo_patch", json!({ "undo_id": id })).await;
    let back = outcome.details.unwrap()["undo_id"].as_str().unwrap().to_owned();
    assert_eq!(
        outcome.llm_text,
        format!(
            "Undid {}:\nM a\nA run\nD new\nD moved\nA old\nTo undo this, too: {back}\n",
            id.as_str().unwrap()
        )
    );
    let there = |path: &str| world.root().join(path).exists();
    assert_eq!(
        (world.get("a").as_str(), world.get("old").as_str()),
        ("1\n", "x\n")
    );
    assert_eq!(
        (there("new"), there("moved"), there("other")),
        (false, false, true)
    );
    let mode = fs::metadata(world.root().join("run"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    let (code, text) = world.refused("UndoPatch", json!({ "undo_id": id })).await;
    assert_eq!(code, "E_VALIDATION_FAILED", "{text}");
}

#[tokio::test]
async fn later_changes_are_discarded_only_by_force_and_can_be_restored() {
    let mut world = World::new();
    world.put("f", "a\n");
    world.ok("Read", json!({ "file_path": "f" })).await;
    world
        .ok(
            "Edit",
            json!({ "file_path": "f", "old_string": "a", "new_string": "b" }),
        )
        .await;
    world.put("f", "somebody\n");
    let (code, text) = world.undo_refused(json!({})).await;
    assert!(
        code == "E_UNDO_CONFLICT" && text.contains(": f. Nothing was undone."),
        "{text}"
    );
    assert_eq!(world.get("f"), "somebody\n");
    world.undo_ok(json!({ "force": true })).await;
    assert_eq!(world.get("f"), "a\n");
    world.undo_ok(json!({})).await;
    assert_eq!(world.get("f"), "somebody\n");
}

#[tokio::test]
async fn an_impossible_undo_is_explained() {
    let mut world = World::new();
    let (code, text) = world.undo_refused(json!({})).await;
    assert!(
        code == "E_UNDO_NOT_FOUND" && text.contains("UndoPatch cannot revert what commands did"),
        "{text}"
    );
    world.put("f", "a\n").put("g", "g\n");
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** Delete File: g\n*** End Patch";
    world.ok("ApplyPatch", json!({ "patch": patch })).await;
    assert_eq!(
        world
            .refused("UndoPatch", json!({ "undo_id": "nonsense" }))
            .await
            .0,
        "E_UNDO_NOT_FOUND"
    );
    let kept = std::mem::take(&mut world.blobs);
    let (code, text) = world.undo_refused(json!({})).await;
    assert!(
        code == "E_UNDO_BAK_MISSING" && text.contains("of f was not kept"),
        "{text}"
    );
    world.blobs = kept
        .keys()
        .map(|name| (name.clone(), b"other".to_vec()))
        .collect();
    let (code, text) = world.undo_refused(json!({})).await;
    assert!(
        code == "E_UNDO_BAK_MISSING" && text.contains("of f is damaged"),
        "{text}"
    );
    assert_eq!(world.get("f"), "b\n");
    world.blobs = kept;
    world.undo_ok(json!({})).await;
    assert_eq!((world.get("f").as_str(), world.get("g").as_str()), ("a\n", "g\n"));
}

#[tokio::test]
async fn i7_an_undo_of_unjudged_files_does_nothing() {
    let mut world = World::new();
    world
        .ok("Write", json!({ "file_path": "f", "content": "a\n" }))
        .await;
    let prepared = Registry::builtin(&world.limits)
        .prepare("UndoPatch", &world.last(json!({})))
        .unwrap();
    let outcome = run(&prepared, world.context()).await.outcome;
    assert_eq!(
        (code(&outcome).as_str(), world.get("f").as_str()),
        ("E_DENIED", "a\n")
    );
    let judged = prepared.knowing(&world.seen).unwrap();
    let paths = vec!["f".to_owned()];
    assert_eq!(judged.subject, crate::Subject::Paths { write: true, paths });
    assert!(judged.title.ends_with(": f"), "{}", judged.title);
}
