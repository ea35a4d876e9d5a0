//! The seccomp filter that passes calls to the broker.

use agentd_seccomp_notify::Instruction;

/// Calls that the broker always performs.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchownat,
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

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;
const NOTIFY: u32 = 0x7fc0_0000;
const ALLOW: u32 = 0x7fff_0000;

/// Builds the filter. The preceding filters have already checked the architecture.
pub(super) fn program() -> Vec<Instruction> {
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
    // Without a path the call refers to an open file.
    program.extend([
        step(JUMP_IF_EQUAL, 0, 6, number(libc::SYS_utimensat)),
        step(LOAD, 0, 0, lower(1)),
        step(JUMP_IF_EQUAL, 0, 2, 0),
        step(LOAD, 0, 0, lower(1) + 4),
        step(JUMP_IF_EQUAL, 1, 0, 0),
        step(RETURN, 0, 0, NOTIFY),
        step(RETURN, 0, 0, ALLOW),
    ]);
    for call in ALWAYS.iter().chain(ALWAYS_HERE) {
        program.push(step(JUMP_IF_EQUAL, 0, 1, number(*call)));
        program.push(step(RETURN, 0, 0, NOTIFY));
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    program
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
        let program = program();
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
    fn times_of_an_open_file_stay_in_the_kernel_whatever_half_of_the_path_is_set() {
        let times = |path| run(libc::SYS_utimensat, [3, path, 0, 0, 0, 0]);
        assert_eq!(times(0), ALLOW);
        assert_eq!(times(1), NOTIFY);
        assert_eq!(times(1 << 32), NOTIFY);
    }

    #[test]
    fn every_listed_call_is_notified_and_others_are_not() {
        for call in ALWAYS.iter().chain(ALWAYS_HERE) {
            assert_eq!(run(*call, [0; 6]), NOTIFY, "{call}");
        }
        for call in [
            libc::SYS_read,
            libc::SYS_fchmod,
            libc::SYS_ftruncate,
            libc::SYS_execve,
        ] {
            assert_eq!(run(call, [0; 6]), ALLOW, "{call}");
        }
    }
}
