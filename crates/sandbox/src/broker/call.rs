//! Decodes a notified call; its pointers are still to be read.

use agentd_seccomp_notify::Notification;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};

/// A path in the caller's memory, relative to one of its open directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) dir: i32,
    pub(super) path: u64,
}

/// The layout of times in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// Two integers in seconds.
    Seconds,
    /// Two pairs of seconds and microseconds.
    Micros,
    /// Two pairs of seconds and nanoseconds.
    Nanos,
}

/// A decoded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        at: At,
        flags: OFlags,
        mode: Mode,
    },
    MakeDirectory {
        at: At,
        mode: Mode,
    },
    MakeNode {
        at: At,
        mode: u32,
        device: u64,
    },
    MakeSymlink {
        target: u64,
        at: At,
    },
    Link {
        from: At,
        to: At,
        flags: AtFlags,
    },
    Rename {
        from: At,
        to: At,
        flags: RenameFlags,
    },
    Remove {
        at: At,
        flags: AtFlags,
    },
    Truncate {
        at: At,
        length: u64,
    },
    Mode {
        at: At,
        mode: Mode,
        flags: AtFlags,
    },
    Owner {
        at: At,
        user: u32,
        group: u32,
        flags: AtFlags,
    },
    Times {
        at: At,
        times: u64,
        clock: Clock,
        flags: AtFlags,
    },
    SetAttribute {
        at: At,
        name: u64,
        value: (u64, u64),
        create: u32,
        flags: AtFlags,
    },
    RemoveAttribute {
        at: At,
        name: u64,
        flags: AtFlags,
    },
}

/// The lower half of an argument, which is all that the kernel reads of an `int`.
#[expect(clippy::cast_possible_truncation, reason = "the kernel does the same")]
const fn int(argument: u64) -> u32 {
    argument as u32
}

const fn here(path: u64) -> At {
    At {
        dir: libc::AT_FDCWD,
        path,
    }
}

const fn at(dir: u64, path: u64) -> At {
    At {
        dir: int(dir).cast_signed(),
        path,
    }
}

const FOLLOW: AtFlags = AtFlags::empty();
const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

impl Call {
    /// Decodes a notification; `None` for a call that no filter passes on.
    pub(super) fn of(notification: &Notification) -> Option<Self> {
        let [a, b, c, d, e, _] = notification.args;
        let flags = |argument| AtFlags::from_bits_retain(int(argument));
        let mode = |argument| Mode::from_bits_retain(int(argument) & 0o7777);
        Some(match notification.call {
            libc::SYS_openat => Self::Open {
                at: at(a, b),
                flags: OFlags::from_bits_retain(int(c)),
                mode: mode(d),
            },
            libc::SYS_mkdirat => Self::MakeDirectory {
                at: at(a, b),
                mode: mode(c),
            },
            libc::SYS_mknodat => Self::MakeNode {
                at: at(a, b),
                mode: int(c),
                device: d,
            },
            libc::SYS_symlinkat => Self::MakeSymlink {
                target: a,
                at: at(b, c),
            },
            libc::SYS_linkat => Self::Link {
                from: at(a, b),
                to: at(c, d),
                flags: flags(e),
            },
            libc::SYS_renameat => Self::Rename {
                from: at(a, b),
                to: at(c, d),
                flags: RenameFlags::empty(),
            },
            libc::SYS_renameat2 => Self::Rename {
                from: at(a, b),
                to: at(c, d),
                flags: RenameFlags::from_bits_retain(int(e)),
            },
            libc::SYS_unlinkat => Self::Remove {
                at: at(a, b),
                flags: flags(c),
            },
            libc::SYS_truncate => Self::Truncate {
                at: here(a),
                length: b,
            },
            _ => return Self::metadata(notification),
        })
    }

    fn metadata(notification: &Notification) -> Option<Self> {
        let [a, b, c, d, e, _] = notification.args;
        let flags = |argument| AtFlags::from_bits_retain(int(argument));
        let mode = |argument| Mode::from_bits_retain(int(argument) & 0o7777);
        Some(match notification.call {
            libc::SYS_fchmodat => Self::Mode {
                at: at(a, b),
                mode: mode(c),
                flags: FOLLOW,
            },
            libc::SYS_fchmodat2 => Self::Mode {
                at: at(a, b),
                mode: mode(c),
                flags: flags(d),
            },
            libc::SYS_fchownat => Self::Owner {
                at: at(a, b),
                user: int(c),
                group: int(d),
                flags: flags(e),
            },
            libc::SYS_utimensat => Self::Times {
                at: at(a, b),
                times: c,
                clock: Clock::Nanos,
                flags: flags(d),
            },
            libc::SYS_setxattr | libc::SYS_lsetxattr => Self::SetAttribute {
                at: here(a),
                name: b,
                value: (c, d),
                create: int(e),
                flags: following(notification.call == libc::SYS_setxattr),
            },
            libc::SYS_removexattr | libc::SYS_lremovexattr => Self::RemoveAttribute {
                at: here(a),
                name: b,
                flags: following(notification.call == libc::SYS_removexattr),
            },
            _ => return Self::legacy(notification),
        })
    }

    /// The calls without a directory argument.
    #[cfg(target_arch = "x86_64")]
    fn legacy(notification: &Notification) -> Option<Self> {
        let [a, b, c, ..] = notification.args;
        let mode = |argument| Mode::from_bits_retain(int(argument) & 0o7777);
        Some(match notification.call {
            libc::SYS_open => Self::Open {
                at: here(a),
                flags: OFlags::from_bits_retain(int(b)),
                mode: mode(c),
            },
            libc::SYS_creat => Self::Open {
                at: here(a),
                flags: OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
                mode: mode(b),
            },
            libc::SYS_mkdir => Self::MakeDirectory {
                at: here(a),
                mode: mode(b),
            },
            libc::SYS_mknod => Self::MakeNode {
                at: here(a),
                mode: int(b),
                device: c,
            },
            libc::SYS_symlink => Self::MakeSymlink {
                target: a,
                at: here(b),
            },
            libc::SYS_link => Self::Link {
                from: here(a),
                to: here(b),
                flags: FOLLOW,
            },
            libc::SYS_rename => Self::Rename {
                from: here(a),
                to: here(b),
                flags: RenameFlags::empty(),
            },
            libc::SYS_unlink => Self::Remove {
                at: here(a),
                flags: FOLLOW,
            },
            libc::SYS_rmdir => Self::Remove {
                at: here(a),
                flags: AtFlags::REMOVEDIR,
            },
            _ => return Self::legacy_metadata(notification),
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn legacy_metadata(notification: &Notification) -> Option<Self> {
        let [a, b, c, ..] = notification.args;
        let mode = |argument| Mode::from_bits_retain(int(argument) & 0o7777);
        let times = |at, times, clock| Self::Times {
            at,
            times,
            clock,
            flags: FOLLOW,
        };
        let owner = |flags| Self::Owner {
            at: here(a),
            user: int(b),
            group: int(c),
            flags,
        };
        Some(match notification.call {
            libc::SYS_chmod => Self::Mode {
                at: here(a),
                mode: mode(b),
                flags: FOLLOW,
            },
            libc::SYS_chown => owner(FOLLOW),
            libc::SYS_lchown => owner(NOFOLLOW),
            libc::SYS_utime => times(here(a), b, Clock::Seconds),
            libc::SYS_utimes => times(here(a), b, Clock::Micros),
            libc::SYS_futimesat => times(at(a, b), c, Clock::Micros),
            _ => return None,
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    const fn legacy(_: &Notification) -> Option<Self> {
        None
    }
}

const fn following(follow: bool) -> AtFlags {
    if follow { FOLLOW } else { NOFOLLOW }
}
