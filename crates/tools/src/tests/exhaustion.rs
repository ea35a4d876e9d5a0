//! Attacks on the daemon's threads and memory through the file tools: pipes, patterns, braces. Each has a control that
//! shows what happens without the guard. The table is in docs/security/exhaustion.md.

use super::*;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mkfifoat(CWD, path, Mode::RWXU).unwrap();
}

/// Waits until a reader of the pipe blocks for a writer, and releases it.
fn release_reader(path: &Path) {
    while open(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_err() {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn redteam_23_and_40_i6_pipes_in_the_place_of_files_stop_no_walk() {
    // Files that walkers open on their own. ripgrep, fd and every tool on the crate `ignore` block on the first three
    // because they open them without checking their type; git blocks on .gitignore and .git/config.
    for place in [
        ".gitignore",
        ".ignore",
        ".git/info/exclude",
        "src/.gitignore",
        "src/deep/.ignore",
        "src/a.rs",
        "AGENTS.md",
    ] {
        let mut world = World::new();
        world
            .put("src/deep/found.rs", "fn needle() {}\n")
            .put("other.md", "needle\n");
        pipe(&world.root().join(place));
        let found = world.ok("Glob", json!({ "pattern": "*.rs" })).await;
        assert_eq!(found, "src/deep/found.rs\n", "{place}");
        let found = world.ok("Grep", json!({ "pattern": "needle" })).await;
        assert!(
            found.contains("found.rs") && found.contains("other.md"),
            "{place}: {found}"
        );
        let found = world.ok("RepoMap", json!({})).await;
        assert!(found.contains("fn needle"), "{place}: {found}");
        let (code, _) = world.refused("Read", json!({ "file_path": place })).await;
        assert_eq!(code, "E_NOT_FILE", "{place}");
    }
}

#[test]
fn redteam_control_a_walk_by_the_crate_ignore_waits_for_a_pipe() {
    let world = World::new();
    let fifo = world.root().join(".gitignore");
    pipe(&fifo);
    let root = world.root();
    let walk = std::thread::spawn(move || {
        let mut walk = ignore::WalkBuilder::new(root);
        walk.require_git(false).build().count()
    });
    // This returns only because the walk opened the pipe and blocks on it.
    release_reader(&fifo);
    assert!(walk.join().unwrap() > 0);
}

#[tokio::test]
async fn redteam_40_i6_a_models_pattern_uses_only_a_few_megabytes() {
    let mut world = World::new();
    world.put("a.txt", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
    let bombs = [
        // Observed with this daemon: three of these took 3.1 GB.
        r"(\pL{100}){25}".to_owned(),
        r"((\pL{100}){25}){4}".to_owned(),
        // CVE-2022-24713 (rust-lang/regex): repeated empty sub-expressions.
        "(?:){4294967295}".to_owned(),
        "(?:(?:(?:){1000}){1000}){1000}x".to_owned(),
        // CVE-2022-41715 (Go regexp/syntax): parsing takes a multiple of the pattern's size.
        format!("({}){{500}}", r"\pL\pN".repeat(300)),
        // The RE2 test suite: nested repetition counts.
        "((((a{30}){30}){30}){30}){30}".to_owned(),
        // Depth.
        format!("{}a{}", "(".repeat(1_000), ")".repeat(1_000)),
        // Class bombs, and a pattern that is merely long.
        r"[\pL\pM\pN\pP\pS]{1000,2000}".to_owned(),
        "(a|b)".repeat(2_000),
    ];
    for bomb in &bombs {
        let outcome = world.call("Grep", json!({ "pattern": bomb })).await;
        let refused = outcome.status == ToolStatus::Error && code(&outcome) == "E_INVALID_ARGS";
        assert!(
            refused || outcome.status == ToolStatus::Ok,
            "{bomb}: {}",
            outcome.llm_text
        );
    }
    // The first two, and those that are too deep or too long, must be refused, not merely fail to match.
    for n in [0, 1, 5, 6, 7, 8] {
        let (code, text) = world.refused("Grep", json!({ "pattern": bombs[n] })).await;
        assert_eq!(code, "E_INVALID_ARGS", "{text}");
    }
    // Control: with the engine's defaults (100 MB for the program, 1 GB for its automaton) a smaller pattern compiles.
    let (code, _) = world.refused("Grep", json!({ "pattern": r"\pL{1000}" })).await;
    assert_eq!(code, "E_INVALID_ARGS");
    assert!(grep_regex::RegexMatcherBuilder::new().build(r"\pL{1000}").is_ok());
    // Ordinary patterns still work.
    for pattern in [r"^a+!$", r"\w{1,64}!", r"(?i)A{32}!", r"\p{Lu}|a"] {
        let found = world.ok("Grep", json!({ "pattern": pattern })).await;
        assert!(found.contains("a.txt:1"), "{pattern}: {found}");
    }
}

#[tokio::test]
async fn redteam_40_i6_backtracking_patterns_take_linear_time() {
    // ReDoS examples of OWASP and SonarSource; this engine does not back-track, so each of them ends.
    let mut world = World::new();
    world.put("a.txt", format!("{}!\n", "a".repeat(50_000)));
    for pattern in [
        r"^(a+)+$",
        r"^([a-zA-Z]+)*$",
        r"^(a|aa)+$",
        r"^(a|a?)+$",
        r"(.*a){12}$",
        r"^(\w+\s?)*$",
    ] {
        let outcome = world.call("Grep", json!({ "pattern": pattern })).await;
        assert_eq!(outcome.status, ToolStatus::Ok, "{pattern}: {}", outcome.llm_text);
        assert_eq!(outcome.details.unwrap()["complete"], true, "{pattern}");
    }
}

#[tokio::test]
async fn redteam_40_i6_nested_braces_are_bounded() {
    let mut world = World::new();
    world.put("a.rs", "x\n");
    let refused = [
        // Once made the tool panic: the glob is accepted, its regular expression is not.
        format!("{}a{}", "{".repeat(260), "}".repeat(260)),
        // CVE-2024-4068 (npm braces): unbalanced braces.
        "{".repeat(100_000),
        // CVE-2022-30630, -30632 (Go path/filepath.Glob): depth exhausts the stack.
        format!("{}a{}", "{a,".repeat(50_000), "}".repeat(50_000)),
        // CVE-2017-18077 (npm brace-expansion): each repeated `{,}` doubles the result where braces are expanded.
        "{,}".repeat(1_500),
        // A long unclosed class.
        format!("[{}", "!".repeat(50_000)),
    ];
    for bomb in &refused {
        for (tool, key) in [("Glob", "pattern"), ("Grep", "glob")] {
            let mut input = json!({ "pattern": "x" });
            input[key] = json!(bomb);
            let (code, text) = world.refused(tool, input).await;
            assert_eq!(code, "E_INVALID_ARGS", "{text}");
        }
    }
    // CVE-2024-4067 (npm micromatch) and brace-expansion's doubling, within the limits: harmless without expansion.
    for harmless in [
        "{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}{,}a.rs",
        "{{a,b},{c,{d,e}}}.rs",
        "*{*{*{*{*{a}}}}}.rs",
    ] {
        let found = world.ok("Glob", json!({ "pattern": harmless })).await;
        assert_eq!(found, "a.rs\n", "{harmless}");
    }
}

#[tokio::test]
async fn redteam_40_i6_ignore_files_are_bounded() {
    let mut world = World::new();
    let bomb = format!("{}x{}\n", "{".repeat(400), "}".repeat(400));
    world
        .put(".gitignore", format!("{bomb}hidden.rs\n"))
        .put("hidden.rs", "x\n")
        .put("shown.rs", "x\n")
        // Only the beginning of the file counts; the entries after it are shown.
        .put("big/.gitignore", format!("{}late.rs\n", "#\n".repeat(200_000)))
        .put("big/late.rs", "x\n");
    let found = world.ok("Glob", json!({ "pattern": "*.rs" })).await;
    assert_eq!(found, "big/late.rs\nshown.rs\n");
}

/// A tree with ignore rules of every kind, and files for them.
fn ruled() -> World {
    let world = World::new();
    world
        .put(
            ".gitignore",
            "\u{feff}target/\n*.log\n!keep.log\n/only-top\n!.shown\ndocs/**/x\n# no\n\\#yes\n",
        )
        .put(".ignore", "!b.log\nnever\n")
        .put("a/.gitignore", "*.tmp\n!target/\n")
        .put("a/.ignore", "secret\n")
        .put(".git/info/exclude", "excluded\n")
        .put("repo/.git/HEAD", "")
        .put("repo/.gitignore", "inner\n");
    for name in [
        "target/x",
        "a.log",
        "b.log",
        "keep.log",
        "only-top",
        "a/only-top",
        ".shown",
        ".hidden/f",
        "docs/q/x",
        "docs/q/y",
        "#yes",
        "never/x",
        "a/never",
        "a/n.tmp",
        "a/target/t",
        "a/secret/s",
        "a/b/c/d.tmp",
        "excluded",
        "a/excluded",
        "repo/a.log",
        "repo/inner",
        "repo/x",
        "z",
        "a.b/c",
        "a-b/c",
    ] {
        world.put(name, "");
    }
    std::os::unix::fs::symlink("z", world.root().join("link")).unwrap();
    world
}

#[test]
fn the_walk_finds_what_the_crate_ignore_finds() {
    let world = ruled();
    for hidden in [false, true] {
        let beneath = Beneath::open(&world.root()).unwrap();
        for base in ["", "a", "repo"] {
            let mut ours = Vec::new();
            let whole = crate::walk::files(&beneath, Path::new(base), hidden, &|| false, |path| {
                ours.push(path);
                true
            });
            assert!(whole);
            let mut walk = ignore::WalkBuilder::new(world.root().join(base));
            walk.hidden(!hidden)
                .parents(false)
                .git_global(false)
                .require_git(false);
            walk.filter_entry(|entry| entry.file_name() != OsStr::new(".git"));
            let theirs: Vec<PathBuf> = walk
                .sort_by_file_path(Path::cmp)
                .build()
                .map(Result::unwrap)
                .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
                .map(|entry| entry.path().strip_prefix(world.root()).unwrap().to_owned())
                .collect();
            assert_eq!(ours, theirs, "{base:?}, hidden: {hidden}");
            assert!(theirs.len() > 1);
        }
    }
}
