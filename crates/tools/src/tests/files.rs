use super::*;
use serde_json::json;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn read_numbers_lines_and_names_the_next_offset() {
    let mut world = World::new();
    world.put("f", "a\nb\nc\n");
    assert_eq!(
        world.ok("Read", json!({ "file_path": "f" })).await,
        "1\ta\n2\tb\n3\tc\n"
    );
    let page = world
        .ok("Read", json!({ "file_path": "f", "offset": 2, "limit": 1 }))
        .await;
    assert_eq!(page, "2\tb\n[Lines 2 to 2 of 3. Continue with offset=3.]\n");
    let (code, text) = world
        .refused("Read", json!({ "file_path": "f", "offset": 4 }))
        .await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_INVALID_ARGS",
            "Read: `offset` 4 is past the end: f has 3 lines."
        )
    );
    world.put("empty", "");
    assert_eq!(
        world.ok("Read", json!({ "file_path": "empty" })).await,
        "[empty is empty]"
    );
}

#[tokio::test]
async fn read_cuts_at_the_limits_exactly() {
    let mut world = World::new();
    world.limits.max_lines = 3;
    world.put("three", "1\n2\n3").put("four", "1\n2\n3\n4");
    let three = world.call("Read", json!({ "file_path": "three" })).await;
    assert_eq!(
        (three.llm_text.as_str(), three.truncated),
        ("1\t1\n2\t2\n3\t3\n", None)
    );
    let four = world.call("Read", json!({ "file_path": "four" })).await;
    assert!(
        four.llm_text
            .ends_with("3\t3\n[Lines 1 to 3 of 4. Continue with offset=4.]\n")
    );
    assert_eq!(four.truncated.map(|cut| (cut.bytes, cut.lines)), Some((7, 4)));
    world.limits.max_bytes = 9;
    let two = world.ok("Read", json!({ "file_path": "three" })).await;
    assert_eq!(two, "1\t1\n2\t2\n[Lines 1 to 2 of 3. Continue with offset=3.]\n");
}

#[tokio::test]
async fn a_file_over_the_limit_is_shown_in_part_and_cannot_be_edited() {
    let mut world = World::new();
    world.limits.max_file_bytes = 4;
    world.put("big", "1\n2\n3\n");
    let text = world.ok("Read", json!({ "file_path": "big" })).await;
    let note = "[big has 6 bytes, too many for Edit. Search it with Grep; change it with Bash and `sed`.]\n";
    let more = "[Lines 1 to 2 of 3. Continue with offset=3.]\n";
    assert_eq!(text, format!("1\t1\n2\t2\n{note}{more}"));
    let rest = world.ok("Read", json!({ "file_path": "big", "offset": 3 })).await;
    assert_eq!(rest, format!("3\t3\n{note}"));
    let beyond = world
        .refused("Read", json!({ "file_path": "big", "offset": 4 }))
        .await;
    assert!(beyond.1.contains("big has 3 lines"), "{}", beyond.1);
    let edit = json!({ "file_path": "big", "old_string": "1", "new_string": "x" });
    assert_eq!(world.refused("Edit", edit).await.0, "E_TOO_LARGE");
}

#[tokio::test]
async fn invalid_utf8_is_marked_and_binary_files_are_refused_with_their_type() {
    let mut world = World::new();
    world
        .put("latin", b"caf\xe9\n")
        .put("image.txt", b"\x89PNG\r\n\x1a\n")
        .put("zero", b"a\0b");
    let text = world.ok("Read", json!({ "file_path": "latin" })).await;
    assert!(
        text.starts_with("1\tcaf\u{fffd}\n[The file is not valid UTF-8"),
        "{text}"
    );
    let (code, text) = world.refused("Read", json!({ "file_path": "image.txt" })).await;
    assert_eq!(
        (
            code.as_str(),
            text.starts_with("image.txt cannot be read as a PNG, JPEG, GIF or WebP image")
        ),
        ("E_BINARY", true)
    );
    assert!(
        world
            .refused("Read", json!({ "file_path": "zero" }))
            .await
            .1
            .starts_with("zero is a binary file")
    );
}

#[tokio::test]
async fn a_missing_path_gets_a_suggestion() {
    let mut world = World::new();
    world.put("src/main.rs", "x").put("src/x", "y");
    let (code, text) = world.refused("Read", json!({ "file_path": "src/mian.rs" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_NOT_FOUND",
            "src/mian.rs does not exist. Did you mean src/main.rs?"
        )
    );
    symlink("nowhere", world.root().join("dangling")).unwrap();
    let (_, text) = world.refused("Read", json!({ "file_path": "dangling" })).await;
    assert_eq!(
        text,
        "dangling does not exist. The name is a symbolic link, and its target does not exist."
    );
    let (code, text) = world.refused("Read", json!({ "file_path": "src" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_NOT_FILE",
            "src is a directory, not a regular file. Use Ls to list it."
        )
    );
}

#[tokio::test]
async fn nothing_outside_the_working_directory_is_read_or_written() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), world.root().join("out")).unwrap();
    fs::hard_link(outside.path().join("secret"), world.root().join("hard")).unwrap();
    world.put("inside", "x");
    symlink("inside", world.root().join("link")).unwrap();
    for path in ["../x", "/etc/passwd", "a/../../x", "out/secret"] {
        let (code, text) = world.refused("Read", json!({ "file_path": path })).await;
        assert_eq!(code, "E_DENIED", "{path}: {text}");
        let (code, text) = world
            .refused("Write", json!({ "file_path": path, "content": "x" }))
            .await;
        assert_eq!(code, "E_DENIED", "{path}: {text}");
    }
    assert_eq!(world.refused("Ls", json!({ "path": "out" })).await.0, "E_DENIED");
    assert_eq!(
        world.refused("Glob", json!({ "pattern": "../*" })).await.0,
        "E_DENIED"
    );
    assert_eq!(
        world.refused("Glob", json!({ "pattern": "/etc/*" })).await.0,
        "E_DENIED"
    );
    world.ok("Read", json!({ "file_path": "hard" })).await;
    assert_eq!(
        world
            .refused("Write", json!({ "file_path": "hard", "content": "x" }))
            .await
            .0,
        "E_DENIED"
    );
    let (code, text) = world.refused("Read", json!({ "file_path": "link" })).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_DENIED",
            "link is, or leads through, a symbolic link. The file is inside: use that path."
        )
    );
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_absolute_path_inside_is_accepted() {
    let mut world = World::new();
    world.put("a/f", "x");
    let path = world.root().join("a/f");
    assert_eq!(world.ok("Read", json!({ "file_path": path })).await, "1\tx\n");
    world
        .ok(
            "Edit",
            json!({ "file_path": "a/f", "old_string": "x", "new_string": "y" }),
        )
        .await;
}

#[tokio::test]
async fn write_replaces_only_files_that_were_read() {
    let mut world = World::new();
    let made = world
        .call("Write", json!({ "file_path": "a/b/new", "content": "1\n" }))
        .await;
    let text = made.llm_text;
    assert!(text.starts_with("Created a/b/new (1 lines). Undo id: "), "{text}");
    assert_eq!(
        made.display.as_deref(),
        Some("--- /dev/null\n+++ b/a/b/new\n@@ -0,0 +1 @@\n+1\n")
    );
    world
        .ok("Write", json!({ "file_path": "a/b/new", "content": "2\n" }))
        .await;
    world.put("old", "old");
    let (code, _) = world
        .refused("Write", json!({ "file_path": "old", "content": "new" }))
        .await;
    assert_eq!((code.as_str(), world.get("old").as_str()), ("E_NOT_READ", "old"));
    world.ok("Read", json!({ "file_path": "old" })).await;
    world.put("old", "changed by someone else");
    let (code, _) = world
        .refused("Write", json!({ "file_path": "old", "content": "new" }))
        .await;
    assert_eq!(
        (code.as_str(), world.get("old").as_str()),
        ("E_CHANGED", "changed by someone else")
    );
    world.ok("Read", json!({ "file_path": "old" })).await;
    world
        .ok("Write", json!({ "file_path": "old", "content": "new" }))
        .await;
    assert_eq!(world.get("old"), "new");
    world.limits.max_file_bytes = 2;
    assert_eq!(
        world
            .refused("Write", json!({ "file_path": "large", "content": "123" }))
            .await
            .0,
        "E_TOO_LARGE"
    );
}

#[tokio::test]
async fn an_empty_text_to_replace_points_to_write() {
    let mut world = World::new();
    let edit = json!({ "file_path": "a", "old_string": "", "new_string": "x" });
    let (_, text) = world.refused("Edit", edit).await;
    assert!(
        text.contains("`old_string` must not be empty") && text.contains("use Write"),
        "{text}"
    );
}

#[tokio::test]
async fn write_keeps_line_ends_and_byte_order_mark() {
    let mut world = World::new();
    world.put("dos.txt", "\u{feff}a\r\nb\r\n");
    world.ok("Read", json!({ "file_path": "dos.txt" })).await;
    world
        .ok("Write", json!({ "file_path": "dos.txt", "content": "x\ny\n" }))
        .await;
    assert_eq!(world.get("dos.txt"), "\u{feff}x\r\ny\r\n");
}

#[tokio::test]
async fn edit_is_exact_and_shows_its_diff() {
    let mut world = World::new();
    world.put("f", "a\nb\na\n");
    let edit = |old: &str, new: &str| json!({ "file_path": "f", "old_string": old, "new_string": new });
    assert_eq!(world.refused("Edit", edit("b", "x")).await.0, "E_NOT_READ");
    world.ok("Read", json!({ "file_path": "f" })).await;
    let (code, text) = world.refused("Edit", edit("a", "x")).await;
    assert_eq!(code, "E_NOT_UNIQUE");
    assert!(text.contains("2 times in f (lines 1, 3)"), "{text}");
    let (code, text) = world.refused("Edit", edit(" b", "x")).await;
    assert_eq!(code, "E_NOT_FOUND");
    assert!(
        text.contains("Line 2 differs in whitespace only: \"b\""),
        "{text}"
    );
    let done = world.call("Edit", edit("b", "B")).await;
    let text = done.llm_text;
    assert!(text.starts_with("Changed f (once replaced). Undo id: "), "{text}");
    assert_eq!(
        done.display.as_deref(),
        Some("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n a\n")
    );
    let details = done.details.unwrap();
    assert_eq!(
        (&details["path"], &details["added"], &details["removed"]),
        (&json!("f"), &json!(1), &json!(1))
    );
    assert_ne!(details["sha256"], details["sha256_before"]);
    world
        .ok(
            "Edit",
            json!({ "file_path": "f", "old_string": "a", "new_string": "x", "replace_all": true }),
        )
        .await;
    assert_eq!(world.get("f"), "x\nB\nx\n");
}

#[tokio::test]
async fn edit_needs_the_file_unchanged_since_it_was_read_and_remembers_it_from_the_log() {
    let mut world = World::new();
    world.put("f", "one\r\ntwo\r\n");
    world.ok("Read", json!({ "file_path": "f" })).await;
    let edit = json!({ "file_path": "f", "old_string": "one\ntwo", "new_string": "1\n2" });
    world.put("f", "one\r\ntwo\r\nthree\r\n");
    assert_eq!(world.refused("Edit", edit.clone()).await.0, "E_CHANGED");
    let read = world.call("Read", json!({ "file_path": "f" })).await;
    world.seen = FilesSeen::default();
    world.seen.apply(read.details.as_ref());
    world.ok("Edit", edit).await;
    assert_eq!(world.get("f"), "1\r\n2\r\nthree\r\n");
}

#[tokio::test]
async fn redteam_53_of_two_concurrent_edits_one_wins_and_one_fails() {
    let mut first = World::new();
    first.put("f", "start\n");
    first.ok("Read", json!({ "file_path": "f" })).await;
    for round in 0..50 {
        let registry = Registry::builtin(&first.limits);
        let content = first.get("f");
        let edit = |who: &str| {
            let input =
                json!({ "file_path": "f", "old_string": content, "new_string": format!("{who}{round}\n") });
            registry.prepare("Edit", &input).unwrap()
        };
        let (a, b) = (edit("a"), edit("b"));
        let (one, other) = tokio::join!(run(&a, first.context()), run(&b, first.context()));
        let won = [&one, &other]
            .iter()
            .filter(|done| done.outcome.status == ToolStatus::Ok)
            .count();
        assert_eq!(won, 1, "{one:?} {other:?}");
        for done in [one, other]
            .iter()
            .filter(|done| done.outcome.status == ToolStatus::Ok)
        {
            first.seen.apply(done.outcome.details.as_ref());
        }
    }
}

#[tokio::test]
async fn ls_lists_types_and_sizes_and_is_bounded() {
    let mut world = World::new();
    world.put("b", "12").put("a/x", "");
    symlink("b", world.root().join("c")).unwrap();
    assert_eq!(world.ok("Ls", json!({})).await, "a/\nb (2 bytes)\nc@\n");
    assert_eq!(world.ok("Ls", json!({ "path": "a" })).await, "x (0 bytes)\n");
    assert!(
        world
            .refused("Ls", json!({ "path": "b" }))
            .await
            .1
            .ends_with("Use Read to read it.")
    );
    world.limits.max_lines = 2;
    let cut = world.call("Ls", json!({})).await;
    assert!(
        cut.llm_text
            .ends_with("b (2 bytes)\n[2 of 3 entries. Use Glob with a pattern to narrow it down.]\n")
    );
    assert_eq!(cut.truncated.map(|cut| cut.lines), Some(3));
}

#[test]
fn the_detail_of_a_call_is_exactly_what_will_happen() {
    let world = World::new();
    world.put("f", "a\nb\n");
    let beneath = Beneath::open(&world.root()).unwrap();
    let registry = Registry::builtin(&world.limits);
    let detail = |name: &str, input: Value| registry.prepare(name, &input).unwrap().detail(&beneath).unwrap();
    let edit = |old: &str| json!({ "file_path": "f", "old_string": old, "new_string": "x" });
    assert_eq!(
        detail("Edit", edit("b")),
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+x\n"
    );
    assert!(
        detail("Edit", edit("c"))
            .starts_with("In the current state, this edit fails: Edit: `old_string` is not in f.")
    );
    let write = json!({ "file_path": "new", "content": "1\n" });
    assert_eq!(
        detail("Write", write),
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n"
    );
    let outside = json!({ "file_path": "../new", "content": "1\n" });
    assert!(detail("Write", outside).contains("is outside the working directory"));
    let command = "x".repeat(100_000);
    let shown = detail("Bash", json!({ "command": command }));
    assert_eq!(shown, command, "all of it, and nothing of ours");
    let endless = json!({ "file_path": "new", "content": "1\n".repeat(300_000) });
    let refused = registry.prepare("Write", &endless).unwrap().detail(&beneath);
    assert!(
        refused.unwrap_err().contains("split it into smaller parts"),
        "it is not cut"
    );
    assert_eq!(
        detail("Grep", json!({ "pattern": "x", "path": "src" })),
        "Grep \"x\" in src"
    );
}
