use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct World {
    _dir: tempfile::TempDir,
    outside: PathBuf,
    root: PathBuf,
    beneath: Beneath,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    let outside = dir.path().join("outside");
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let beneath = Beneath::open(&root).unwrap();
    World {
        _dir: dir,
        outside,
        root,
        beneath,
    }
}

fn version(world: &World, path: &str) -> Version {
    world.beneath.open_file(Path::new(path)).unwrap().version
}

#[test]
fn a_symlink_out_of_the_directory_is_neither_read_nor_written_through() {
    let world = world();
    symlink(&world.outside, world.root.join("dir")).unwrap();
    symlink(world.outside.join("secret"), world.root.join("file")).unwrap();
    symlink("../outside/secret", world.root.join("relative")).unwrap();
    for path in ["dir/secret", "file", "relative"] {
        let read = world.beneath.read(Path::new(path), 100);
        assert!(
            matches!(read, Err(SandboxError::Outside { .. })),
            "{path}: {read:?}"
        );
    }
    let write = world.beneath.create_new(Judged(Path::new("dir/new")), b"x");
    assert!(matches!(write, Err(SandboxError::Symlink { .. })), "{write:?}");
    let over = world.beneath.check_writable(Path::new("file"));
    assert!(matches!(over, Err(SandboxError::Symlink { .. })), "{over:?}");
    assert_eq!(fs::read_dir(&world.outside).unwrap().count(), 1);
}

#[test]
fn a_symlink_inside_says_where_it_led_and_is_not_written_through() {
    let world = world();
    fs::create_dir(world.root.join("real")).unwrap();
    fs::write(world.root.join("real/a"), "a").unwrap();
    symlink("real", world.root.join("link")).unwrap();
    let (content, opened) = world.beneath.read(Path::new("link/a"), 100).unwrap();
    assert_eq!((content, opened.real), (b"a".to_vec(), PathBuf::from("real/a")));
    let write = world
        .beneath
        .replace(Judged(Path::new("link/a")), b"b", &opened.version);
    assert!(matches!(write, Err(SandboxError::Symlink { .. })), "{write:?}");
    assert_eq!(
        world.beneath.entry(Path::new("link")).unwrap().kind,
        EntryKind::Symlink
    );
}

#[test]
fn redteam_23_magic_links_devices_and_pipes_are_refused_without_hanging() {
    let world = world();
    symlink("/proc/self/fd/0", world.root.join("fd")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        world.root.join("fifo"),
        Mode::from_raw_mode(0o600),
    )
    .unwrap();
    assert!(matches!(
        world.beneath.read(Path::new("fd"), 100),
        Err(SandboxError::Outside { .. })
    ));
    let fifo = world.beneath.read(Path::new("fifo"), 100);
    assert!(
        matches!(
            fifo,
            Err(SandboxError::WrongKind {
                found: "a named pipe",
                ..
            })
        ),
        "{fifo:?}"
    );
    assert!(matches!(
        world.beneath.check_writable(Path::new("fifo")),
        Err(SandboxError::WrongKind { .. })
    ));
    let device = Beneath::open(Path::new("/dev")).unwrap();
    let zero = device.read(Path::new("zero"), 100);
    assert!(
        matches!(
            zero,
            Err(SandboxError::WrongKind {
                found: "a device",
                ..
            })
        ),
        "{zero:?}"
    );
}

#[test]
fn redteam_23_a_file_with_another_name_outside_is_not_written() {
    let world = world();
    fs::hard_link(world.outside.join("secret"), world.root.join("linked")).unwrap();
    let write = world
        .beneath
        .replace(Judged(Path::new("linked")), b"x", &version(&world, "linked"));
    assert!(matches!(write, Err(SandboxError::Linked { .. })), "{write:?}");
    assert_eq!(fs::read(world.outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn new_files_bring_their_directories_and_are_never_put_over_others() {
    let world = world();
    world
        .beneath
        .create_new(Judged(Path::new("a/b/c")), b"new")
        .unwrap();
    assert_eq!(fs::read(world.root.join("a/b/c")).unwrap(), b"new");
    let again = world.beneath.create_new(Judged(Path::new("a/b/c")), b"other");
    assert!(matches!(again, Err(SandboxError::Exists { .. })), "{again:?}");
    assert_eq!(fs::read(world.root.join("a/b/c")).unwrap(), b"new");
    assert_eq!(
        fs::read_dir(world.root.join("a/b")).unwrap().count(),
        1,
        "no temporary file is left"
    );
    assert!(matches!(
        world.beneath.create_new(Judged(Path::new(".")), b""),
        Err(SandboxError::BadPath { .. })
    ));
}

#[test]
fn a_replaced_file_keeps_its_mode_and_must_be_the_version_that_was_read() {
    let world = world();
    let path = world.root.join("run.sh");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    let first = version(&world, "run.sh");
    world
        .beneath
        .replace(Judged(Path::new("run.sh")), b"two", &first)
        .unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    let stale = world
        .beneath
        .replace(Judged(Path::new("run.sh")), b"three", &first);
    assert!(matches!(stale, Err(SandboxError::Changed { .. })), "{stale:?}");
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(
        fs::read_dir(&world.root).unwrap().count(),
        1,
        "no temporary file is left"
    );
}

#[test]
fn i6_of_writers_of_one_version_one_wins_and_other_files_are_not_held_up() {
    let world = world();
    for round in 0..50 {
        fs::write(world.root.join("a"), format!("round {round}")).unwrap();
        let seen = version(&world, "a");
        let replace = |content| world.beneath.replace(Judged(Path::new("a")), content, &seen);
        let results = std::thread::scope(|scope| {
            let writers =
                [b"one", b"two", b"six", b"ten"].map(|content| scope.spawn(move || replace(content)));
            writers.map(|writer| writer.join().unwrap())
        });
        let won = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(won, 1, "{results:?}");
    }
    fs::write(world.root.join("b"), "").unwrap();
    let (a, b) = (version(&world, "a"), version(&world, "b"));
    let directory = world
        .beneath
        .open_directory(Path::new("."), Path::new("a"))
        .unwrap();
    // As if the first replacement hung.
    let claim = Claim::of(&directory, OsStr::new("a"), Path::new("a")).unwrap();
    let replace = |name, version| world.beneath.replace(Judged(Path::new(name)), b"new", version);
    replace("b", &b).unwrap();
    assert!(matches!(replace("a", &a), Err(SandboxError::Changed { .. })));
    drop(claim);
    replace("a", &a).unwrap();
}

#[test]
fn a_file_over_the_limit_is_refused_at_the_first_byte_too_many() {
    let world = world();
    fs::write(world.root.join("f"), "12345").unwrap();
    assert_eq!(world.beneath.read(Path::new("f"), 5).unwrap().0, b"12345");
    let over = world.beneath.read(Path::new("f"), 4);
    assert!(
        matches!(over, Err(SandboxError::TooBig { bytes: 5, max: 4, .. })),
        "{over:?}"
    );
}

#[test]
fn a_listing_is_sorted_and_bounded() {
    let world = world();
    fs::write(world.root.join("b"), "12").unwrap();
    fs::create_dir(world.root.join("a")).unwrap();
    let (entries, more) = world.beneath.list(Path::new("."), 10).unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind))
        .collect();
    assert_eq!(names, [("a", EntryKind::Directory), ("b", EntryKind::File)]);
    assert!(!more);
    let (entries, more) = world.beneath.list(Path::new("."), 1).unwrap();
    assert_eq!((entries.len(), more), (1, true));
}

#[test]
fn redteam_22_a_directory_swapped_for_a_link_in_a_loop_lets_nothing_out() {
    let world = world();
    let inside = world.root.join("d");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("secret"), "inside").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (stop, root, outside) = (Arc::clone(&stop), world.root.clone(), world.outside.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(root.join("d"), root.join("away"));
                let _ = symlink(&outside, root.join("d"));
                let _ = fs::remove_file(root.join("d"));
                let _ = fs::rename(root.join("away"), root.join("d"));
            }
        })
    };
    for round in 0..2_000 {
        if let Ok((content, _)) = world.beneath.read(Path::new("d/secret"), 100) {
            assert_eq!(content, b"inside");
        }
        if round % 10 == 0 {
            let _ = world
                .beneath
                .create_new(Judged(Path::new(&format!("d/new{round}"))), b"x");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(fs::read_dir(&world.outside).unwrap().count(), 1);
    assert_eq!(fs::read(world.outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn only_the_version_that_was_read_is_removed_and_no_link() {
    let world = world();
    fs::write(world.root.join("a"), "a").unwrap();
    let old = version(&world, "a");
    fs::write(world.root.join("a"), "changed").unwrap();
    let removed = world.beneath.remove(Judged(Path::new("a")), &old);
    assert!(
        matches!(removed, Err(SandboxError::Changed { .. })),
        "{removed:?}"
    );
    fs::hard_link(world.outside.join("secret"), world.root.join("hard")).unwrap();
    let hard = version(&world, "hard");
    symlink("a", world.root.join("link")).unwrap();
    for path in ["hard", "link"] {
        assert!(
            world.beneath.remove(Judged(Path::new(path)), &hard).is_err(),
            "{path}"
        );
    }
    symlink(&world.outside, world.root.join("out")).unwrap();
    let through = world.beneath.remove(Judged(Path::new("out/secret")), &hard);
    assert!(
        matches!(through, Err(SandboxError::Symlink { .. })),
        "{through:?}"
    );
    world
        .beneath
        .remove(Judged(Path::new("a")), &version(&world, "a"))
        .unwrap();
    let mut left: Vec<_> = fs::read_dir(&world.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["hard", "link", "out"]);
    assert_eq!(fs::read(world.outside.join("secret")).unwrap(), b"secret");
}

#[test]
fn a_file_is_made_with_a_mode_and_only_empty_directories_go() {
    let world = world();
    world
        .beneath
        .create_with_mode(Judged(Path::new("d/run")), b"x", 0o4750)
        .unwrap();
    assert_eq!(world.beneath.open_file(Path::new("d/run")).unwrap().mode, 0o750);
    assert!(world.beneath.remove_directory(Judged(Path::new("d"))).is_err());
    let run = version(&world, "d/run");
    world.beneath.remove(Judged(Path::new("d/run")), &run).unwrap();
    assert!(
        world
            .beneath
            .remove_directory(Judged(Path::new("../outside")))
            .is_err()
    );
    world.beneath.remove_directory(Judged(Path::new("d"))).unwrap();
    assert_eq!(fs::read_dir(&world.root).unwrap().count(), 0);
}

#[test]
fn redteam_21_i7_a_directory_that_became_a_link_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let root = Beneath::open_anywhere(dir.path()).unwrap().path().to_owned();
    let (workdir, outside) = (root.join("w"), root.join("outside"));
    fs::create_dir_all(workdir.join("deep")).unwrap();
    fs::create_dir_all(outside.join("deep")).unwrap();
    assert_eq!(Beneath::open(&workdir).unwrap().path(), workdir);
    fs::rename(&workdir, root.join("away")).unwrap();
    symlink(&outside, &workdir).unwrap();
    for swapped in [workdir.clone(), workdir.join("deep")] {
        let said = Beneath::open(&swapped).unwrap_err().to_string();
        assert!(said.contains("replaced the working directory"), "{said}");
        assert!(
            Beneath::open_anywhere(&swapped)
                .unwrap()
                .path()
                .starts_with(&outside)
        );
    }
}
