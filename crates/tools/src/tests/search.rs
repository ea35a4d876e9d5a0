use super::*;
use serde_json::json;
use std::os::unix::fs::symlink;

fn project() -> World {
    let world = World::new();
    world
        .put("src/main.rs", "fn main() {\n    run();\n}\n")
        .put("src/deep/lib.rs", "pub fn run() {}\n")
        .put("notes.md", "run it\nRUN it\n")
        .put(".gitignore", "target/\n*.log\n")
        .put("target/out.rs", "run\n")
        .put("x.log", "run\n")
        .put(".hidden/h.rs", "run\n")
        .put(".git/config", "run\n")
        .put("binary", b"run\0run\n");
    world
}

#[tokio::test]
async fn glob_finds_by_pattern_and_honours_ignore_files() {
    let mut world = project();
    assert_eq!(
        world.ok("Glob", json!({ "pattern": "*.rs" })).await,
        "src/deep/lib.rs\nsrc/main.rs\n"
    );
    assert_eq!(
        world.ok("Glob", json!({ "pattern": "src/*.rs" })).await,
        "src/main.rs\n"
    );
    assert_eq!(
        world
            .ok("Glob", json!({ "pattern": "*.rs", "path": "src/deep" }))
            .await,
        "src/deep/lib.rs\n"
    );
    assert_eq!(
        world.ok("Glob", json!({ "pattern": ".hidden/*" })).await,
        ".hidden/h.rs\n"
    );
    assert_eq!(
        world.ok("Glob", json!({ "pattern": "*.py" })).await,
        "No file matches *.py. Hidden and ignored files were left out; a pattern that names them, such as `.config/**`, finds them.\n"
    );
    assert_eq!(
        world.ok("Glob", json!({ "pattern": ".hidden/*.py" })).await,
        "No file matches .hidden/*.py.\n"
    );
    let absolute = format!("{}/src/*.rs", world.root().display());
    assert_eq!(
        world.ok("Glob", json!({ "pattern": absolute })).await,
        "src/main.rs\n"
    );
    assert_eq!(
        world.refused("Glob", json!({ "pattern": "a[" })).await.0,
        "E_INVALID_ARGS"
    );
    assert_eq!(
        world
            .refused("Glob", json!({ "pattern": "*", "path": "notes.md" }))
            .await
            .0,
        "E_NOT_FILE"
    );
}

#[tokio::test]
async fn brackets_that_a_name_has_mean_the_name() {
    let mut world = World::new();
    world
        .put("pages/[slug].tsx", "here\n")
        .put("pages/s.tsx", "here\n")
        .put("pages/a.tsx", "here\n");
    for (pattern, expected) in [
        ("pages/[slug].tsx", "pages/[slug].tsx\n"),
        ("[slug].*", "pages/[slug].tsx\n"),
        ("pages/[sa].tsx", "pages/a.tsx\npages/s.tsx\n"),
        ("pages/[!s].tsx", "pages/a.tsx\n"),
    ] {
        let found = world.ok("Glob", json!({ "pattern": pattern })).await;
        assert_eq!(found, expected, "{pattern}");
    }
    let hits = json!({ "pattern": "here", "glob": "[slug].tsx", "output_mode": "files_with_matches" });
    assert_eq!(world.ok("Grep", hits).await, "pages/[slug].tsx\npages/s.tsx\n");
}

#[tokio::test]
async fn grep_shows_a_match_far_behind_in_its_line() {
    let mut world = World::new();
    let line = format!("{}NEEDLE{}", "\u{e4}".repeat(3_000), "x".repeat(3_000));
    world.put("min.js", format!("{line}\n"));
    let hit = world.ok("Grep", json!({ "pattern": "NEEDLE" })).await;
    let shown = format!("{}NEEDLE{}", "\u{e4}".repeat(125), "x".repeat(369));
    assert_eq!(
        hit,
        format!("min.js:1:[2875 characters] ... {shown} ... [2631 more characters]\n")
    );
    world.put(
        "invalid",
        [&b"\xff".repeat(3_000)[..], b"NEEDLE", &b"y".repeat(3_000)].concat(),
    );
    let hit = world
        .ok("Grep", json!({ "pattern": "NEEDLE", "path": "invalid" }))
        .await;
    assert!(hit.contains("NEEDLE"), "{hit}");
}

#[tokio::test]
async fn glob_is_bounded() {
    let mut world = project();
    world.limits.max_lines = 1;
    let cut = world.call("Glob", json!({ "pattern": "*.rs" })).await;
    assert_eq!(
        cut.llm_text,
        "src/deep/lib.rs\n[The first 1 paths; there are more. Use a narrower pattern or `path`.]\n"
    );
    assert_eq!(cut.truncated.map(|cut| cut.lines), Some(2));
}

#[tokio::test]
async fn grep_shows_lines_with_path_and_number() {
    let mut world = project();
    let all = "notes.md:1:run it\nsrc/deep/lib.rs:1:pub fn run() {}\nsrc/main.rs:2:    run();\n";
    assert_eq!(world.ok("Grep", json!({ "pattern": "run" })).await, all);
    assert_eq!(
        world
            .ok("Grep", json!({ "pattern": "^run", "case_insensitive": true }))
            .await,
        "notes.md:1:run it\nnotes.md:2:RUN it\n"
    );
    assert_eq!(
        world
            .ok("Grep", json!({ "pattern": "run", "glob": "*.md" }))
            .await,
        "notes.md:1:run it\n"
    );
    assert_eq!(
        world
            .ok(
                "Grep",
                json!({ "pattern": "run\\(", "path": "src/main.rs", "context": 1 })
            )
            .await,
        "src/main.rs-1-fn main() {\nsrc/main.rs:2:    run();\nsrc/main.rs-3-}\n"
    );
    assert_eq!(
        world.ok("Grep", json!({ "pattern": "nothing" })).await,
        "No match for \"nothing\" in ..\n[One file was not searched to the end because of a NUL byte. Use Bash with `grep -a` for those.]\n"
    );
}

#[tokio::test]
async fn grep_shows_files_or_counts() {
    let mut world = project();
    let files = json!({ "pattern": "run", "path": "src", "output_mode": "files_with_matches" });
    assert_eq!(world.ok("Grep", files).await, "src/deep/lib.rs\nsrc/main.rs\n");
    let count = json!({ "pattern": "(?i)run", "glob": "*.md", "output_mode": "count" });
    assert_eq!(world.ok("Grep", count).await, "notes.md:2\n");
}

#[tokio::test]
async fn grep_is_bounded_in_lines_and_in_the_length_of_a_line() {
    let mut world = World::new();
    world
        .put("many", "hit\n".repeat(300))
        .put("long", format!("hit{}\n", "x".repeat(1000)));
    let long = world
        .ok("Grep", json!({ "pattern": "hit", "path": "long" }))
        .await;
    assert_eq!(
        long,
        format!("long:1:hit{} ... [503 more characters]\n", "x".repeat(497))
    );
    let many = world
        .call("Grep", json!({ "pattern": "hit", "path": "many" }))
        .await;
    assert_eq!(many.llm_text.lines().count(), 251);
    assert!(many.llm_text.ends_with("output_mode \"files_with_matches\".]\n"));
    assert_eq!(
        many.details,
        Some(json!({ "matches": 250, "files": 1, "complete": false, "left_out": 0 }))
    );
}

#[tokio::test]
async fn a_bad_regular_expression_is_explained() {
    let mut world = project();
    let (code, text) = world.refused("Grep", json!({ "pattern": "main(" })).await;
    assert_eq!(code, "E_INVALID_ARGS");
    assert!(
        text.contains("unclosed group") && text.contains("Escape special characters"),
        "{text}"
    );
}

#[tokio::test]
async fn searches_do_not_follow_links() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f.rs"), "run\n").unwrap();
    symlink(outside.path(), world.root().join("out")).unwrap();
    symlink(outside.path().join("f.rs"), world.root().join("l.rs")).unwrap();
    world.put("in.rs", "run\n");
    assert_eq!(
        world.ok("Grep", json!({ "pattern": "run" })).await,
        "in.rs:1:run\n"
    );
    assert_eq!(world.ok("Glob", json!({ "pattern": "*.rs" })).await, "in.rs\n");
}

/// Equivalent to the rule `deny Read(secret/**)`.
fn no_secrets() -> crate::FileGate {
    crate::FileGate::new(|path| std::future::ready(!path.starts_with("secret/")))
}

#[tokio::test]
async fn i7_grep_shows_nothing_of_a_file_with_denied_reads() {
    let mut world = World::new();
    world.files = no_secrets();
    world
        .put("a.rs", "run\n")
        .put("secret/b.rs", "before\nrun\nafter\n".repeat(300))
        .put("z.rs", "run\n");
    for (mode, expected) in [
        ("content", "a.rs:1:run\nz.rs:1:run\n"),
        ("files_with_matches", "a.rs\nz.rs\n"),
        ("count", "a.rs:1\nz.rs:1\n"),
    ] {
        let input = json!({ "pattern": "run", "context": 1, "output_mode": mode });
        let outcome = world.call("Grep", input).await;
        assert_eq!(outcome.llm_text.replace("--\n", ""), expected);
        let details = json!({ "matches": 2, "files": 2, "complete": true, "left_out": 1 });
        assert_eq!(outcome.details, Some(details));
    }
}

#[tokio::test]
async fn i7_grep_does_not_leak_the_content_of_a_denied_file() {
    let mut world = World::new();
    world.files = no_secrets();
    world.put("secret/key", "key=x1\n");
    let hit = world.ok("Grep", json!({ "pattern": "^key=x" })).await;
    let miss = world.ok("Grep", json!({ "pattern": "^key=y" })).await;
    assert_eq!(hit.replace("=x", "=y"), miss);
}

#[tokio::test]
async fn i7_a_file_named_by_grep_is_judged() {
    let mut world = World::new();
    world.files = crate::FileGate::closed();
    world.put("secret/key", "key=x1\n");
    let named = json!({ "pattern": "key", "path": "secret/key" });
    assert_eq!(world.ok("Grep", named).await, "secret/key:1:key=x1\n");
}

/// Finds nothing, and reports the directory that was searched.
#[derive(Debug)]
struct Elsewhere;

#[async_trait::async_trait]
impl crate::search::Search for Elsewhere {
    fn touched(&self, _: &std::path::Path) {}

    async fn search(
        &self,
        _: &std::path::Path,
        query: crate::search::SearchQuery,
    ) -> Result<crate::search::SearchFound, String> {
        Err(format!("looked below {:?}", query.below))
    }
}

#[tokio::test]
async fn a_search_below_a_missing_path_gets_a_suggestion() {
    let mut world = project();
    world.limits.search = true;
    world.index = Some(Arc::new(Elsewhere));
    let asked = |path: &str| json!({ "query": "where it runs", "path": path });
    let (_, text) = world.refused("SemanticSearch", asked("src/dep")).await;
    assert!(
        text.contains("src/dep") && text.contains("Did you mean src/deep?"),
        "{text}"
    );
    let (_, text) = world.refused("SemanticSearch", asked("nowhere/at/all")).await;
    assert!(text.contains("Use Glob or Ls"), "{text}");
    for (path, below) in [("src/deep", "src/deep"), ("notes.md", "notes.md"), (".", "")] {
        let (_, text) = world.refused("SemanticSearch", asked(path)).await;
        assert!(text.contains(&format!("looked below {below:?}")), "{text}");
    }
}
