use super::*;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn envelope(body: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{body}*** End Patch") })
}

/// Every file below the working directory with its content.
fn tree(world: &World) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![world.root()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(world.root()).unwrap().display().to_string();
            if path.is_dir() && !path.is_symlink() {
                found.insert(format!("{name}/"), String::new());
                open.push(path);
            } else {
                found.insert(
                    name,
                    String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
                );
            }
        }
    }
    found
}

#[tokio::test]
async fn a_patch_changes_several_files_and_lists_them() {
    let mut world = World::new();
    world
        .put("src/a", "one\ntwo\n")
        .put("old", "x\n")
        .put("gone", "bye\n");
    fs::set_permissions(world.root().join("old"), fs::Permissions::from_mode(0o750)).unwrap();
    let body = "*** Add File: new/dir/f\n+hello\n*** Update File: src/a\n@@\n-two\n+TWO\n*** Update File: old\n*** Move to: moved/to\n@@\n-x\n+y\n*** Delete File: gone\n";
    let outcome = world.call("apply_patch", envelope(body)).await;
    let details = outcome.details.clone().unwrap();
    let id = details["undo_id"].as_str().unwrap().to_owned();
    assert_eq!(
        outcome.llm_text,
        format!(
            "Applied the patch:\nA new/dir/f\nM src/a\nM moved/to (moved from old)\nD gone\nUndo id: {id}\n"
        )
    );
    assert!(
        outcome
            .display
            .unwrap()
            .contains("--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n")
    );
    assert_eq!((&details["added"], &details["removed"]), (&json!(3), &json!(3)));
    let expected = [
        ("moved/", ""),
        ("moved/to", "y\n"),
        ("new/", ""),
        ("new/dir/", ""),
        ("new/dir/f", "hello\n"),
        ("src/", ""),
        ("src/a", "one\nTWO\n"),
    ];
    let expected = expected.map(|(path, content)| (path.to_owned(), content.to_owned()));
    assert_eq!(tree(&world), BTreeMap::from(expected));
    let mode = fs::metadata(world.root().join("moved/to"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750);
    // The session knows what it wrote, so it may edit it.
    world
        .ok(
            "Edit",
            json!({ "file_path": "src/a", "old_string": "TWO", "new_string": "2" }),
        )
        .await;
}

#[tokio::test]
async fn a_patch_that_matches_only_in_part_changes_nothing() {
    let mut world = World::new();
    world.put("a", "1\n").put("b", "2\n").put("c/x", "3\n");
    let before = tree(&world);
    for (body, expected) in [
        (
            "*** Update File: a\n@@\n-1\n+x\n*** Update File: b\n@@\n-1\n+x\n",
            "E_NOT_FOUND",
        ),
        ("*** Add File: n\n+x\n*** Delete File: missing\n", "E_NOT_FOUND"),
        ("*** Add File: n\n+x\n*** Add File: b\n+x\n", "E_NOT_READ"),
        ("*** Update File: a\n*** Move to: b\n@@\n-1\n+x\n", "E_NOT_READ"),
        ("*** Add File: n\n+x\n*** Delete File: c\n", "E_NOT_FILE"),
        ("*** Add File: n\n+x\n*** Delete File: ../a\n", "E_DENIED"),
        ("*** Add File: n\n+x\n*** Delete File: /etc/passwd\n", "E_DENIED"),
        ("*** Update File: a\n@@\n 1\n", "E_VALIDATION_FAILED"),
        ("*** Frobnicate File: a\n", "E_INVALID_ARGS"),
        ("", "E_INVALID_ARGS"),
    ] {
        let (code, text) = world.refused("ApplyPatch", envelope(body)).await;
        assert_eq!(
            (code.as_str(), tree(&world)),
            (expected, before.clone()),
            "{body}: {text}"
        );
    }
}

#[tokio::test]
async fn changes_before_a_failure_are_reverted() {
    let mut world = World::new();
    world.put("a", "1\n").put("b", "2\n");
    // The last section needs a directory where an earlier one creates a file: no check beforehand can detect that.
    let body = "*** Update File: a\n@@\n-1\n+x\n*** Delete File: b\n*** Add File: n/m/f\n+x\n*** Add File: f\n+x\n*** Add File: f/g\n+x\n";
    let before = tree(&world);
    let (_, text) = world.refused("ApplyPatch", envelope(body)).await;
    assert!(text.ends_with("Nothing was changed."), "{text}");
    assert_eq!(tree(&world), before);
}

#[tokio::test]
async fn redteam_21_and_23_links_are_not_patched() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret\n").unwrap();
    symlink(outside.path(), world.root().join("out")).unwrap();
    symlink("inside", world.root().join("link")).unwrap();
    fs::hard_link(outside.path().join("secret"), world.root().join("hard")).unwrap();
    world.put("inside", "x\n");
    for path in ["out/secret", "link", "hard"] {
        for body in [
            format!("*** Add File: {path}\n+y\n"),
            format!("*** Update File: {path}\n@@\n-secret\n+y\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: inside\n*** Move to: {path}\n@@\n-x\n+y\n"),
        ] {
            let (code, text) = world.refused("ApplyPatch", envelope(&body)).await;
            assert_eq!(code, "E_DENIED", "{body}: {text}");
        }
    }
    let made = world
        .refused("ApplyPatch", envelope("*** Add File: out/new\n+y\n"))
        .await;
    assert_eq!(made.0, "E_DENIED");
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret\n");
    assert_eq!(
        (
            fs::read_dir(outside.path()).unwrap().count(),
            world.get("inside").as_str()
        ),
        (1, "x\n")
    );
}

#[tokio::test]
async fn the_size_of_patched_files_is_limited_exactly() {
    let mut world = World::new();
    world.limits.max_file_bytes = 4;
    world.ok("ApplyPatch", envelope("*** Add File: a\n+123\n")).await;
    let (code, text) = world
        .refused("ApplyPatch", envelope("*** Add File: b\n+1234\n"))
        .await;
    assert_eq!(code, "E_TOO_LARGE", "{text}");
    let (code, _) = world
        .refused("ApplyPatch", envelope("*** Update File: a\n@@\n-123\n+1234\n"))
        .await;
    assert_eq!((code.as_str(), world.get("a").as_str()), ("E_TOO_LARGE", "123\n"));
}

#[tokio::test]
async fn an_exact_replacement_needs_no_read() {
    let mut world = World::new();
    world.put("f", "a\nb\na\n");
    let replace = |old: &str, more: Value| {
        let mut input = json!({ "path": "f", "old": old, "new": "x" });
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        input
    };
    let (code, text) = world.refused("apply_patch", replace("a", json!({}))).await;
    assert_eq!(code, "E_NOT_UNIQUE");
    assert!(text.contains("`old` is 2 times in f, expected were 1."), "{text}");
    let (code, _) = world.refused("apply_patch", replace("c", json!({}))).await;
    assert_eq!(code, "E_NOT_FOUND");
    let text = world
        .ok("apply_patch", replace("a", json!({ "expected_replacements": 2 })))
        .await;
    assert!(
        text.starts_with("Changed f (2 times replaced). Undo id: "),
        "{text}"
    );
    assert_eq!(world.get("f"), "x\nb\nx\n");
    for (input, part) in [
        (json!({}), "either `patch` alone"),
        (json!({ "path": "f", "old": "a" }), "either `patch` alone"),
        (json!({ "patch": "x", "path": "f" }), "either `patch` alone"),
        (json!({ "path": "f", "old": "a", "new": "a" }), "are equal"),
    ] {
        let (code, text) = world.refused("apply_patch", input).await;
        assert!(code == "E_INVALID_ARGS" && text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn a_similar_replacement_needs_a_read_and_reports_the_similarity() {
    let mut world = World::new();
    world.put("f", "fn one() {\n    let total = compute(1, 2);\n}\n");
    let fuzzy = |min: f64| {
        json!({
            "path": "f", "fuzzy": true, "min_similarity": min,
            "old": "    let totals = compute(1, 2);", "new": "    let sum = compute(1, 2);"
        })
    };
    assert_eq!(world.refused("apply_patch", fuzzy(0.9)).await.0, "E_NOT_READ");
    world.ok("Read", json!({ "file_path": "f" })).await;
    let (code, text) = world.refused("apply_patch", fuzzy(0.999)).await;
    assert!(
        code == "E_FUZZY_FAILED" && text.contains("line 2 is 98 % alike"),
        "{text}"
    );
    let text = world.ok("apply_patch", fuzzy(0.9)).await;
    assert!(
        text.starts_with("Changed f (once replaced, by similarity: line 2 is 98 % alike). Undo id: "),
        "{text}"
    );
    assert_eq!(world.get("f"), "fn one() {\n    let sum = compute(1, 2);\n}\n");
}

#[tokio::test]
async fn several_edits_of_one_file_are_all_made_or_none() {
    let mut world = World::new();
    world.put("f", "a\nb\nc\n");
    let edits = |edits: Value| json!({ "file_path": "f", "edits": edits });
    let good = edits(json!([
        { "old_string": "a", "new_string": "b" },
        { "old": "b", "new": "x", "replace_all": true },
    ]));
    assert_eq!(world.refused("MultiEdit", good.clone()).await.0, "E_NOT_READ");
    world.ok("Read", json!({ "file_path": "f" })).await;
    let bad =
        edits(json!([{ "old_string": "a", "new_string": "1" }, { "old_string": "z", "new_string": "2" }]));
    let (code, text) = world.refused("MultiEdit", bad).await;
    assert!(
        text.starts_with("MultiEdit: `old_string` of edit 2 is not in f."),
        "{text}"
    );
    assert_eq!(
        (code.as_str(), world.get("f").as_str()),
        ("E_NOT_FOUND", "a\nb\nc\n")
    );
    let nothing =
        edits(json!([{ "old_string": "a", "new_string": "1" }, { "old_string": "1", "new_string": "a" }]));
    assert_eq!(world.refused("MultiEdit", nothing).await.0, "E_VALIDATION_FAILED");
    let equal = edits(json!([{ "old_string": "a", "new_string": "a" }]));
    assert_eq!(world.refused("MultiEdit", equal).await.0, "E_INVALID_ARGS");
    assert_eq!(
        world.refused("MultiEdit", edits(json!([]))).await.0,
        "E_INVALID_ARGS"
    );
    let many = |count: usize| {
        let edit = |at: usize| json!({ "old_string": format!("none{at}"), "new_string": "" });
        edits((0..count).map(edit).collect())
    };
    assert_eq!(world.refused("MultiEdit", many(100)).await.0, "E_NOT_FOUND");
    assert_eq!(world.refused("MultiEdit", many(101)).await.0, "E_INVALID_ARGS");
    let text = world.ok("MultiEdit", good).await;
    assert!(
        text.starts_with("Changed f (3 times replaced). Undo id: "),
        "{text}"
    );
    assert_eq!(world.get("f"), "x\nx\nc\n");
}

#[test]
fn a_person_sees_the_patch_as_a_diff_or_why_it_fails() {
    let world = World::new();
    world.put("a", "1\n").put("b", "2\n");
    let beneath = Beneath::open(&world.root()).unwrap();
    let registry = Registry::builtin(&world.limits);
    let detail = |input: Value| {
        registry
            .prepare("ApplyPatch", &input)
            .unwrap()
            .detail(&beneath)
            .unwrap()
    };
    assert_eq!(
        detail(envelope("*** Update File: a\n@@\n-1\n+x\n*** Delete File: b\n")),
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+x\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"
    );
    let fails = detail(envelope("*** Delete File: c\n"));
    assert!(
        fails.starts_with("In the current state, this patch fails: c does not exist."),
        "{fails}"
    );
    assert!(fails.contains("*** Delete File: c"), "{fails}");
    assert_eq!(
        detail(json!({ "path": "a", "old": "1", "new": "3" })),
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3\n"
    );
}
