//! A denied read holds for what git recorded of the path. Each attack works when only the files are hidden.

use crate::walls::{World, environment, found, spec};
use agentd_git::GitEnvironment;
use agentd_process_tests::{Case, Group, git, skipped};
use agentd_protocol::SandboxLevel::Isolated;
use agentd_sandbox::{Annex, Confinement, Findings, Hidden, Warden, readable};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![
        found,
        redteam_40_denied_reads_hold_for_recorded_files,
        redteam_40_denied_reads_hold_for_every_kind_of_repository,
        i7_a_history_that_cannot_be_searched_is_hidden,
        a_history_without_denied_paths_stays_readable,
    ];
    Group::new("history", Duration::from_secs(120), all)
}

const LONG: Duration = Duration::from_secs(60);

fn run(dir: &Path, args: &[&str]) {
    let done = git(dir).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// A repository with a denied file in its history, in its stash, in a commit that was amended, and in one that no reference
/// reaches any longer. Each says `canary`.
fn repository(dir: &Path) {
    fs::create_dir_all(dir.join("secret")).unwrap();
    run(dir, &["init", "-q"]);
    let commits = [
        ("first", "canary-1", &["commit", "-qm", "first"][..]),
        (
            "amended",
            "canary-2",
            &["commit", "-q", "--amend", "-m", "second"][..],
        ),
    ];
    for (free, secret, commit) in commits {
        fs::write(dir.join("free"), free).unwrap();
        fs::write(dir.join("secret/key"), secret).unwrap();
        run(dir, &["add", "."]);
        run(dir, commit);
    }
    fs::write(dir.join("secret/key"), "canary-3").unwrap();
    run(dir, &["stash", "-q"]);
}

fn hidden() -> Hidden {
    Hidden::by(|workdir, path| {
        path.strip_prefix(workdir)
            .is_ok_and(|path| path.starts_with("secret") && path != Path::new("secret"))
    })
}

fn searching() -> Hidden {
    searched_by(std::env::var_os("PATH").unwrap(), LONG)
}

/// Searched by the git in `path`.
fn searched_by(path: OsString, within: Duration) -> Hidden {
    let environment = GitEnvironment {
        path,
        ..GitEnvironment::default()
    };
    hidden().with_history(environment, within)
}

/// A `PATH` with a git that never ends.
fn endless(dir: &Path) -> OsString {
    let git = dir.join("git");
    fs::write(&git, "#!/bin/sh\nexec tail -f /dev/null\n").unwrap();
    fs::set_permissions(&git, Permissions::from_mode(0o755)).unwrap();
    std::env::join_paths([dir, Path::new("/usr/bin"), Path::new("/bin")]).unwrap()
}

/// A session in the working directory `w` that `prepare` makes. It may return what a workspace there borrows.
async fn world(hidden: Hidden, prepare: impl FnOnce(&Path) -> Option<Annex>) -> World {
    let dir = tempfile::tempdir().unwrap();
    for name in ["w", "outside"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let workdir = dir.path().join("w");
    let annex = prepare(&workdir);
    if let Some(annex) = &annex {
        annex.write(dir.path()).unwrap();
    }
    let walls = Confinement {
        hidden,
        workspaces: annex.and(dir.path().parent().map(Path::to_owned)),
        ..Confinement::new(Isolated, dir.path().join("temp"), readable(&environment(), &[]))
    };
    let spec = spec(&workdir, &environment());
    let (warden, _) = Warden::spawn_confined(&spec, &walls).await.unwrap();
    World { dir, warden }
}

/// Whether the attack reads a canary when only files are hidden, and when histories are searched, too.
async fn reads(attack: &str, prepare: impl Fn(&Path) -> Option<Annex>) -> [bool; 2] {
    let mut reads = [false; 2];
    for (hidden, reads) in [hidden(), searching()].into_iter().zip(&mut reads) {
        let said = world(hidden, &prepare).await.says(attack).await;
        *reads = said.contains("canary");
    }
    reads
}

async fn redteam_40_denied_reads_hold_for_recorded_files(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "denied reads and histories");
    }
    let attacks = [
        "git show HEAD:secret/key",
        "git log -p --all",
        "git cat-file -p HEAD:secret/key",
        "git archive HEAD | tar xO secret/key",
        "git diff $(git hash-object -t tree /dev/null) HEAD",
        "git grep -h canary HEAD",
        "git blame HEAD -- secret/key",
        "git show stash:secret/key",
        "git show HEAD@{1}:secret/key",
        "git show $(git fsck --unreachable --no-reflogs | awk '/commit/ { print $3 }')",
        "git cat-file --batch-all-objects --batch",
        "git bundle create /tmp/b HEAD 2> /dev/null; git clone -q /tmp/b /tmp/c; cat /tmp/c/secret/key",
        "git clone -q . /tmp/c; cat /tmp/c/secret/key",
        "mkdir /tmp/c; git --work-tree=/tmp/c checkout -f HEAD -- secret/key; cat /tmp/c/secret/key",
        "cp -r .git /tmp/c.git; git --git-dir=/tmp/c.git show HEAD:secret/key",
        "git init -q /tmp/c; export GIT_ALTERNATE_OBJECT_DIRECTORIES=$PWD/.git/objects; git -C /tmp/c show $(cat .git/refs/heads/main):secret/key",
        "git format-patch -1 --root --stdout",
        "git worktree add -q -f /tmp/c HEAD; cat /tmp/c/secret/key; git stash show -p",
    ];
    for attack in attacks {
        let prepare = |dir: &Path| {
            repository(dir);
            None
        };
        assert_eq!(reads(attack, prepare).await, [true, false], "{attack}");
    }
}

/// Makes a repository in the working directory, and returns what it borrows.
type Prepare = fn(&Path) -> Option<Annex>;

async fn redteam_40_denied_reads_hold_for_every_kind_of_repository(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "denied reads and kinds of repositories");
    }
    let unreferenced_commit = "git show $(git fsck --unreachable | awk '/commit/ { print $3 }')";
    let kinds: [(&str, Prepare); 8] = [
        ("git show HEAD:secret/key", packed),
        ("git show :secret/key", only_staged),
        (unreferenced_commit, unreferenced),
        ("git log -p", removed),
        ("git --git-dir=mirror show HEAD:secret/key", bare),
        ("git --git-dir=.git/modules/sub show HEAD:secret/key", submodule),
        ("git show HEAD:secret/key", borrowing),
        ("git show HEAD:secret/key", worktree),
    ];
    for (nth, (attack, prepare)) in kinds.into_iter().enumerate() {
        assert_eq!(reads(attack, prepare).await, [true, false], "{nth}: {attack}");
    }
}

fn packed(dir: &Path) -> Option<Annex> {
    repository(dir);
    run(dir, &["gc", "-q"]);
    None
}

fn only_staged(dir: &Path) -> Option<Annex> {
    run(dir, &["init", "-q"]);
    fs::create_dir(dir.join("secret")).unwrap();
    fs::write(dir.join("secret/key"), "canary").unwrap();
    run(dir, &["add", "."]);
    None
}

/// No reference, no log and no index names the commit.
fn unreferenced(dir: &Path) -> Option<Annex> {
    repository(dir);
    run(dir, &["update-ref", "-d", "HEAD"]);
    run(dir, &["stash", "drop", "-q"]);
    fs::remove_dir_all(dir.join(".git/logs")).unwrap();
    run(dir, &["rm", "-rq", "--cached", "."]);
    None
}

/// The last commit does not have the file any longer.
fn removed(dir: &Path) -> Option<Annex> {
    repository(dir);
    run(dir, &["rm", "-rq", "secret"]);
    run(dir, &["commit", "-qm", "without"]);
    None
}

/// A repository beside the working directory.
fn beside(dir: &Path) -> PathBuf {
    let source = dir.with_file_name("source");
    fs::create_dir(&source).unwrap();
    repository(&source);
    source
}

fn bare(dir: &Path) -> Option<Annex> {
    let source = beside(dir);
    run(
        dir,
        &["clone", "-q", "--mirror", source.to_str().unwrap(), "mirror"],
    );
    None
}

fn submodule(dir: &Path) -> Option<Annex> {
    let source = beside(dir);
    run(dir, &["init", "-q"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    run(dir, &[&add[..], &[source.to_str().unwrap(), "sub"]].concat());
    None
}

fn borrowing(dir: &Path) -> Option<Annex> {
    let source = beside(dir);
    run(dir, &["clone", "-q", "--shared", source.to_str().unwrap(), "."]);
    Some(Annex {
        read: vec![source.join(".git/objects")],
        ..Annex::default()
    })
}

fn worktree(dir: &Path) -> Option<Annex> {
    let source = beside(dir);
    fs::remove_dir(dir).unwrap();
    run(&source, &["worktree", "add", "-q", dir.to_str().unwrap()]);
    let git_dir = source.join(".git");
    Some(Annex {
        read: vec![git_dir.clone()],
        write: vec![git_dir.join("objects"), git_dir.join("worktrees/w")],
        repository: Some(git_dir),
    })
}

async fn i7_a_history_that_cannot_be_searched_is_hidden(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "histories that cannot be searched");
    }
    // Nothing in them is denied.
    let harmless = |dir: &Path| {
        run(dir, &["init", "-q"]);
        fs::write(dir.join("free"), "free").unwrap();
        run(dir, &["add", "."]);
        run(dir, &["commit", "-qm", "first"]);
    };
    let damaged = |dir: &Path| {
        harmless(dir);
        fs::write(dir.join(".git/index"), "damaged").unwrap();
        None
    };
    let whole = |dir: &Path| {
        harmless(dir);
        None
    };
    let read = "git --git-dir=.git cat-file -p HEAD:free";
    let bin = tempfile::tempdir().unwrap();
    for (hidden, readable) in [
        (searching(), true),
        (searched_by(endless(bin.path()), Duration::from_millis(1)), false),
        (searched_by("/nowhere".into(), LONG), false),
    ] {
        assert_eq!(world(hidden, whole).await.says(read).await == "free", readable);
    }
    assert_eq!(world(hidden(), damaged).await.says(read).await, "free", "control");
    assert_ne!(world(searching(), damaged).await.says(read).await, "free");
}

async fn a_history_without_denied_paths_stays_readable(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "histories without denied paths");
    }
    let script = "git log --format=%s && git show HEAD:free && echo more > more && git add more && git commit -qm more && git log -1 --format=%s";
    let world = world(searching(), |dir| {
        run(dir, &["init", "-q"]);
        run(dir, &["config", "user.name", "ana"]);
        run(dir, &["config", "user.email", "ana@example.org"]);
        fs::write(dir.join("free"), "free\n").unwrap();
        run(dir, &["add", "."]);
        run(dir, &["commit", "-qm", "first"]);
        // Denied and present, but never recorded.
        fs::create_dir(dir.join("secret")).unwrap();
        fs::write(dir.join("secret/key"), "canary").unwrap();
        fs::write(dir.join(".gitignore"), "secret\n").unwrap();
        None
    });
    assert_eq!(world.await.says(script).await, "first\nfree\nmore");
}
