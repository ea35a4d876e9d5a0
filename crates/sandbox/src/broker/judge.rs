//! The broker's permission rules: a pure function of the action and the class of the place.

use super::places::Spot;
use agentd_protected::Class;
use rustix::io::Errno;

/// The action of a call on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Open an existing file for writing or truncation.
    Write,
    /// Create a file, a pipe or a socket.
    Make,
    /// Create a directory.
    MakeDirectory,
    /// Create a symbolic link.
    MakeSymlink,
    /// Remove anything but a directory.
    Remove,
    /// Remove an empty directory.
    RemoveDirectory,
    /// Set the mode; the flag says whether that takes rights from the owner.
    Mode { of_owner: bool },
    /// Set the owner, times or attributes.
    Describe,
}

/// The kind of thing that is moved or linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
}

const PROTECTED: Errno = Errno::ACCESS;
const FOREIGN: Errno = Errno::PERM;

/// Whether a call may do this at a spot.
pub(super) fn judge(act: Act, spot: Spot) -> Result<(), Errno> {
    match (act, spot) {
        (_, Spot::Guarded { class, .. }) => guarded(act, class),
        (_, Spot::Loose) => Ok(()),
        (Act::Mode { .. } | Act::Describe, Spot::Kept) => Err(FOREIGN),
        // Without these rights the session and its owner are locked out.
        (Act::Mode { of_owner: true }, Spot::Top) => Err(FOREIGN),
        (Act::Write | Act::Mode { .. } | Act::Describe, Spot::Top | Spot::Nameless) => Ok(()),
        (Act::Write, Spot::Device) => Ok(()),
        (Act::Mode { .. } | Act::Describe, Spot::Device | Spot::Outside) => Err(FOREIGN),
        (_, Spot::Outside | Spot::Device | Spot::Kept | Spot::Top | Spot::Nameless) => Err(PROTECTED),
    }
}

/// Whether a call may do this in the working directory.
fn guarded(act: Act, class: Class) -> Result<(), Errno> {
    match (act, class) {
        // A link among git's data would make git write elsewhere.
        (Act::MakeSymlink, Class::GitData) => Err(PROTECTED),
        (_, Class::Free | Class::GitData | Class::GitSetup) => Ok(()),
        // `git init` tests whether the file system keeps modes.
        (Act::Mode { .. }, Class::GitConfig | Class::GitPackedRefs | Class::GitSteps | Class::GitOptions) => {
            Ok(())
        }
        // They are objects' names, and notes about an operation; without them a repository is not another one.
        (Act::Remove, Class::GitPackedRefs | Class::GitSteps | Class::GitOptions) => Ok(()),
        (Act::MakeDirectory | Act::RemoveDirectory, Class::GitDirectory | Class::GitOperation) => Ok(()),
        (Act::Mode { .. } | Act::Describe, _) => Err(FOREIGN),
        (
            _,
            Class::GitConfig
            | Class::GitDirectory
            | Class::GitPackedRefs
            | Class::GitOperation
            | Class::GitSteps
            | Class::GitOptions
            | Class::GitOfMaker
            | Class::Protected(_),
        ) => Err(PROTECTED),
    }
}

/// Whether something may move from one spot to another.
pub(super) fn judge_move(kind: Kind, from: Spot, to: Spot) -> Result<(), Errno> {
    judge(Act::Remove, from)?;
    judge(Act::Make, to)?;
    match kind {
        // Their contents would arrive without a check of their names.
        Kind::Directory if to.is_in_git() => Err(PROTECTED),
        // `mv` then copies, and each name is checked. Among git's data most names are free.
        Kind::Directory if is_guarded(to) && (!is_guarded(from) || from.is_in_git()) => Err(Errno::XDEV),
        Kind::Symlink => judge(Act::MakeSymlink, to),
        Kind::Directory | Kind::File => Ok(()),
    }
}

/// Whether a file may get a second name, through which it could be written.
pub(super) fn judge_link(kind: Kind, from: Spot, to: Spot) -> Result<(), Errno> {
    match from {
        Spot::Outside | Spot::Device => return Err(Errno::XDEV),
        Spot::Nameless => {}
        Spot::Loose | Spot::Guarded { .. } | Spot::Kept | Spot::Top => judge(Act::Write, from)?,
    }
    judge(
        if kind == Kind::Symlink {
            Act::MakeSymlink
        } else {
            Act::Make
        },
        to,
    )
}

/// In the working directory, and not where names are free.
const fn is_guarded(spot: Spot) -> bool {
    matches!(spot, Spot::Guarded { excepted: false, .. })
}

#[cfg(test)]
mod tests {
    use super::super::places::Places;
    use super::*;
    use agentd_protected::ProtectedPaths;
    use std::path::Path;

    fn spot(path: &str) -> Spot {
        let loose = vec!["/t".into(), "/dev/shm".into()];
        Places::new("/w".into(), loose, ProtectedPaths::default()).locate(Path::new(path))
    }

    #[test]
    fn protected_names_are_not_made_written_or_removed() {
        for path in [
            "/w/.git",
            "/w/sub/.git",
            "/w/.git/hooks",
            "/w/.git/hooks/pre-commit",
            "/w/.git/commondir",
            "/w/.git/modules/m/config",
            "/w/.git/worktrees/t/gitdir",
            "/w/.vscode/tasks.json",
            "/w/AGENTS.md",
        ] {
            for act in [Act::Write, Act::Make, Act::MakeSymlink, Act::Remove] {
                assert_eq!(judge(act, spot(path)), Err(Errno::ACCESS), "{act:?} {path}");
            }
            for act in [Act::Describe, Act::Mode { of_owner: false }] {
                assert_eq!(judge(act, spot(path)), Err(Errno::PERM), "{act:?} {path}");
            }
        }
        // A configuration is checked and then replaced. Its mode may change: `git init` tests that.
        for path in ["/w/.git/config", "/w/target/.git/config"] {
            for act in [Act::Write, Act::Make, Act::MakeSymlink, Act::Remove] {
                assert_eq!(judge(act, spot(path)), Err(Errno::ACCESS), "{act:?} {path}");
            }
        }
    }

    #[test]
    fn git_directories_are_made_empty_and_nowhere_else() {
        for path in ["/w/.git", "/w/sub/.git", "/w/sub/.git/hooks", "/w/.git/refs"] {
            for act in [Act::MakeDirectory, Act::RemoveDirectory] {
                assert_eq!(judge(act, spot(path)), Ok(()), "{act:?} {path}");
            }
            for kind in [Kind::Directory, Kind::File, Kind::Symlink] {
                let moved = judge_move(kind, spot("/w/a"), spot(path));
                assert_eq!(moved, Err(Errno::ACCESS), "{kind:?} {path}");
            }
        }
        for path in [
            "/w/.git/modules",
            "/w/.git/worktrees",
            "/w/.git/hooks/pre-commit",
            "/w/.vscode",
        ] {
            assert_eq!(
                judge(Act::MakeDirectory, spot(path)),
                Err(Errno::ACCESS),
                "{path}"
            );
        }
    }

    #[test]
    fn files_of_the_session_are_free() {
        for path in [
            "/w/a",
            "/w/target/.fingerprint/x",
            "/w/.git/index.lock",
            "/w/.git/objects/ab/c",
            "/w/.git/hooks/pre-commit.sample",
            "/w/.git/config.lock",
            "/t/.git/config",
        ] {
            for act in [
                Act::Write,
                Act::Make,
                Act::Remove,
                Act::Describe,
                Act::Mode { of_owner: true },
            ] {
                assert_eq!(judge(act, spot(path)), Ok(()), "{act:?} {path}");
            }
        }
        assert_eq!(judge(Act::MakeSymlink, spot("/w/a")), Ok(()));
    }

    #[test]
    fn nothing_outside_is_touched_and_devices_are_only_written() {
        for act in [
            Act::Write,
            Act::Make,
            Act::MakeSymlink,
            Act::Remove,
            Act::Describe,
            Act::Mode { of_owner: false },
        ] {
            for path in ["/", "/wide", "/etc/passwd", "/home/ana/.ssh/config", "/dev/sda"] {
                assert!(judge(act, spot(path)).is_err(), "{act:?} {path}");
            }
            assert_eq!(judge(act, Spot::Device).is_ok(), act == Act::Write, "{act:?}");
        }
    }

    #[test]
    fn of_two_places_the_inner_one_counts() {
        let places = |guarded: &str, loose: &str| {
            Places::new(guarded.into(), vec![loose.into()], ProtectedPaths::default())
        };
        let hook = Path::new("/tmp/w/.git/config");
        assert!(judge(Act::Write, places("/tmp/w", "/tmp").locate(hook)).is_err());
        assert_eq!(places("/tmp", "/tmp/w").locate(hook), Spot::Loose);
    }

    #[test]
    fn a_worktree_writes_data_in_its_repository_and_no_settings() {
        let places = Places::new("/w/app".into(), Vec::new(), ProtectedPaths::default());
        let places =
            places.with_repository(Some("/src/app/.git".into()), vec!["/src/app/.git/objects".into()]);
        let write = |path: &str| judge(Act::Write, places.locate(Path::new(path)));
        for path in [
            "/src/app/.git/objects/ab/c",
            "/src/app/.git/refs/heads/agentd/x.lock",
            "/src/app/.git/worktrees/x/index.lock",
            "/src/app/.git/worktrees/x/HEAD",
        ] {
            assert_eq!(write(path), Ok(()), "{path}");
        }
        for path in [
            "/src/app/.git/config",
            "/src/app/.git/hooks/pre-commit",
            "/src/app/.git/objects/info/alternates",
            "/src/app/.git/worktrees/x/gitdir",
            "/src/app/.git/worktrees/x/commondir",
            "/src/app/.git/worktrees/x/config.worktree",
            "/src/app/main.rs",
        ] {
            assert!(write(path).is_err(), "{path}");
        }
        for (path, is_lock) in [
            ("packed-refs.lock", true),
            ("packed-refs", false),
            ("index.lock", false),
        ] {
            let path = Path::new("/src/app/.git").join(path);
            assert_eq!(places.is_lock_of_references(&path), is_lock, "{}", path.display());
        }
        assert!(!places.is_lock_of_references(Path::new("/w/app/.git/packed-refs.lock")));
        // Also where the temporary directory is around it.
        let places = Places::new("/w/app".into(), vec!["/tmp".into()], ProtectedPaths::default());
        let places = places.with_repository(Some("/tmp/app/.git".into()), Vec::new());
        let write = |path: &str| judge(Act::Write, places.locate(Path::new(path)));
        assert!(write("/tmp/app/.git/objects/info/alternates").is_err());
        assert_eq!(write("/tmp/app/.git/objects/ab/c"), Ok(()));
        assert_eq!(write("/tmp/other/.git/config"), Ok(()));
    }

    #[test]
    fn the_top_of_a_place_stays_usable() {
        assert_eq!(judge(Act::Mode { of_owner: true }, spot("/w")), Err(Errno::PERM));
        assert_eq!(judge(Act::Mode { of_owner: false }, spot("/w")), Ok(()));
        assert_eq!(judge(Act::Describe, spot("/w")), Ok(()));
        assert!(judge(Act::Remove, spot("/w")).is_err());
    }

    #[test]
    fn a_directory_from_where_names_are_free_is_copied_instead_of_moved() {
        let moved = |from, to| judge_move(Kind::Directory, spot(from), spot(to));
        assert_eq!(moved("/t/a", "/w/a"), Err(Errno::XDEV));
        assert_eq!(moved("/w/target/a", "/w/a"), Err(Errno::XDEV));
        assert_eq!(moved("/w/a", "/w/b"), Ok(()));
        assert_eq!(moved("/w/a", "/t/a"), Ok(()));
        assert_eq!(moved("/t/a", "/w/target/a"), Ok(()));
        assert_eq!(
            moved("/w/.git/objects/a", "/w/.git/objects/info"),
            Err(Errno::ACCESS)
        );
        assert_eq!(moved("/w/.git", "/w/old"), Err(Errno::ACCESS));
        assert_eq!(moved("/w/a", "/w/.git"), Err(Errno::ACCESS));
        assert_eq!(judge_move(Kind::File, spot("/t/a"), spot("/w/a")), Ok(()));
    }

    #[test]
    fn git_is_not_led_elsewhere_by_links() {
        let log = spot("/w/.git/logs/refs/heads/main");
        assert_eq!(judge(Act::MakeSymlink, log), Err(Errno::ACCESS));
        assert_eq!(judge_move(Kind::Symlink, spot("/w/a"), log), Err(Errno::ACCESS));
        assert_eq!(judge_link(Kind::Symlink, spot("/w/a"), log), Err(Errno::ACCESS));
        assert_eq!(
            judge_link(Kind::File, spot("/w/.git/config"), spot("/w/a")),
            Err(Errno::ACCESS)
        );
        assert_eq!(
            judge_link(Kind::File, spot("/etc/passwd"), spot("/w/a")),
            Err(Errno::XDEV)
        );
        assert_eq!(judge_link(Kind::File, Spot::Nameless, spot("/w/a")), Ok(()));
        assert_eq!(
            judge_link(Kind::File, Spot::Nameless, spot("/w/.git/config")),
            Err(Errno::ACCESS)
        );
    }
}
