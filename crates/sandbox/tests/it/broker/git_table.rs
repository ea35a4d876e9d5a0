//! What git and cargo can do in each kind of repository: a table. What does not work on purpose names the reason, which the
//! command's result then says.

use super::keeping;
use super::levels;
use super::world::{World, prepared};
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel;
use agentd_sandbox::GitRefusal::{self, Kept, Metadata, Setting, Steps};
use agentd_sandbox::{Exit, Findings};
use std::path::{Path, PathBuf};

/// A kind of repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The working directory itself.
    Plain,
    /// The working directory is a worktree of a repository elsewhere.
    Worktree,
    /// A submodule of the working directory.
    Submodule,
    /// One that the session made.
    Fresh,
}

/// What an operation does.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Works,
    /// The sandbox refuses it for this reason; git says these words.
    Refused(GitRefusal, &'static str),
    /// It fails for a reason that git says in these words.
    Fails(&'static str),
}
use Expected::{Fails, Refused, Works};

/// A name, a script, and what happens in a repository that is kept, and in one that is not.
type Row = (&'static str, &'static str, Expected, Expected);

/// `$N` is another number in each run. `HEAD` is two commits after the tag `start`, from which the branch `side` goes off.
const TABLE: &[Row] = &[
    ("status", "git status --short", Works, Works),
    (
        "diff",
        "echo more >> a; git diff --stat | grep -q a; git checkout-index -f a 2> /dev/null || true",
        Works,
        Works,
    ),
    ("log", "git log --oneline | grep -q one", Works, Works),
    ("blame", "git blame a | grep -q 1", Works, Works),
    ("show", "git show --stat HEAD > /dev/null", Works, Works),
    ("list of worktrees", "git worktree list | grep -q .", Works, Works),
    ("status of submodules", "git submodule status", Works, Works),
    ("list of branches", "git branch -a | grep -q side", Works, Works),
    ("add", "echo n > n; git add n", Refused(Kept, "index.lock"), Works),
    (
        "commit",
        "echo c > c$N; git add c$N; git commit -qm c",
        Refused(Kept, "index.lock"),
        Works,
    ),
    (
        "amend",
        "git commit -q --amend --allow-empty -m again",
        Refused(Kept, "Permission denied"),
        Works,
    ),
    (
        "branch",
        "git branch made$N",
        Refused(Kept, "Permission denied"),
        Works,
    ),
    (
        "switch",
        "git switch -qc other$N",
        Refused(Kept, "Permission denied"),
        Works,
    ),
    (
        "stash",
        "echo more >> a; git stash -q; git stash pop -q; git checkout -q a",
        Refused(Kept, "index"),
        Works,
    ),
    ("rebase", "git rebase -q side", Refused(Kept, ".git"), Works),
    (
        "interactive rebase",
        "GIT_EDITOR=true GIT_SEQUENCE_EDITOR='sed -i s/^pick/reword/' git rebase -q -i start",
        Refused(Kept, ".git"),
        Works,
    ),
    (
        "rebase with a conflict",
        "git rebase -q clash && exit 1; echo 3 > a; git add a; GIT_EDITOR=true git rebase --continue > /dev/null; git rebase -q --abort && exit 1; git status --short | wc -l",
        Refused(Kept, ".git"),
        Works,
    ),
    (
        "rebase with a program",
        "git rebase -q --exec true side",
        Refused(Kept, ".git"),
        Refused(Steps, "git-rebase-todo"),
    ),
    (
        "merge",
        "git merge -q side -m merged",
        Refused(Kept, "ORIG_HEAD"),
        Works,
    ),
    (
        "cherry-pick",
        "git cherry-pick side > /dev/null",
        Refused(Kept, "index.lock"),
        Works,
    ),
    (
        "cherry-pick of several",
        "git cherry-pick -x start..side > /dev/null",
        Refused(Kept, ".git"),
        Works,
    ),
    (
        "revert",
        "git revert --no-edit HEAD > /dev/null",
        Refused(Kept, "index.lock"),
        Works,
    ),
    ("tag", "git tag t$N", Refused(Kept, "Permission denied"), Works),
    ("gc", "git gc -q", Refused(Kept, "Permission denied"), Works),
    (
        "fetch",
        "git fetch -q origin",
        Refused(Kept, "FETCH_HEAD"),
        Fails("Could not resolve host"),
    ),
    (
        "push",
        "git push -q origin HEAD",
        Fails("Could not resolve host"),
        Fails("Could not resolve host"),
    ),
    (
        "clone",
        "git clone -q . $TMPDIR/c$N; git -C $TMPDIR/c$N log --oneline | grep -q one",
        Works,
        Works,
    ),
    (
        "clone into the directory",
        "git clone -q . copy$N",
        Refused(Setting, "config"),
        Refused(Setting, "config"),
    ),
    (
        "init",
        "git init -q new$N; cd new$N; echo 1 > f; git add f; git commit -qm f; git rebase -q HEAD",
        Works,
        Works,
    ),
    (
        "bare init",
        "git init -q --bare bare$N",
        Refused(Metadata, ""),
        Refused(Metadata, ""),
    ),
    (
        "cargo new",
        "\"$CARGO\" new -q --vcs git made$N; git -C made$N status --short | grep -q Cargo",
        Works,
        Works,
    ),
    (
        "cargo init",
        "mkdir init$N; cd init$N; \"$CARGO\" init -q --vcs git; git add .; git commit -qm made",
        Works,
        Works,
    ),
    (
        "another worktree",
        "git worktree add -q --detach $TMPDIR/w$N",
        Refused(Metadata, "worktrees"),
        Refused(Metadata, "worktrees"),
    ),
    (
        "patches",
        "git format-patch -q --stdout -1 side | git am -q",
        Refused(Metadata, "rebase-apply"),
        Refused(Metadata, "rebase-apply"),
    ),
    (
        "bisect",
        "git bisect start",
        Refused(Metadata, "BISECT"),
        Refused(Metadata, "BISECT"),
    ),
    (
        "a hook's settings",
        "git config core.fsmonitor x",
        Refused(Kept, "config"),
        Refused(Setting, "config"),
    ),
];

/// What differs in one kind of repository that is not kept.
const BUT: &[(&str, Kind, Expected)] = &[
    ("gc", Kind::Worktree, Refused(Kept, "gc.pid")),
    ("a hook's settings", Kind::Worktree, Refused(Kept, "config")),
];

const NAMES: &str =
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; ";
/// Makes the repository that all kinds have.
const MAKE: &str = "git init -q -b main; echo 1 > a; git add a; git commit -qm one; git tag start; \
    git switch -qc clash; echo 9 > a; git commit -qam clash; git switch -q main; \
    git switch -qc side; echo s > s; git add s; git commit -qm side; echo t > t; git add t; git commit -qm side2; git switch -q main; \
    echo 2 > a; git commit -qam two; echo b > b; git add b; git commit -qm three; git remote add origin https://git.invalid/x; ";

/// Begins a row on a branch of its own, whatever the last one left.
const BEGIN: &str = "git rebase --abort > /dev/null 2>&1 || rm -rf $(git rev-parse --git-path rebase-merge); \
    git cherry-pick --abort > /dev/null 2>&1 || true; git reset -q --hard; git switch -q -C own$N main; ";

impl Kind {
    /// Prepares a working directory outside of the sandbox.
    fn prepare(self, dir: &Path) {
        let script = match self {
            Self::Plain => MAKE.to_owned(),
            Self::Worktree => {
                format!("mkdir ../main; cd ../main; {MAKE} git worktree add -q -b tree $OLDPWD main")
            }
            Self::Submodule => format!(
                "mkdir ../main; cd ../main; {MAKE} cd $OLDPWD; git init -q; \
                 git -c protocol.file.allow=always submodule --quiet add $PWD/../main libs/sub; git commit -qm sub; cd libs/sub; \
                 git branch -q side origin/side; git branch -q clash origin/clash; git remote set-url origin https://git.invalid/x"
            ),
            Self::Fresh => String::new(),
        };
        prepared(dir, &format!("{NAMES}{script}"));
    }

    /// Enters the repository in the sandbox.
    const fn enter(self) -> &'static str {
        match self {
            Self::Plain | Self::Worktree => "",
            Self::Submodule => "cd libs/sub; ",
            Self::Fresh => "cd fresh; ",
        }
    }
}

/// Cargo as it runs this test, without the program that chooses one.
fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

async fn world(level: SandboxLevel, kind: Kind, protected: ProtectedPaths) -> World {
    let cargo = cargo();
    let toolchain = cargo.ancestors().nth(2).map(Path::to_owned);
    let change = move |walls: &mut agentd_sandbox::Confinement| {
        walls.protected = protected;
        walls.read.extend(toolchain.filter(|dir| dir.is_absolute()));
    };
    World::walled(&std::env::temp_dir(), level, |dir| kind.prepare(dir), change)
        .await
        .unwrap()
}

/// Whether a row's result is the expected one.
fn is_as(expected: Expected, said: &str, exit: Exit) -> bool {
    let good = exit.code == Some(0) && said.ends_with("good");
    match expected {
        Works => good,
        Refused(reason, words) => !good && said.contains(words) && exit.refused.has(reason),
        Fails(words) => !good && said.contains(words) && exit.refused.is_empty(),
    }
}

/// Runs the table in one kind of repository; returns what is not as expected.
async fn differences(level: SandboxLevel, kind: Kind, keeps: bool) -> Vec<String> {
    let protected = if keeps {
        keeping()
    } else {
        ProtectedPaths::default()
    };
    let world = world(level, kind, protected).await;
    if kind == Kind::Fresh {
        let made = world
            .says(&format!("{NAMES} mkdir fresh; cd fresh; {MAKE} echo good"))
            .await;
        assert!(made.ends_with("good"), "{level:?}: {made}");
    }
    let mut found = Vec::new();
    for (number, (name, script, kept, free)) in TABLE.iter().enumerate() {
        let is_kept = keeps && kind != Kind::Fresh;
        let but = BUT
            .iter()
            .find(|(row, of, _)| row == name && *of == kind && !is_kept);
        let expected = but.map_or(if is_kept { *kept } else { *free }, |(_, _, expected)| *expected);
        let own = if is_kept {
            "git checkout-index -f a; "
        } else {
            BEGIN
        };
        let script = format!(
            "{NAMES} N={number} CARGO='{}'; {}{own}{script}; echo good",
            cargo().display(),
            kind.enter()
        );
        let (said, exit) = world.runs(&script).await;
        if !is_as(expected, &said, exit) {
            found.push(format!(
                "{level:?} {kind:?} keeps={keeps} {name}: {said:?} {exit:?}"
            ));
        }
    }
    found
}

async fn holds(found: &Findings, kinds: &[Kind], keeps: bool) {
    let mut all = Vec::new();
    for level in levels(found) {
        for kind in kinds {
            all.extend(differences(level, *kind, keeps).await);
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

pub(super) async fn git_works_or_says_why_not_in_a_repository_that_is_kept(found: Findings) {
    holds(&found, &[Kind::Plain, Kind::Worktree, Kind::Submodule], true).await;
}

pub(super) async fn git_works_or_says_why_not_in_a_repository_that_is_not_kept(found: Findings) {
    holds(&found, &[Kind::Plain, Kind::Worktree, Kind::Submodule], false).await;
}

pub(super) async fn git_works_or_says_why_not_in_a_repository_of_the_session(found: Findings) {
    holds(&found, &[Kind::Fresh], true).await;
}
