//! What a repository configures does not run, and the bounds hold.

use super::*;
use std::fs;
use std::path::Path;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "tests find git as a person does")]
fn environment() -> GitEnvironment {
    GitEnvironment {
        path: std::env::var("PATH").unwrap().into(),
        mark: Some(("AGENTD_UNDER".to_owned(), "test".into())),
        ..GitEnvironment::default()
    }
}

/// A bare repository, and a place where traps leave their mark.
fn repository() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("r.git");
    fs::create_dir(&repository).unwrap();
    let args = ["init", "-q", "--bare", "--template=", "-b", "main"];
    blocking(&environment(), Run::bare(&repository, args)).unwrap();
    (dir, repository)
}

/// Writes a commit and returns its id.
fn commit(repository: &Path, subject: &str) -> String {
    let tree = blocking(
        &environment(),
        Run::bare(repository, ["mktree"]).input(Vec::new()),
    )
    .unwrap();
    let tree = String::from_utf8(tree).unwrap();
    let run = Run::bare(repository, ["commit-tree", tree.trim(), "-m", subject])
        .variable("GIT_AUTHOR_NAME", "a")
        .variable("GIT_AUTHOR_EMAIL", "a@b")
        .variable("GIT_COMMITTER_NAME", "a")
        .variable("GIT_COMMITTER_EMAIL", "a@b");
    let commit = blocking(&environment(), run).unwrap();
    String::from_utf8(commit).unwrap().trim().to_owned()
}

#[test]
fn i7_nothing_that_a_repository_names_runs() {
    let (dir, repository) = repository();
    let marks = dir.path().join("marks");
    fs::create_dir(&marks).unwrap();
    let trap = |name: &str| format!("touch {}; false", marks.join(name).display());
    let hooks = repository.join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["reference-transaction", "post-update", "update"] {
        let path = hooks.join(hook);
        fs::write(&path, format!("#!/bin/sh\n{}\n", trap(hook))).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = \"{}\"\n\tpager = \"{}\"\n\talternateRefsCommand = \"{}\"\n\tsshCommand = \"{}\"\n[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n",
        trap("fsmonitor"),
        trap("pager"),
        trap("alternates"),
        trap("ssh"),
    );
    fs::write(repository.join("config"), config).unwrap();
    let one = commit(&repository, "one");
    let name = "refs/heads/main";
    blocking(&environment(), Run::bare(&repository, ["update-ref", name, &one])).unwrap();
    blocking(&environment(), Run::bare(&repository, ["log", name])).unwrap();
    let url = format!("ext::sh -c touch% {}", marks.join("ext").display());
    for url in [url.as_str(), "ssh://localhost/x", "file:///"] {
        let refused = blocking(&environment(), Run::bare(&repository, ["fetch", url])).unwrap_err();
        assert!(refused.to_string().contains("not allowed"), "{refused}");
    }
    assert_eq!(
        fs::read_dir(&marks).unwrap().count(),
        0,
        "{:?}",
        fs::read_dir(&marks)
    );
}

#[test]
fn a_run_sees_no_environment_but_its_own() {
    let (_dir, repository) = repository();
    let run = Run::bare(&repository, ["-c", "alias.environment=!env", "environment"]);
    let run = blocking(&environment(), run.variable("GIT_PREFIX", "")).unwrap();
    let text = String::from_utf8(run).unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .filter(|name| !name.starts_with("GIT_"))
        .collect();
    for name in names {
        assert!(
            [
                "AGENTD_UNDER",
                "HOME",
                "LC_ALL",
                "PATH",
                "PWD",
                "SHLVL",
                "OLDPWD",
                "_"
            ]
            .contains(&name),
            "{text}"
        );
    }
    assert!(
        text.contains("AGENTD_UNDER=test") && text.contains("HOME=/nonexistent"),
        "{text}"
    );
}

#[tokio::test]
async fn only_the_named_protocol_is_allowed() {
    let (dir, repository) = repository();
    let one = commit(&repository, "one");
    let update = ["update-ref", "refs/heads/main", &one];
    blocking(&environment(), Run::bare(&repository, update)).unwrap();
    let url = format!("file://{}", repository.display());
    let list = |protocol| Run::new(dir.path(), MINUTE, ["ls-remote", &url]).remote(protocol);
    let listed = git(&environment(), list("file")).await.unwrap().text();
    assert!(listed.contains("refs/heads/main"), "{listed}");
    let refused = git(&environment(), list("https")).await.unwrap_err();
    assert!(refused.to_string().contains("not allowed"), "{refused}");
}

#[tokio::test]
async fn i6_a_slow_run_ends_with_everything_that_it_started() {
    let (dir, repository) = repository();
    let (pipe, mark) = (dir.path().join("pipe"), dir.path().join("mark"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    // The child waits for a writer of the pipe that never comes.
    let alias = format!("alias.wait=!cat {}; touch {}", pipe.display(), mark.display());
    let run = Run::new(dir.path(), Duration::from_millis(200), ["-c", &alias, "wait"]);
    let slow = git(&environment(), run.repository(&repository, None)).await;
    assert!(matches!(slow, Err(GitError::Slow { .. })), "{slow:?}");
    assert!(!mark.exists());
}

#[tokio::test]
async fn lines_are_passed_on_whole_until_they_are_not_wanted() {
    let (_dir, repository) = repository();
    // More than one chunk of the pipe, with lines across its borders, and none at the end.
    let names: Vec<String> = (0..9_000).map(|n| format!("{n:040}")).collect();
    let run = || Run::new(&repository, MINUTE, ["stripspace"]).input(names.join("\n").into_bytes());
    let mut seen = Vec::new();
    let each = |line: &[u8]| {
        seen.push(String::from_utf8(line.to_vec()).unwrap());
        true
    };
    assert!(lines(&environment(), run(), each).await.unwrap());
    assert_eq!(seen, names);
    let mut left = 5;
    let some = |_: &[u8]| {
        left -= 1;
        left > 0
    };
    assert!(!lines(&environment(), run(), some).await.unwrap());
    assert_eq!(left, 0);
    let long = Run::new(&repository, MINUTE, ["stripspace"]).input(vec![b'x'; 200_000]);
    let error = lines(&environment(), long, |_| true).await.unwrap_err();
    assert!(error.to_string().contains("a line of more than"), "{error}");
    let unknown = Run::new(&repository, MINUTE, ["rev-list", "nothing"]);
    let error = lines(&environment(), unknown, |_| true).await.unwrap_err();
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn messages_are_short_and_plain() {
    assert_eq!(words(b"fatal: no\nerror: yes\n\n3\n4\n", Some(1)), "no; yes; 3");
    assert_eq!(words(b" \n", Some(128)), "exit status 128");
    assert_eq!(words(b"", None), "ended by a signal");
    assert_eq!(words(b"a\x1b[31mb", Some(1)), "a[31mb");
    assert_eq!(words(&[b'x'; 9_000], Some(1)).len(), 2_000);
}

#[tokio::test]
async fn a_missing_git_is_said() {
    let (_dir, repository) = repository();
    let nowhere = GitEnvironment {
        path: "/nonexistent".into(),
        ..GitEnvironment::default()
    };
    let run = Run::new(&repository, MINUTE, ["version"]);
    assert!(matches!(git(&nowhere, run).await, Err(GitError::Missing)));
    let run = Run::bare(&repository, ["version"]);
    assert!(matches!(blocking(&nowhere, run), Err(GitError::Missing)));
}
