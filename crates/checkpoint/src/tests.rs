//! Recording and restoring real directories.

mod bring;
mod keep;
mod lend;

use crate::{Archive, Back, Error, Keeper, Limits, Tree, TreeChange};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct World {
    _dirs: TempDir,
    work: PathBuf,
    archive: Archive,
}

fn world(limits: Limits) -> World {
    let dirs = tempfile::tempdir().unwrap();
    let work = dirs.path().join("work");
    fs::create_dir(&work).unwrap();
    let archive = Keeper::new(&dirs.path().join("data/checkpoints"), limits).archive(&work);
    World {
        _dirs: dirs,
        work,
        archive,
    }
}

impl World {
    fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = !path.exists();
        fs::write(&path, text).unwrap();
        if new {
            // The mode that a file without a known one comes back with, whatever the umask is.
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }

    fn take(&self) -> Tree {
        self.archive.take().unwrap().tree
    }

    /// Everything beneath the directory: paths with their modes and contents.
    fn listed(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut all = Vec::new();
        list(&self.work, &mut all);
        all.sort();
        all
    }

    fn back(&self, before: &Tree, after: &Tree, force: bool) -> Result<Vec<PathBuf>, Error> {
        let changes = [TreeChange {
            before: before.clone(),
            after: after.clone(),
        }];
        let back = Back {
            key: "s-1",
            changes: &changes,
            force,
        };
        self.archive.restore(&back).map(|restored| restored.files)
    }
}

/// A person's git in a directory. Returns its output.
fn git(dir: &Path, args: &[&str]) -> String {
    let done = agentd_process_tests::git(dir).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{args:?}: {said}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A hook of the repository in a directory that leaves a mark next to the directory.
fn hook(dir: &Path) {
    let hook = dir.join(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch ../hooked\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

fn list(dir: &Path, all: &mut Vec<(PathBuf, u32, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            list(&path, all);
        } else if about.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            all.push((path, 0, target.as_os_str().as_bytes().to_vec()));
        } else {
            let bytes = fs::read(&path).unwrap();
            all.push((path, about.permissions().mode() & 0o777, bytes));
        }
    }
}

/// Names that text-based tools get wrong.
fn odd_names() -> [&'static OsStr; 4] {
    [b"a\nb".as_slice(), b"\xff\xfe", b"quo\"te\\", b" space -x"].map(OsStr::from_bytes)
}

#[test]
fn a_deleted_tree_comes_back_with_its_names_modes_and_links() {
    let world = world(Limits::default());
    world.write("src/main.rs", "fn main() {}\r\n");
    world.write(
        ".gitattributes",
        "* text=auto eol=lf working-tree-encoding=UTF-16 filter=x\n",
    );
    for name in odd_names() {
        world.write(Path::new("odd").join(name), "odd");
    }
    world.write("run.sh", "true");
    fs::set_permissions(world.work.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../nowhere", world.work.join("src/link")).unwrap();
    let whole = world.listed();
    let before = world.take();
    for name in ["src", "odd"] {
        fs::remove_dir_all(world.work.join(name)).unwrap();
    }
    fs::remove_file(world.work.join("run.sh")).unwrap();
    let after = world.take();
    let files = world.back(&before, &after, false).unwrap();
    assert_eq!(files.len(), 7);
    assert_eq!(world.listed(), whole);
    assert_eq!(world.take(), before);
}

#[test]
fn files_links_and_directories_change_into_each_other_and_back() {
    let world = world(Limits::default());
    world.write("file", "file");
    world.write("dir/a", "a");
    world.write("dir/b/c", "c");
    symlink("file", world.work.join("link")).unwrap();
    world.write("mode", "m");
    let whole = world.listed();
    let before = world.take();
    fs::remove_file(world.work.join("file")).unwrap();
    world.write("file/inner/deep", "deep");
    fs::remove_dir_all(world.work.join("dir")).unwrap();
    world.write("dir", "now a file");
    fs::remove_file(world.work.join("link")).unwrap();
    world.write("link", "now a file");
    fs::set_permissions(world.work.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    let changed = world.listed();
    let after = world.take();
    world.back(&before, &after, false).unwrap();
    assert_eq!(world.listed(), whole);
    // And forward again.
    world.back(&after, &before, false).unwrap();
    assert_eq!(world.listed(), changed);
}

#[test]
fn what_others_changed_since_is_a_conflict_and_nothing_is_changed() {
    let world = world(Limits::default());
    world.write("a", "1");
    world.write("b", "1");
    world.write("c", "1");
    let before = world.take();
    for name in ["a", "b", "c"] {
        world.write(name, "2");
    }
    let after = world.take();
    world.write("b", "a person's");
    let left = world.listed();
    let refused = world.back(&before, &after, false).unwrap_err();
    assert_eq!(refused.to_string(), "these files have changed since: b");
    assert_eq!(world.listed(), left);
    let (files, conflicts) = world
        .archive
        .planned(&[TreeChange {
            before: before.clone(),
            after: after.clone(),
        }])
        .unwrap();
    assert_eq!(files, ["a", "b", "c"].map(PathBuf::from));
    assert_eq!(conflicts, [PathBuf::from("b")]);
    world.back(&before, &after, true).unwrap();
    assert_eq!(world.take(), before);
}

#[test]
fn a_failure_halfway_reverts_what_was_done() {
    let world = world(Limits::default());
    for name in ["a", "d/b", "e"] {
        world.write(name, "1");
    }
    let before = world.take();
    for name in ["a", "e"] {
        world.write(name, "2");
    }
    fs::remove_dir_all(world.work.join("d")).unwrap();
    let after = world.take();
    // An ignored directory that agentd knows nothing about is where a file was.
    world.write(".git/info/exclude", "/d/b/\n");
    world.write("d/b/mine", "kept");
    let left = world.listed();
    let failed = world.back(&before, &after, false).unwrap_err();
    assert!(failed.to_string().contains("d/b"), "{failed}");
    assert_eq!(world.listed(), left);
}

#[test]
fn ignored_files_are_left_alone_unless_they_were_recorded_before() {
    let world = world(Limits::default());
    world.write(".gitignore", "target/\n*.log\n");
    world.write("target/big", "x");
    world.write("a.log", "x");
    world.write("src/a", "1");
    world.write("src/.git/config", "[core]\nfsmonitor = /bin/false\n");
    let before = world.take();
    let names: Vec<_> = world.archive.files(&before).unwrap().into_keys().collect();
    assert_eq!(names, [b".gitignore".to_vec(), b"src/a".to_vec()]);
    // A command cannot hide its changes by ignoring them.
    world.write(".gitignore", "*\n");
    world.write("src/a", "2");
    let after = world.take();
    assert_eq!(world.archive.changes(&change(&before, &after)).unwrap().len(), 2);
    world.back(&before, &after, false).unwrap();
    assert_eq!(fs::read_to_string(world.work.join("src/a")).unwrap(), "1");
    assert_eq!(fs::read_to_string(world.work.join("target/big")).unwrap(), "x");
}

fn change(before: &Tree, after: &Tree) -> TreeChange {
    TreeChange {
        before: before.clone(),
        after: after.clone(),
    }
}

#[test]
fn i6_a_large_file_is_left_out_and_too_many_files_are_refused() {
    let limits = Limits {
        max_file_bytes: 10,
        max_files: 3,
        max_bytes: 25,
    };
    let world = world(limits);
    world.write("a", "0123456789");
    fs::File::create(world.work.join("sparse"))
        .unwrap()
        .set_len(5 << 30)
        .unwrap();
    let taken = world.archive.take().unwrap();
    assert_eq!(taken.files, 1);
    assert_eq!(
        taken.left_out,
        ["sparse: 5368709120 bytes, more than workspace.checkpoint_file_bytes"]
    );
    world.write("b", "0123456789");
    world.write("c", "012345");
    let too_large = format!("{:?}", {
        let other = Limits {
            max_bytes: 15,
            ..limits
        };
        Keeper::new(&world.archive.repository.with_extension("other"), other)
            .archive(&world.work)
            .take()
            .map(|taken| taken.files)
    });
    assert_eq!(too_large, "Err(TooManyBytes(15))");
    assert_eq!(world.archive.take().unwrap().files, 3);
    world.write("d", "");
    let refused = world.archive.take().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the directory has more than 3 files (workspace.checkpoint_files)"
    );
}

#[test]
fn small_recordings_are_the_same_as_large_ones() {
    let world = world(Limits::default());
    let git = world.archive.git();
    fs::create_dir(world.work.join("a directory without files")).unwrap();
    assert_eq!(world.take(), Tree::empty());
    git.run(&["fsck", "--strict", "--no-dangling"]).unwrap();
    // Bytes around the slash decide the order of the entries.
    for name in [
        "a-b",
        "a.b/x",
        "a/b/c",
        "a/b0",
        "a0",
        "z/run",
        "gone/one/two",
        "file/then",
    ] {
        world.write(name, name);
    }
    fs::set_permissions(world.work.join("z/run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a0", world.work.join("link")).unwrap();
    let first = world.take();
    fs::remove_dir_all(world.work.join("gone")).unwrap();
    fs::remove_dir_all(world.work.join("file")).unwrap();
    world.write("file", "now a file");
    world.write("a/b/d/e", "deeper");
    let second = world.take();
    git.run(&["fsck", "--strict", "--no-dangling"]).unwrap();
    // This file is too large for this process, so git writes the recording.
    world.write("large", &"0123456789abcdef".repeat(100_000));
    let third = world.take();
    fs::remove_file(world.work.join("large")).unwrap();
    assert_eq!(world.take(), second, "what is deleted is gone from the trees");
    world.write("large", &"0123456789abcdef".repeat(100_000));
    let keeper = Keeper::new(
        &world.archive.repository.with_extension("other"),
        Limits::default(),
    );
    let other = keeper.archive(&world.work);
    assert_eq!(other.take().unwrap().tree, third);
    git.run(&["fsck", "--strict", "--no-dangling"]).unwrap();
    let log = git.run(&["log", "--format=%T", "refs/agentd/files"]).unwrap();
    let log = String::from_utf8(log).unwrap();
    let none = Tree::empty();
    let trees = [&second, &third, &second, &first, &none].map(Tree::as_str);
    assert_eq!(log.lines().collect::<Vec<_>>(), trees);
}

#[test]
fn a_recording_is_repeated_only_for_what_changed() {
    let world = world(Limits::default());
    world.write("a", "1");
    let first = world.take();
    let commits = || fs::read_to_string(world.archive.repository.join("refs/agentd/files")).unwrap();
    let one = commits();
    assert_eq!(world.take(), first);
    assert_eq!(commits(), one, "nothing changed, so nothing is written");
    world.write("a", "2");
    let second = world.take();
    assert_ne!(second, first);
    // The same size within the same moment.
    world.write("a", "3");
    assert_ne!(world.take(), second);
    fs::remove_file(world.archive.repository.join("stats")).unwrap();
    world.write("a", "1");
    assert_eq!(world.take(), first);
}

#[test]
fn an_empty_directory_needs_no_repository() {
    let world = world(Limits::default());
    let empty = world.take();
    assert_eq!(empty, Tree::empty());
    assert_eq!(world.archive.disk_bytes(), 0);
    assert!(!world.archive.own_files().parent().unwrap().exists());

    world.write("a/b", "one\n");
    let full = world.take();
    assert_eq!(world.back(&empty, &full, false).unwrap(), [PathBuf::from("a/b")]);
    assert_eq!(world.take(), empty);
    world.back(&full, &empty, false).unwrap();
    assert_eq!(fs::read_to_string(world.work.join("a/b")).unwrap(), "one\n");

    // The packs of a workspace go into the store, which therefore needs the empty tree itself.
    let all = world.work.with_file_name("all");
    let tree = all.join("s/tree");
    fs::create_dir_all(&tree).unwrap();
    let keeper = Keeper::new(&all.with_file_name("own"), Limits::default()).with_workspaces(&all);
    let archive = keeper.archive(&tree);
    let empty = archive.take().unwrap().tree;
    let pack = all.with_file_name("pack");
    assert!(archive.pack_to(&empty, None, &pack, u64::MAX).unwrap() > 0);
}

#[test]
fn i4_interrupted_work_goes_on_and_remembers_how_it_began() {
    let world = world(Limits::default());
    world.write("a", "1");
    world.write("b", "1");
    let before = world.take();
    world.write("a", "2");
    world.write("b", "2");
    let after = world.take();
    let changes = [change(&before, &after)];
    let back = Back {
        key: "session-7",
        changes: &changes,
        force: false,
    };
    // As after a kill: the beginning is noted, one file is back.
    let locked = world.archive.lock().unwrap();
    world.archive.begun("session-7", &after, &locked).unwrap();
    drop(locked);
    world.write("a", "1");
    let restored = world.archive.restore(&back).unwrap();
    assert_eq!((restored.before, restored.after), (after, before));
    assert_eq!(restored.files, ["a", "b"].map(PathBuf::from));
}

#[test]
fn i8_a_file_with_a_credential_is_left_out() {
    let mut world = world(Limits::default());
    world.archive.secret = |bytes| bytes == b"key";
    world.write("a", "1");
    world.write("b", "1");
    let before = world.take();
    world.write("a", "key");
    let taken = world.archive.take().unwrap();
    assert_eq!(taken.left_out, ["a: it contains a credential of this daemon"]);
    assert_eq!(
        world
            .archive
            .changes(&change(&before, &taken.tree))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(world.archive.files(&taken.tree).unwrap().len(), 1);
}

#[test]
fn a_lost_object_is_named_and_nothing_is_changed() {
    let world = world(Limits::default());
    world.write("a", "1");
    let before = world.take();
    world.write("a", "2");
    world.write("b", "2");
    let after = world.take();
    let missing = Tree::parse(&"1".repeat(40)).unwrap();
    assert!(world.back(&missing, &after, false).is_err());
    assert!(
        world
            .archive
            .contents()
            .unwrap()
            .get(missing.as_str())
            .unwrap_err()
            .to_string()
            .contains("missing")
    );
    assert_eq!(world.take(), after);
    world.back(&before, &after, false).unwrap();
}

#[test]
fn recorded_files_are_carried_to_another_directory() {
    let here = world(Limits::default());
    here.write("a/x", "one");
    here.write("run", "#!/bin/sh");
    fs::set_permissions(here.work.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a/x", here.work.join("link")).unwrap();
    let first = here.take();
    let listed = here.listed();
    here.write("a/x", "two");
    here.write("b", "new");
    let second = here.take();

    let there = world(Limits::default());
    there.write("a", "a file where a directory is wanted");
    there.write("left over", "goes");
    let trees = [first.clone(), second.clone()];
    there.archive.carry(&here.archive, &trees, None).unwrap();
    there.archive.fill(&first).unwrap();
    let relative = |world: &World, all: Vec<(PathBuf, u32, Vec<u8>)>| -> Vec<_> {
        let all = all.into_iter();
        all.map(|(path, mode, bytes)| (path.strip_prefix(&world.work).unwrap().to_owned(), mode, bytes))
            .collect()
    };
    assert_eq!(relative(&there, there.listed()), relative(&here, listed));
    let change = TreeChange {
        before: first,
        after: second,
    };
    let changes = here.archive.changes(&change).unwrap();
    assert_eq!(
        there.archive.changes(&change).unwrap(),
        changes,
        "earlier trees come along"
    );
    let unknown = Tree::parse(&"0".repeat(40)).unwrap();
    assert!(there.archive.carry(&here.archive, &[unknown], None).is_err());
}
