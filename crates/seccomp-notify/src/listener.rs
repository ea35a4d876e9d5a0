//! The listener: the supervisor's end of a filter.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// One instruction of a filter program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// The number of instructions to skip if the condition holds.
    pub jt: u8,
    /// The number to skip otherwise.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// A system call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notification {
    /// Identifies this call in answers.
    pub id: u64,
    /// The thread that makes the call; 0 if it is outside our pid namespace.
    pub pid: i32,
    /// The system call number.
    pub call: i64,
    /// Its arguments.
    pub args: [u64; 6],
}

/// The descriptor that receives notifications. When its last copy is closed, the calls fail with ENOSYS.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Installs a filter on the calling thread and everything that it starts from now on. The thread must have set
    /// `no_new_privs`. If the program returns `SECCOMP_RET_USER_NOTIF` for a call, this call waits for an answer; after it
    /// was received, only a fatal signal interrupts it.
    ///
    /// # Errors
    /// EBUSY if an outer filter has a listener, EINVAL if the program is invalid or the kernel is too old.
    pub fn install(program: &[Instruction]) -> io::Result<Self> {
        let mut filter: Vec<libc::sock_filter> = program
            .iter()
            .map(|&Instruction { code, jt, jf, k }| libc::sock_filter { code, jt, jf, k })
            .collect();
        let too_long = |_| io::Error::from_raw_os_error(libc::EINVAL);
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).map_err(too_long)?,
            filter: filter.as_mut_ptr(),
        };
        let mut sizes = libc::seccomp_notif_sizes {
            seccomp_notif: 0,
            seccomp_notif_resp: 0,
            seccomp_data: 0,
        };
        // SAFETY: the kernel writes one `seccomp_notif_sizes` to the pointer, which is valid for it.
        let asked = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_GET_NOTIF_SIZES,
                0,
                &raw mut sizes,
            )
        };
        checked(asked)?;
        // A kernel with larger structures would write beyond ours.
        if usize::from(sizes.seccomp_notif) != size_of::<libc::seccomp_notif>()
            || usize::from(sizes.seccomp_notif_resp) != size_of::<libc::seccomp_notif_resp>()
        {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        // SAFETY: `program` points to `len` instructions that live until the call returns; the kernel copies and
        // verifies them.
        let made = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        let descriptor = c_int::try_from(checked(made)?).map_err(io::Error::other)?;
        // SAFETY: the kernel just made this descriptor for us, and no other code knows its number.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // Caller and supervisor alternate, so they run best on one CPU. Kernels before 6.6 lack this.
        // SAFETY: the argument is a number, and no memory is read or written.
        let _ = unsafe {
            libc::ioctl(
                descriptor.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
                TAKE_TURNS,
            )
        };
        Ok(Self(descriptor))
    }

    /// Receives the next call.
    ///
    /// # Errors
    /// ENOENT if the caller is gone before its call could be read; EINTR.
    pub fn receive(&self) -> io::Result<Notification> {
        let data = libc::seccomp_data {
            nr: 0,
            arch: 0,
            instruction_pointer: 0,
            args: [0; 6],
        };
        let mut notification = libc::seccomp_notif {
            id: 0,
            pid: 0,
            flags: 0,
            data,
        };
        // SAFETY: the kernel writes one `seccomp_notif`, whose size `install` compared, to a valid pointer.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut notification,
            )
        };
        checked(done.into())?;
        Ok(Notification {
            id: notification.id,
            pid: i32::try_from(notification.pid).unwrap_or(0),
            call: notification.data.nr.into(),
            args: notification.data.args,
        })
    }

    /// Whether the call still waits. If so, all data read from its process so far was its own.
    #[must_use]
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one u64 from a valid pointer.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        done == 0
    }

    /// Answers a call with a value or an error number. Does nothing if the caller is gone.
    pub fn answer(&self, id: u64, result: Result<i64, i32>) {
        let mut answer = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: 0,
        };
        match result {
            Ok(value) => answer.val = value,
            Err(errno) => answer.error = -errno.abs(),
        }
        // SAFETY: the kernel reads one `seccomp_notif_resp`, whose size `install` compared, from a valid pointer.
        let _ = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        };
    }

    /// Answers a call with a copy of a descriptor, created in the caller's process.
    ///
    /// # Errors
    /// EMFILE if the caller has reached its limit; the call then still waits. ENOENT if the caller is gone.
    pub fn answer_with(&self, id: u64, file: BorrowedFd<'_>, close_on_exec: bool) -> io::Result<()> {
        let copy = libc::seccomp_notif_addfd {
            id,
            flags: SEND,
            srcfd: u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?,
            newfd: 0,
            newfd_flags: if close_on_exec {
                libc::O_CLOEXEC.cast_unsigned()
            } else {
                0
            },
        };
        // SAFETY: the kernel reads one `seccomp_notif_addfd`, whose size is part of the request, from a valid pointer.
        let done = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                &raw const copy,
            )
        };
        checked(done.into()).map(drop)
    }
}

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`: from now on, the woken thread runs on the CPU of the waiting one.
const TAKE_TURNS: libc::c_ulong = 1;
/// `SECCOMP_ADDFD_FLAG_SEND`: the descriptor is the answer.
const SEND: u32 = 1 << 1;

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
