use crate::*;
use std::path::Path;

fn class(path: &str) -> Class {
    ProtectedPaths::default().classify(Path::new(path))
}

#[track_caller]
fn all(expected: Class, paths: &[&str]) {
    for path in paths {
        assert_eq!(class(path), expected, "{path}");
    }
}

#[test]
fn i7_git_metadata_is_protected_at_any_depth() {
    all(
        Class::Protected(Reason::GitMetadata),
        &[
            ".git/config.worktree",
            ".git/commondir",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/modules/m/config",
            ".git/modules/m/objects/ab/cd",
            ".git/worktrees/t/gitdir",
            ".git/worktrees/t/commondir",
            ".git/objects/info/alternates",
            ".git/objects/info/alternates.lock",
            ".git/info/grafts",
            ".git/refs/replace/1234",
            ".git/refs/Replace",
            ".git/worktrees/t/refs/replace/1234",
            ".git/rebase-merge/strategy",
            ".git/rebase-merge/gpg_sign_opt",
            ".git/rebase-merge/update-refs",
            ".git/rebase-merge/sedAbC1234",
            ".git/rebase-merge/config.agentd",
            ".git/rebase-merge/done/x",
            ".git/rebase-apply",
            ".git/rebase-apply/apply-opt",
            ".git/sequencer/git-rebase-todo",
            "target/sub/.git/modules",
            ".git/refs/x/.git/hooks/pre-push",
            ".git/hooks/pre-commit.sample/x",
            ".git/worktrees",
            ".git/worktrees/t",
            ".git/gitweb.conf",
            "docs/theme/HEAD",
        ],
    );
}

#[test]
fn what_git_init_writes_is_told_apart() {
    let directories = [
        ".git",
        "sub/.git",
        "a/b/.GIT",
        ".git/hooks",
        ".git/objects",
        "node_modules/x/.git",
    ];
    all(Class::GitDirectory, &directories);
    let configurations = [".git/config", "target/sub/.git/config", ".git/refs/x/.git/config"];
    all(Class::GitConfig, &configurations);
    all(
        Class::GitSetup,
        &[
            ".git/config.lock",
            ".git/description",
            ".git/hooks/pre-commit.sample",
            ".git/tAbC123",
        ],
    );
    all(
        Class::GitOperation,
        &[".git/rebase-merge", ".git/worktrees/t/sequencer"],
    );
    all(
        Class::GitSteps,
        &[".git/rebase-merge/git-rebase-todo", ".git/sequencer/todo"],
    );
    all(Class::GitOptions, &[".git/sequencer/opts"]);
    all(
        Class::GitOfMaker,
        &[".git/info/exclude", ".git/shallow", "sub/.git/shallow.lock"],
    );
    all(
        Class::GitPackedRefs,
        &[".git/packed-refs", "target/sub/.git/packed-refs"],
    );
}

#[test]
fn what_a_commit_writes_is_data() {
    all(
        Class::GitData,
        &[
            ".git/index",
            ".git/index.lock",
            ".git/HEAD.lock",
            ".git/COMMIT_EDITMSG",
            ".git/objects/ab/cdef",
            ".git/objects/pack/tmp_pack_x",
            ".git/objects/info/packs",
            ".git/refs/heads/main.lock",
            ".git/logs/HEAD",
            ".git/next-index-123.lock",
            ".git/worktrees/t/index.lock",
            ".git/worktrees/t/logs/HEAD",
            ".git/rebase-merge/head-name",
            ".git/rebase-merge/git-rebase-todo.lock",
            ".git/rebase-merge/git-rebase-todo.backup.lock",
            ".git/rebase-merge/sedAbC123",
            ".git/sequencer/abort-safety",
            ".git/sequencer/opts.lock",
            ".git/worktrees/t/rebase-merge/done",
            "sub/.git/refs/heads/main",
        ],
    );
}

#[test]
fn i7_hidden_paths_and_instruction_files_are_protected() {
    all(
        Class::Protected(Reason::Hidden),
        &[
            ".vscode/tasks.json",
            "sub/.idea/x.xml",
            ".envrc",
            ".github/workflows/ci.yml",
            ".gitattributes",
            ".gitmodules",
            ".npmrc",
            ".husky/pre-commit",
            "../outside",
            "a/../../b",
            "/etc/passwd",
            ".cargo/config.toml",
        ],
    );
    all(
        Class::Protected(Reason::Instructions),
        &["AGENTS.md", "docs/claude.md", "GEMINI.md"],
    );
}

#[test]
fn sources_caches_and_build_output_are_free() {
    all(
        Class::Free,
        &[
            "",
            "./src/main.rs",
            ".gitignore",
            "sub/.dockerignore",
            "target/debug/.fingerprint/x",
            "node_modules/.bin/tsc",
            "node_modules/p/CLAUDE.md",
            ".venv/lib/.libs/x.so",
            ".pytest_cache/v/x",
            ".tmpAb12",
            ".main.rs.swp",
            "git/config",
            "docs/theme/config",
            "docs/theme/head",
            "target/fixture.git/HEAD",
        ],
    );
}

#[test]
fn what_git_names_is_protected_wherever_it_lies() {
    let paths = ProtectedPaths::default().with_named(Named::paths(["tools/hooks"]));
    let named = Class::Protected(Reason::NamedByGit);
    assert_eq!(paths.classify(Path::new("tools/hooks/pre-commit")), named);
    assert_eq!(paths.classify(Path::new("tools/hooks")), named);
    assert_eq!(paths.classify(Path::new("tools/hooks2")), Class::Free);
}

#[test]
fn a_guard_names_what_makes_a_path_protected() {
    let paths = ProtectedPaths::default().with_named(Named::paths(["tools/hooks"]));
    for (path, reason, component) in [
        ("a/.git/index", Reason::GitMetadata, ".git"),
        ("x/HEAD", Reason::GitMetadata, "HEAD"),
        ("tools/hooks/pre-commit", Reason::NamedByGit, "hooks"),
        ("a/.github/.x/y", Reason::Hidden, ".github"),
        ("docs/Agents.md", Reason::Instructions, "Agents.md"),
        ("../x", Reason::Hidden, ""),
    ] {
        let component = component.to_owned();
        assert_eq!(
            paths.guard(Path::new(path)),
            Some(Guard { reason, component }),
            "{path}"
        );
    }
    assert_eq!(paths.guard(Path::new("target/.x")), None);
}

#[test]
fn exceptions_are_names_and_never_free_git() {
    for text in DEFAULT_EXCEPTIONS {
        assert!(ProtectedPaths::new([*text]).is_ok(), "{text}");
    }
    for text in ["", "a/b", ".", ".."] {
        let refused = ProtectedPaths::new([text]);
        assert_eq!(refused, Err(BadException::NotAName(text.to_owned())));
    }
    for text in [".git", ".g*", "*", "?*", ".???", "*t"] {
        assert_eq!(
            ProtectedPaths::new([text]),
            Err(BadException::Git(text.to_owned()))
        );
    }
    let none = ProtectedPaths::new([]).unwrap();
    assert_eq!(
        none.classify(Path::new(".venv/x")),
        Class::Protected(Reason::Hidden)
    );
    assert!(!none.is_excepted(Path::new(".venv/x")));
    assert!(ProtectedPaths::default().is_excepted(Path::new("a/.venv/x")));
}

#[test]
fn a_pattern_matches_in_bounded_time() {
    let pattern = "*a".repeat(40);
    let paths = ProtectedPaths::new([pattern.as_str()]).unwrap();
    assert!(!paths.is_excepted(Path::new(&"b".repeat(5000))));
    assert!(paths.is_excepted(Path::new(&"ba".repeat(40))));
}

#[test]
fn a_name_in_a_git_directory_is_no_exception() {
    let excepted = |path: &str| ProtectedPaths::default().is_excepted(Path::new(path));
    for path in ["target", "a/target/.git/refs/heads/x", "node_modules/m/x"] {
        assert!(excepted(path), "{path}");
    }
    for path in [".git/refs/heads/build", "a/.GIT/modules/target/index", "src/x"] {
        assert!(!excepted(path), "{path}");
    }
}

#[test]
fn git_directories_of_other_trees_lie_in_known_places() {
    for path in [
        ".git/modules",
        ".git/modules/a/b",
        "s/.git/worktrees",
        ".git/worktrees/t",
    ] {
        assert!(holds_git_directories(Path::new(path)), "{path}");
    }
    for path in [
        "modules/a",
        ".git",
        ".git/refs/modules",
        ".git/worktrees/t/x",
        ".git/modules/a/.git/hooks",
    ] {
        assert!(!holds_git_directories(Path::new(path)), "{path}");
    }
}
