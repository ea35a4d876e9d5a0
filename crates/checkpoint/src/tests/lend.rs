//! The objects that recordings borrow.

use super::{change, git, hook, world};
use crate::{Archive, Error, Keeper, Limits};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_repository_of_the_directory_lends_its_objects_and_stays_as_it_is() {
    let world = world(Limits::default());
    let git = |args: &[&str]| git(&world.work, args);
    git(&["init", "-q"]);
    let mut state = 1_u64;
    let mut noise = String::new();
    while noise.len() < 40_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.push(char::from(b'!' + u8::try_from(state % 64).unwrap()));
    }
    world.write("large", &noise);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "1"]);
    git(&["repack", "-adq"]);
    hook(&world.work);
    git(&["config", "core.fsmonitor", "touch ../watched"]);
    let whole = world.listed();
    let before = world.take();
    assert!(
        world.archive.disk_bytes() < 3_000,
        "the content is in the repository already"
    );
    world.write("large", &format!("{noise}more"));
    let after = world.take();
    assert!(world.archive.disk_bytes() > 10_000);
    world.back(&before, &after, false).unwrap();
    assert_eq!(world.listed(), whole);
    assert!(!world.work.join("../hooked").exists() && !world.work.join("../watched").exists());
}

/// The files of a directory below `all`, which has the workspaces.
fn workspace(all: &Path, name: &str) -> (PathBuf, Archive) {
    let tree = all.join(name).join("app");
    fs::create_dir_all(&tree).unwrap();
    let keeper = Keeper::new(&all.join("../checkpoints"), Limits::default()).with_workspaces(all);
    let archive = keeper.archive(&tree);
    (tree, archive)
}

fn lent(archive: &Archive) -> Option<PathBuf> {
    archive.take().unwrap();
    let file = archive.repository.join("objects/info/alternates");
    let text = fs::read_to_string(file).ok()?;
    Some(PathBuf::from(text.trim_end()))
}

#[test]
fn a_workspace_borrows_only_what_outlives_it() {
    let dir = tempfile::tempdir().unwrap();
    // The data directory is in a repository, which is nobody's business.
    git(dir.path(), &["init", "-q"]);
    let source = dir.path().join("source");
    fs::create_dir(&source).unwrap();
    git(&source, &["init", "-q"]);
    fs::write(source.join("a"), "1").unwrap();
    git(&source, &["add", "."]);
    git(&source, &["commit", "-qm", "1"]);
    let (objects, all) = (source.join(".git/objects"), dir.path().join("data/workspaces"));
    let (_, copy) = workspace(&all, "copy");
    assert_eq!(lent(&copy), None);
    let (tree, clone) = workspace(&all, "clone");
    let from = source.to_str().unwrap();
    git(&tree, &["clone", "-q", "--shared", from, "."]);
    assert_eq!(lent(&clone), Some(objects));
    let (tree, worktree) = workspace(&all, "worktree");
    let to = tree.to_str().unwrap();
    fs::remove_dir(&tree).unwrap();
    git(&source, &["worktree", "add", "-q", to]);
    assert!(lent(&worktree).unwrap().ends_with("objects"));
    // What was recorded outlives the clone.
    let before = clone.take().unwrap().tree;
    fs::remove_file(all.join("clone/app/a")).unwrap();
    let after = clone.take().unwrap().tree;
    fs::remove_dir_all(all.join("clone")).unwrap();
    let changes = clone.changes(&change(&before, &after)).unwrap();
    let was = changes[b"a".as_slice()].before.as_ref().unwrap();
    assert_eq!(clone.contents().unwrap().get(&was.content).unwrap(), b"1");
}

#[test]
fn a_forged_object_is_refused() {
    let world = world(Limits::default());
    git(&world.work, &["init", "-q"]);
    world.write("a", "1");
    let first = world.archive.take().unwrap().tree;
    world.write("evil", "evil");
    let evil = git(&world.work, &["hash-object", "-w", "evil"]);
    let place = |id: &str| world.work.join(".git/objects").join(&id[..2]).join(&id[2..]);
    let wanted = "1".repeat(40);
    fs::create_dir_all(place(&wanted).parent().unwrap()).unwrap();
    fs::rename(place(evil.trim()), place(&wanted)).unwrap();
    let refused = world.archive.contents().unwrap().get(&wanted).unwrap_err();
    assert!(matches!(refused, Error::Forged(_)), "{refused}");
    assert_ne!(world.take(), first);
}
