//! Recorded changes, brought elsewhere.

use super::{World, change, git, hook, world};
use crate::{Archive, Error, Keeper, Limits, Tree};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A second directory with an archive.
fn other(world: &World) -> (PathBuf, Archive) {
    let there = world.work.with_extension("there");
    fs::create_dir_all(&there).unwrap();
    let root = world.archive.repository.parent().unwrap();
    let archive = Keeper::new(root, Limits::default()).archive(&there);
    (there, archive)
}

#[test]
fn changes_are_applied_elsewhere_with_a_merge_or_not_at_all() {
    let world = world(Limits::default());
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n{last}\n");
    world.write("text", &lines("1", "7"));
    world.write("gone", "x");
    let before = world.take();
    world.write("text", &lines("one", "7"));
    world.write("new/run", "true");
    fs::set_permissions(world.work.join("new/run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(world.work.join("gone")).unwrap();
    let after = world.take();
    let changes = world.archive.changes(&change(&before, &after)).unwrap();
    let (there, archive) = other(&world);
    fs::write(there.join("text"), lines("1", "seven")).unwrap();
    fs::write(there.join("gone"), "y").unwrap();
    let refused = archive.apply(&world.archive, &changes, false).unwrap_err();
    assert_eq!(refused.to_string(), "these files have changed since: gone");
    assert!(!there.join("new").exists());
    fs::write(there.join("gone"), "x").unwrap();
    let would = archive.apply(&world.archive, &changes, true).unwrap();
    assert_eq!(would.files.len(), 3);
    assert!(there.join("gone").exists(), "a dry run changes nothing");
    let applied = archive.apply(&world.archive, &changes, false).unwrap();
    assert_eq!(
        (applied.files.len(), applied.merged),
        (3, vec![PathBuf::from("text")])
    );
    let text = || fs::read_to_string(there.join("text")).unwrap();
    assert_eq!(text(), lines("one", "seven"));
    let mode = fs::metadata(there.join("new/run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(!there.join("gone").exists());
    archive.apply(&world.archive, &changes, false).unwrap();
    assert_eq!(text(), lines("one", "seven"), "repeated, it changes nothing");
}

#[test]
fn i4_what_was_half_applied_is_reverted() {
    let world = world(Limits::default());
    let (there, archive) = other(&world);
    for name in ["a", "b"] {
        fs::write(there.join(name), "1").unwrap();
    }
    let taken = archive.take().unwrap();
    let step = |path: &str, now: Option<&str>, wanted: Option<&str>| {
        let item = |text: &str| crate::Item {
            kind: crate::Kind::File,
            content: crate::take::hex(&crate::take::id_of(text.as_bytes())),
        };
        crate::restore::Step {
            path: path.as_bytes().to_vec(),
            now: now.map(|text| (item(text), crate::stats::Seen::default())),
            wanted: wanted.map(item),
        }
    };
    let steps = [
        step("a", Some("1"), Some("2")),
        step("b", Some("1"), None),
        step("c/d", None, Some("3")),
    ];
    crate::journal::Journal::begin(&archive.repository, &steps).unwrap();
    fs::write(there.join("a"), "2").unwrap();
    fs::create_dir(there.join("c")).unwrap();
    fs::write(there.join("c/d"), "3").unwrap();
    let keeper = Keeper::new(archive.repository.parent().unwrap(), Limits::default());
    assert_eq!(keeper.interrupted(), std::slice::from_ref(&there));
    archive.recover().unwrap();
    assert_eq!(archive.take().unwrap().tree, taken.tree);
    assert!(keeper.interrupted().is_empty() && !there.join("c").exists());
}

#[test]
fn changes_become_a_tree_and_a_patch() {
    let world = world(Limits::default());
    world.write("a", "1\n");
    world.write("b/c", "1\n");
    let before = world.take();
    world.write("a", "2\n");
    fs::remove_dir_all(world.work.join("b")).unwrap();
    world.write("b", "now a file\n");
    let after = world.take();
    let changes = world.archive.changes(&change(&before, &after)).unwrap();
    assert_eq!(world.archive.with(&before, &changes).unwrap(), after);
    let none = std::collections::BTreeMap::new();
    assert_eq!(world.archive.with(&Tree::empty(), &none).unwrap(), Tree::empty());
    let patch = String::from_utf8(world.archive.patch(&before, &after).unwrap()).unwrap();
    assert!(
        patch.contains("-1\n+2\n") && patch.contains("deleted file mode 100644"),
        "{patch}"
    );
    assert_eq!(world.take(), after);
}

/// A commit of an agent's work.
const NEW: crate::NewCommit<'_> = crate::NewCommit {
    branch: "agent/work",
    message: "Do it\n\nAgentd-Session: 1\n",
    author: ("An Agent", "agent@example.org"),
    seconds: 1_700_000_000,
    base: "main",
};

/// A repository with a hook, and changes of its files.
fn repository() -> (World, PathBuf, std::collections::BTreeMap<Vec<u8>, crate::Change>) {
    let world = world(Limits::default());
    let git = |args: &[&str]| git(&world.work, args);
    git(&["init", "-q", "-b", "main"]);
    world.write("a", "1\n");
    world.write("b", "1\n");
    git(&["add", "-A"]);
    git(&["commit", "-qm", "1"]);
    hook(&world.work);
    world.write("mine", "not part of the work");
    let before = world.take();
    world.write("a", "2\n");
    world.write("c/d", "3\n");
    let after = world.take();
    let changes = world.archive.changes(&change(&before, &after)).unwrap();
    let repository = world.work.join(".git");
    (world, repository, changes)
}

#[test]
fn changes_become_a_branch_of_the_repository_and_a_bundle() {
    let (world, repository, changes) = repository();
    let git = |args: &[&str]| git(&world.work, args);
    let status = git(&["status", "--porcelain"]);
    let bundle = world.archive.bundle(&repository, &changes, &NEW).unwrap();
    let made = world.archive.branch(&repository, &changes, &NEW).unwrap();
    assert_eq!(made.files, 2);
    assert_eq!(
        git(&["status", "--porcelain"]),
        status,
        "index and files are as they were"
    );
    assert_eq!(git(&["diff", "--name-only", "main", "agent/work"]), "a\nc/d\n");
    assert_eq!(
        git(&["log", "-1", "--format=%an <%ae> %B", "agent/work"]).trim_end(),
        "An Agent <agent@example.org> Do it\n\nAgentd-Session: 1"
    );
    assert!(!world.work.join("hooked").exists() && !world.work.join("../hooked").exists());
    git(&["fsck", "--strict"]);
    let file = world.work.with_extension("bundle");
    fs::write(&file, bundle).unwrap();
    git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "fetch",
        "-q",
        file.to_str().unwrap(),
        "agent/work:fetched",
    ]);
    assert_eq!(git(&["rev-parse", "fetched"]), git(&["rev-parse", "agent/work"]));
}

#[test]
fn a_branch_that_exists_or_cannot_exist_is_refused() {
    let (world, repository, changes) = repository();
    let made = world.archive.branch(&repository, &changes, &NEW).unwrap();
    let later = crate::NewCommit {
        seconds: NEW.seconds + 60,
        ..NEW
    };
    let again = world.archive.branch(&repository, &changes, &later).unwrap();
    assert_eq!(again, made, "the same work again changes nothing");
    let other = crate::NewCommit {
        message: "Do something else",
        ..NEW
    };
    let again = world.archive.branch(&repository, &changes, &other).unwrap_err();
    assert_eq!(again.to_string(), "a branch \"agent/work\" exists already");
    for bad in ["-x", "a..b", "", "a b"] {
        let new = crate::NewCommit { branch: bad, ..NEW };
        assert!(
            matches!(
                world.archive.branch(&repository, &changes, &new),
                Err(Error::BadBranch(_))
            ),
            "{bad}"
        );
    }
    git(&world.work, &["config", "extensions.objectFormat", "sha256"]);
    let other = world.archive.branch(&repository, &changes, &NEW).unwrap_err();
    assert!(matches!(other, Error::Sha256(_)), "{other}");
}
