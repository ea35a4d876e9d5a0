//! Decodes a notified call; its pointers are still to be read.

use super::program::SET_FLAGS;
use agentd_seccomp_notify::Notification;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};

/// A path in the caller's memory, relative to one of its open directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) dir: i32,
    pub(super) path: u64,
}

/// The object of a change of modes, owners, times or attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The target of a path.
    Path { at: At, flags: AtFlags },
    /// One of the caller's open descriptors.
    Open(i32),
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
        of: Subject,
        mode: Mode,
    },
    Owner {
        of: Subject,
        user: u32,
        group: u32,
    },
    Times {
        of: Subject,
        times: u64,
        clock: Clock,
    },
    SetAttribute {
        of: Subject,
        name: u64,
        value: (u64, u64),
        create: u32,
    },
    RemoveAttribute {
        of: Subject,
        name: u64,
    },
    /// Connect a socket to an address of a length.
    Connect {
        socket: i32,
        address: (u64, u32),
    },
    /// Give a socket an address.
    Bind {
        socket: i32,
        address: (u64, u32),
    },
    /// The attributes that `chattr` sets: `FS_IOC_SETFLAGS` with the address of the flags.
    Flags {
        descriptor: i32,
        flags: u64,
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

/// The subject of calls in which a null pointer stands for the open file itself.
const fn path_or_open(dir: u64, path: u64, flags: AtFlags) -> Subject {
    if path == 0 && int(dir).cast_signed() != libc::AT_FDCWD {
        open(dir)
    } else {
        Subject::Path {
            at: at(dir, path),
            flags,
        }
    }
}

const fn open(descriptor: u64) -> Subject {
    Subject::Open(int(descriptor).cast_signed())
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
        let path = |dir, path, flags| Subject::Path {
            at: at(dir, path),
            flags,
        };
        Some(match notification.call {
            libc::SYS_fchmod => Self::Mode {
                of: open(a),
                mode: mode(b),
            },
            libc::SYS_fchmodat => Self::Mode {
                of: path(a, b, FOLLOW),
                mode: mode(c),
            },
            libc::SYS_fchmodat2 => Self::Mode {
                of: path(a, b, flags(d)),
                mode: mode(c),
            },
            libc::SYS_fchown => Self::Owner {
                of: open(a),
                user: int(b),
                group: int(c),
            },
            libc::SYS_fchownat => Self::Owner {
                of: path(a, b, flags(e)),
                user: int(c),
                group: int(d),
            },
            libc::SYS_utimensat => Self::Times {
                of: path_or_open(a, b, flags(d)),
                times: c,
                clock: Clock::Nanos,
            },
            libc::SYS_ioctl if int(b) == SET_FLAGS => Self::Flags {
                descriptor: int(a).cast_signed(),
                flags: c,
            },
            libc::SYS_connect => Self::Connect {
                socket: int(a).cast_signed(),
                address: (b, int(c)),
            },
            libc::SYS_bind => Self::Bind {
                socket: int(a).cast_signed(),
                address: (b, int(c)),
            },
            _ => return Self::attributes(notification),
        })
    }

    fn attributes(notification: &Notification) -> Option<Self> {
        let [a, name, c, d, e, _] = notification.args;
        let call = notification.call;
        let of = match call {
            libc::SYS_setxattr | libc::SYS_removexattr => Subject::Path {
                at: here(a),
                flags: FOLLOW,
            },
            libc::SYS_lsetxattr | libc::SYS_lremovexattr => Subject::Path {
                at: here(a),
                flags: NOFOLLOW,
            },
            libc::SYS_fsetxattr | libc::SYS_fremovexattr => open(a),
            _ => return Self::legacy(notification),
        };
        let sets = [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr].contains(&call);
        Some(if sets {
            Self::SetAttribute {
                of,
                name,
                value: (c, d),
                create: int(e),
            }
        } else {
            Self::RemoveAttribute { of, name }
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
        let times = |of, times, clock| Self::Times { of, times, clock };
        let path = |flags| Subject::Path { at: here(a), flags };
        let owner = |flags| Self::Owner {
            of: path(flags),
            user: int(b),
            group: int(c),
        };
        Some(match notification.call {
            libc::SYS_chmod => Self::Mode {
                of: path(FOLLOW),
                mode: mode(b),
            },
            libc::SYS_chown => owner(FOLLOW),
            libc::SYS_lchown => owner(NOFOLLOW),
            libc::SYS_utime => times(path(FOLLOW), b, Clock::Seconds),
            libc::SYS_utimes => times(path(FOLLOW), b, Clock::Micros),
            libc::SYS_futimesat => times(path_or_open(a, b, FOLLOW), c, Clock::Micros),
            _ => return None,
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    const fn legacy(_: &Notification) -> Option<Self> {
        None
    }
}
