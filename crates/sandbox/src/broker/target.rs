//! The process that makes a call: its memory, its directories and other kernel state.

use agentd_seccomp_notify::Listener;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, RawMode, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IoSliceMut, Read as _};
use std::os::unix::ffi::OsStringExt as _;

/// The longest path, with its terminating zero.
const PATH_MAX: usize = 4096;
/// The longest value of an extended attribute.
const VALUE_MAX: u64 = 65_536;
const PAGE: u64 = 4096;
/// Larger than the `status` or `stat` file of a process.
const PROC_BYTES: usize = 8192;

/// A thread that is blocked in a call. Before each answer the broker checks that it still waits, so nothing is read from
/// another process that reuses its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) pid: i32,
    pub(super) id: u64,
    pub(super) listener: &'a Listener,
}

impl Target<'_> {
    fn sure<T>(self, found: T) -> Result<T, Errno> {
        if self.listener.is_waiting(self.id) {
            Ok(found)
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Reads bytes of its memory.
    pub(super) fn bytes(self, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
        if length > VALUE_MAX {
            return Err(Errno::TOOBIG);
        }
        let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
        let mut bytes = vec![0; length];
        if length > 0 && self.read(address, &mut bytes)? < length {
            return Err(Errno::FAULT);
        }
        self.sure(bytes)
    }

    /// Reads integers from its memory.
    pub(super) fn numbers<const N: usize>(self, address: u64) -> Result<[i64; N], Errno> {
        let mut numbers = [0; N];
        let bytes = self.bytes(address, 8 * N as u64)?;
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *number = i64::from_ne_bytes(*bytes);
        }
        Ok(numbers)
    }

    /// Reads a 32-bit integer from its memory.
    pub(super) fn number(self, address: u64) -> Result<u32, Errno> {
        let bytes = self.bytes(address, 4)?;
        let number = bytes.first_chunk::<4>().ok_or(Errno::FAULT)?;
        Ok(u32::from_ne_bytes(*number))
    }

    /// Reads a string from its memory, without the terminating zero.
    pub(super) fn text(self, address: u64) -> Result<OsString, Errno> {
        let mut bytes = vec![0; PATH_MAX];
        let length = self.read(address, &mut bytes)?;
        bytes.truncate(length);
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.truncate(end);
                self.sure(OsString::from_vec(bytes))
            }
            None if length == PATH_MAX => Err(Errno::NAMETOOLONG),
            None => Err(Errno::FAULT),
        }
    }

    /// Reads as much as is mapped; the page after the first may not be.
    fn read(self, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let page = usize::try_from(PAGE).map_err(|_| Errno::FAULT)?;
        let first = (page - address % page).min(into.len());
        let end = address.checked_add(first).ok_or(Errno::FAULT)?;
        let remote = [
            RemoteIoVec {
                base: address,
                len: first,
            },
            RemoteIoVec {
                base: end,
                len: into.len() - first,
            },
        ];
        let parts = if into.len() > first {
            &remote[..]
        } else {
            remote.first_chunk::<1>().map_or(&[][..], |one| one)
        };
        let pid = nix::unistd::Pid::from_raw(self.pid);
        process_vm_readv(pid, &mut [IoSliceMut::new(into)], parts).map_err(|errno| match errno {
            nix::Error::EFAULT => Errno::FAULT,
            // It hides its memory, so the broker cannot tell what it asks for.
            _ => Errno::ACCESS,
        })
    }

    /// The target of one of its descriptors, or its working directory.
    pub(super) fn base(self, dir: i32) -> Result<OwnedFd, Errno> {
        let path = if dir == libc::AT_FDCWD {
            format!("/proc/{}/cwd", self.pid)
        } else {
            format!("/proc/{}/fd/{dir}", self.pid)
        };
        let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let opened = opened.map_err(|errno| if errno == Errno::NOENT { Errno::BADF } else { errno });
        self.sure(opened?)
    }

    /// A copy of one of its descriptors, with the same open file.
    pub(super) fn descriptor(self, number: i32) -> Result<OwnedFd, Errno> {
        let copy = pidfd_getfd(self.process()?, number, PidfdGetfdFlags::empty())?;
        self.sure(copy)
    }

    fn process(self) -> Result<OwnedFd, Errno> {
        let process = self.status("Tgid:").and_then(|pid| pid.parse().ok());
        pidfd_open(
            process.and_then(Pid::from_raw).ok_or(Errno::SRCH)?,
            PidfdFlags::empty(),
        )
    }

    /// Its umask. If that is unreadable, all bits but the owner's.
    pub(super) fn umask(self) -> Mode {
        let mask = self.status("Umask:");
        let mask = mask.and_then(|mask| RawMode::from_str_radix(&mask, 8).ok());
        Mode::from_bits_retain(mask.unwrap_or(0o077))
    }

    /// One of its descriptors that is its terminal; `/dev/tty` means another terminal in each process.
    pub(super) fn terminal(self) -> Result<OwnedFd, Errno> {
        // Most commands have no terminal, and every bash opens it at its start.
        let controlling = self.controlling().ok_or(Errno::NXIO)?;
        let process = self.process()?;
        let mut standard = (0..=2).filter_map(|fd| pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok());
        let is_it = |fd: &OwnedFd| fstat(fd).is_ok_and(|found| found.st_rdev == controlling);
        self.sure(standard.find(is_it).ok_or(Errno::NXIO)?)
    }

    /// The device number of its terminal.
    fn controlling(self) -> Option<u64> {
        let stat = self.proc("stat")?;
        // The name in parentheses may contain anything.
        let fields = stat.get(stat.rfind(')')?.checked_add(2)?..)?;
        let device: u32 = fields.split(' ').nth(4)?.parse().ok()?;
        let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
        (device != 0).then(|| libc::makedev((device >> 8) & 0xfff, minor))
    }

    fn status(self, key: &str) -> Option<String> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().to_owned())
    }

    /// Reads one of its small files below `/proc`. A buffer that holds the whole file saves a dozen reads: `read_to_string`
    /// starts with 32 bytes if a file reports no size.
    fn proc(self, name: &str) -> Option<String> {
        let file = File::open(format!("/proc/{}/{name}", self.pid)).ok()?;
        let mut bytes = Vec::with_capacity(PROC_BYTES);
        file.take(PROC_BYTES as u64).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The path by which this process can reopen an open file.
pub(super) fn magic(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
