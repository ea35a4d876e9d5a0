//! The seccomp filter that passes calls to the broker.

use agentd_seccomp_notify::Instruction;

/// Calls that the broker always performs.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_linkat,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_removexattr,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_setxattr,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
];

/// The same calls without a directory argument, which newer architectures lack.
#[cfg(target_arch = "x86_64")]
const ALWAYS_HERE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_creat,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_HERE: &[libc::c_long] = &[];

/// Calls with the position of their flags: passed on only if they may write or create.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2)];

/// The bit that is `O_TMPFILE`'s own; the rest of it is `O_DIRECTORY`.
const UNNAMED: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;
/// Flags with which an open may write or create a file.
const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | UNNAMED).cast_unsigned();

/// The families of the requests that file systems answer: generic ones, XFS, versions, FAT, btrfs, bcachefs, CIFS, F2FS.
/// Many of them change a file that is open only for reading.
const FAMILIES: [u32; 8] = [0x66, 0x58, 0x76, 0x72, 0x94, 0xbc, 0xcf, 0xf5];
/// The bits of a request that say its family.
const FAMILY: u32 = 0xff00;
/// Those that read, or that need a descriptor for writing: the kernel answers them.
const HARMLESS: [u32; 14] = [
    0x8008_6601, // FS_IOC_GETFLAGS
    0x8004_6601, // FS_IOC32_GETFLAGS
    0x8008_7601, // FS_IOC_GETVERSION
    0x8008_6603, // EXT4_IOC_GETVERSION
    0x801c_581f, // FS_IOC_FSGETXATTR
    0xc020_660b, // FS_IOC_FIEMAP
    0x8100_9431, // FS_IOC_GETFSLABEL
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0xc018_9436, // FIDEDUPERANGE
    0x8004_7210, // FAT_IOCTL_GET_ATTRIBUTES
    0x8004_7213, // FAT_IOCTL_GET_VOLUME_ID
    0xc004_6686, // FS_IOC_MEASURE_VERITY
    0x8070_587e, // XFS_IOC_FSGEOMETRY
];
/// `FS_IOC_SETFLAGS`, the only one of the others that the broker carries out.
pub(super) const SET_FLAGS: u32 = 0x4008_6602;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;
const NOTIFY: u32 = 0x7fc0_0000;
const ALLOW: u32 = 0x7fff_0000;

/// Calls by which Unix sockets get names and find each other.
const SOCKETS: &[libc::c_long] = &[libc::SYS_bind, libc::SYS_connect];

/// Builds the filter. The preceding filters have already checked the architecture.
pub(super) fn program(sockets: bool) -> Vec<Instruction> {
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    // The lower half of a 64-bit value comes first in memory, on all architectures with a number here.
    let lower = |position: u32| 16 + 8 * position;
    let mut program = vec![step(LOAD, 0, 0, 0)];
    for (call, position) in OPENS {
        program.extend([
            step(JUMP_IF_EQUAL, 0, 4, number(*call)),
            step(LOAD, 0, 0, lower(*position)),
            step(JUMP_IF_ANY, 0, 1, WRITES),
            step(RETURN, 0, 0, NOTIFY),
            step(RETURN, 0, 0, ALLOW),
        ]);
    }
    let requests = requests(lower(1));
    program.push(step(JUMP_IF_EQUAL, 0, length(&requests), number(libc::SYS_ioctl)));
    program.extend(requests);
    let sockets = if sockets { SOCKETS } else { &[] };
    for call in ALWAYS.iter().chain(ALWAYS_HERE).chain(sockets) {
        program.push(step(JUMP_IF_EQUAL, 0, 1, number(*call)));
        program.push(step(RETURN, 0, 0, NOTIFY));
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    program
}

/// The part of the filter that decides on a request to a file system, whose number is at this offset.
fn requests(offset: u32) -> Vec<Instruction> {
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let mut part = vec![step(LOAD, 0, 0, offset), step(AND, 0, 0, FAMILY)];
    for (left, family) in (0u8..)
        .zip(FAMILIES.iter().rev())
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        part.push(step(JUMP_IF_EQUAL, left + 1, 0, family << 8));
    }
    part.extend([step(RETURN, 0, 0, ALLOW), step(LOAD, 0, 0, offset)]);
    for request in HARMLESS {
        part.push(step(JUMP_IF_EQUAL, 0, 1, request));
        part.push(step(RETURN, 0, 0, ALLOW));
    }
    part.push(step(RETURN, 0, 0, NOTIFY));
    part
}

/// The number of instructions to skip. A part that is too long would not be skipped as a whole; a test runs every path.
fn length(part: &[Instruction]) -> u8 {
    u8::try_from(part.len()).unwrap_or(u8::MAX)
}

/// Every call number fits; one that did not would compare with a number that no call has.
fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's result for a call.
    fn run(call: libc::c_long, args: [u64; 6]) -> u32 {
        run_with(true, call, args)
    }

    fn run_with(sockets: bool, call: libc::c_long, args: [u64; 6]) -> u32 {
        let program = program(sockets);
        let (mut at, mut value) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let skip = |yes: bool| usize::from(if yes { jt } else { jf });
            match code {
                LOAD if k == 0 => value = number(call),
                LOAD => {
                    let word = args[usize::try_from((k - 16) / 8).unwrap()];
                    let half = if (k - 16) % 8 == 0 {
                        word & 0xffff_ffff
                    } else {
                        word >> 32
                    };
                    value = u32::try_from(half).unwrap();
                }
                AND => value &= k,
                JUMP_IF_EQUAL => at += skip(value == k),
                JUMP_IF_ANY => at += skip(value & k != 0),
                _ => return k,
            }
        }
    }

    #[test]
    fn opens_that_write_or_create_are_notified_and_others_are_not() {
        let flags = |flags: i32| u64::from(flags.cast_unsigned());
        let openat = |bits: i32| run(libc::SYS_openat, [0, 1, flags(bits), 0, 0, 0]);
        for bits in [
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_TMPFILE,
            libc::O_ACCMODE,
            libc::O_RDWR | libc::O_CLOEXEC,
        ] {
            assert_eq!(openat(bits), NOTIFY, "{bits:o}");
        }
        for bits in [
            0,
            libc::O_DIRECTORY,
            libc::O_CLOEXEC | libc::O_NOFOLLOW,
            libc::O_PATH,
        ] {
            assert_eq!(openat(bits), ALLOW, "{bits:o}");
        }
        // A mode is not a flag, and the kernel ignores the upper half of flags, too.
        assert_eq!(run(libc::SYS_openat, [0, 1, 1 << 32, 0o777, 0, 0]), ALLOW);
    }

    #[test]
    fn of_the_requests_to_file_systems_only_those_that_change_a_file_are_notified() {
        let ioctl = |request: u32| run(libc::SYS_ioctl, [3, request.into(), 0, 0, 0, 0]);
        for request in HARMLESS {
            assert_eq!(ioctl(request), ALLOW, "{request:x}");
        }
        // Terminals, sockets, pipes, block devices.
        for request in [0x5401, 0x5413, 0x541b, 0x5421, 0x8933, 0x8008_1272] {
            assert_eq!(ioctl(request), ALLOW, "{request:x}");
        }
        for family in FAMILIES {
            assert_eq!(ioctl(0x4008_00fe | family << 8), NOTIFY, "{family:x}");
        }
        // FS_IOC_FSSETXATTR, FS_IOC32_SETFLAGS, FS_IOC_ENABLE_VERITY, FAT_IOCTL_SET_ATTRIBUTES.
        for request in [SET_FLAGS, 0x401c_5820, 0x4004_6602, 0x4080_6685, 0x4004_7211] {
            assert_eq!(ioctl(request), NOTIFY, "{request:x}");
        }
        // The kernel ignores the upper half of a request.
        let wide = run(libc::SYS_ioctl, [3, 1 << 32 | u64::from(SET_FLAGS), 0, 0, 0, 0]);
        assert_eq!(wide, NOTIFY);
    }

    #[test]
    fn every_listed_call_is_notified_and_others_are_not() {
        for call in ALWAYS.iter().chain(ALWAYS_HERE) {
            assert_eq!(run(*call, [0; 6]), NOTIFY, "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_ftruncate, libc::SYS_execve] {
            assert_eq!(run(call, [0; 6]), ALLOW, "{call}");
        }
    }
}
