//! Modes, owners, times and attributes. Each change applies to exactly the file that was checked, not to its name.

use super::Broker;
use super::call::{At, Clock, Subject};
use super::judge::Act;
use super::resolve::{Object, Start};
use super::target::{Target, magic};
use rustix::fs::{
    AtFlags, CWD, Gid, IFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, Uid, XattrFlags, chmod,
    chownat, ftruncate, ioctl_setflags, open, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;

/// The flags that these calls accept.
const KNOWN: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::EMPTY_PATH);

impl Broker {
    /// The file that the change is about, if it is allowed there. An open file may be open only for reading, so where it is
    /// decides, too.
    fn allowed(&self, target: Target<'_>, of: Subject, act: Act) -> Result<Object, Errno> {
        let object = match of {
            Subject::Path { at, flags } => {
                if !KNOWN.contains(flags) {
                    return Err(Errno::INVAL);
                }
                let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
                Start::read(target, at)?.object(follow, flags.contains(AtFlags::EMPTY_PATH))?
            }
            Subject::Open(descriptor) if descriptor < 0 => return Err(Errno::BADF),
            Subject::Open(descriptor) => Object::of(target.base(descriptor)?)?,
        };
        self.may(act, &object)?;
        Ok(object)
    }

    pub(super) fn mode(&self, target: Target<'_>, of: Subject, mode: Mode) -> Result<(), Errno> {
        let of_owner = !mode.contains(Mode::RWXU);
        let object = self.allowed(target, of, Act::Mode { of_owner })?;
        chmod(magic(&object.file), mode)
    }

    pub(super) fn owner(&self, target: Target<'_>, of: Subject, ids: (u32, u32)) -> Result<(), Errno> {
        let object = self.allowed(target, of, Act::Describe)?;
        let changed = |id: u32| (id != u32::MAX).then_some(id);
        let (user, group) = (
            changed(ids.0).map(Uid::from_raw),
            changed(ids.1).map(Gid::from_raw),
        );
        chownat(CWD, magic(&object.file), user, group, AtFlags::empty())
    }

    pub(super) fn times(
        &self,
        target: Target<'_>,
        of: Subject,
        (times, clock): (u64, Clock),
    ) -> Result<(), Errno> {
        let times = timestamps(target, times, clock)?;
        let object = self.allowed(target, of, Act::Describe)?;
        utimensat(CWD, magic(&object.file), &times, AtFlags::empty())
    }

    pub(super) fn set_attribute(
        &self,
        target: Target<'_>,
        of: Subject,
        (name, value, create): (u64, (u64, u64), u32),
    ) -> Result<(), Errno> {
        let (name, value) = (target.text(name)?, target.bytes(value.0, value.1)?);
        let object = self.allowed(target, of, Act::Describe)?;
        let create = XattrFlags::from_bits_retain(create);
        setxattr(magic(&object.file), name, &value, create)
    }

    pub(super) fn remove_attribute(&self, target: Target<'_>, of: Subject, name: u64) -> Result<(), Errno> {
        let name = target.text(name)?;
        let object = self.allowed(target, of, Act::Describe)?;
        removexattr(magic(&object.file), name)
    }

    pub(super) fn flags(&self, target: Target<'_>, descriptor: i32, flags: u64) -> Result<(), Errno> {
        let flags = IFlags::from_bits_retain(target.number(flags)?);
        let object = Object::of(target.descriptor(descriptor)?)?;
        self.may(Act::Describe, &object)?;
        ioctl_setflags(&object.file, flags)
    }

    pub(super) fn truncate(&self, target: Target<'_>, at: At, length: u64) -> Result<(), Errno> {
        let flags = AtFlags::empty();
        let object = self.allowed(target, Subject::Path { at, flags }, Act::Write)?;
        match object.kind() {
            rustix::fs::FileType::RegularFile => {}
            rustix::fs::FileType::Directory => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
        let file = open(
            magic(&object.file),
            OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        ftruncate(file, length)
    }
}

/// Times from the caller's memory; a null pointer means now.
fn timestamps(target: Target<'_>, address: u64, clock: Clock) -> Result<Timestamps, Errno> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let micros = |seconds, micros: i64| {
        let valid = (0..1_000_000).contains(&micros).then_some(micros * 1_000);
        Ok(Timespec {
            tv_sec: seconds,
            tv_nsec: valid.ok_or(Errno::INVAL)?,
        })
    };
    let (accessed, modified) = match clock {
        _ if address == 0 => (now, now),
        Clock::Seconds => {
            let [a, b] = target
                .numbers(address)?
                .map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 });
            (a, b)
        }
        Clock::Micros => {
            let [a, b, c, d] = target.numbers(address)?;
            (micros(a, b)?, micros(c, d)?)
        }
        Clock::Nanos => {
            let [a, b, c, d] = target.numbers(address)?;
            (
                Timespec {
                    tv_sec: a,
                    tv_nsec: b,
                },
                Timespec {
                    tv_sec: c,
                    tv_nsec: d,
                },
            )
        }
    };
    Ok(Timestamps {
        last_access: accessed,
        last_modification: modified,
    })
}
