//! RepoMap on real files.

use super::World;
use serde_json::json;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn a_map_lists_definitions_most_used_first() {
    let mut world = World::new();
    world
        .put(
            "src/core.rs",
            "/// Opens.\npub fn open_session(name: &str) {}\nfn lonely() {}\n",
        )
        .put("src/one.rs", "fn one() { open_session(\"a\") }\n")
        .put("src/two.py", "def two():\n    open_session('b')\n")
        .put("notes.txt", "fn not_code() {}\n");
    let outcome = world.call("RepoMap", json!({})).await;
    let text = &outcome.llm_text;
    let place = |needle: &str| {
        text.find(needle)
            .unwrap_or_else(|| panic!("{needle} is missing in {text}"))
    };
    assert!(place("src/core.rs:\n    2| pub fn open_session(name: &str) {}") < place("src/one.rs:"));
    assert!(place("    1| def two():") > 0 && !text.contains("not_code"));
    let details = outcome.details.unwrap();
    assert_eq!(
        (&details["files"], &details["parsed"], &details["complete"]),
        (&json!(3), &json!(3), &json!(true))
    );
}

#[tokio::test]
async fn a_second_map_reads_only_changed_files() {
    let mut world = World::new();
    world
        .put("a.rs", "fn first() {}\n")
        .put("b.rs", "fn second() {}\n");
    let _ = world.call("RepoMap", json!({})).await;
    world.put("b.rs", "fn third_thing() {}\n");
    let outcome = world.call("RepoMap", json!({})).await;
    assert!(outcome.llm_text.contains("third_thing") && !outcome.llm_text.contains("second"));
    assert_eq!(outcome.details.unwrap()["parsed"], json!(1));
}

#[tokio::test]
async fn a_damaged_cached_map_is_rebuilt() {
    let mut world = World::new();
    world.put("a.rs", "fn first() {}\n");
    let _ = world.call("RepoMap", json!({})).await;
    for kept in std::fs::read_dir(world.root().join(".maps")).unwrap() {
        std::fs::write(kept.unwrap().path(), "garbage").unwrap();
    }
    let outcome = world.call("RepoMap", json!({})).await;
    assert!(outcome.llm_text.contains("fn first()"));
}

#[tokio::test]
async fn focus_names_and_budget_select_definitions() {
    let mut world = World::new();
    for n in 0..200 {
        world.put(&format!("f{n}.rs"), format!("fn function_{n}() {{}}\n"));
    }
    let outcome = world
        .call("RepoMap", json!({ "names": ["function_77"], "tokens": 100 }))
        .await;
    assert!(
        outcome
            .llm_text
            .starts_with("f77.rs:\n    1| fn function_77() {}\n")
    );
    assert!(outcome.llm_text.lines().count() < 40);
}

#[tokio::test]
async fn a_map_stays_beneath_the_working_directory() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.rs"), "fn secret_thing() {}\n").unwrap();
    symlink(outside.path(), world.root().join("dir")).unwrap();
    symlink(outside.path().join("secret.rs"), world.root().join("file.rs")).unwrap();
    world
        .put(".gitignore", "ignored.rs\n")
        .put("ignored.rs", "fn ignored_thing() {}\n")
        .put("a.rs", "fn a() {}\n");
    let outcome = world.call("RepoMap", json!({})).await;
    assert!(!outcome.llm_text.contains("secret_thing") && !outcome.llm_text.contains("ignored_thing"));
    let (code, _) = world.refused("RepoMap", json!({ "path": "../" })).await;
    assert_eq!(code, "E_DENIED");
    let (_, text) = world.refused("RepoMap", json!({ "path": "a.rs" })).await;
    assert!(text.contains("is not a directory"));
}

#[tokio::test]
async fn i7_a_map_omits_files_with_denied_reads() {
    let mut world = World::new();
    world.files = crate::FileGate::new(|path| std::future::ready(!path.starts_with("secret/")));
    world
        .put("secret/a.rs", "fn secret_thing() {}\nfn other_secret() {}\n")
        .put("b.rs", "fn open_thing() { secret_thing() }\n");
    let outcome = world.call("RepoMap", json!({ "names": ["secret_thing"] })).await;
    let text = &outcome.llm_text;
    assert!(text.contains("fn open_thing") && !text.contains("secret/") && !text.contains("other_secret"));
    assert!(text.contains("do not allow reading them here: 1.]"), "{text}");
    assert_eq!(outcome.details.unwrap()["left_out"], json!(1));
}
