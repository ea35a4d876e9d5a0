//! Opening for writing, and making files.

use super::Broker;
use super::call::At;
use super::judge::{Act, judge};
use super::resolve::{Named, Object, Start, dangling, followed};
use super::target::{Target, magic};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, open, openat};
use rustix::io::Errno;

/// As many links may follow each other.
const MAX_LINKS: usize = 40;
/// How often a name is looked at again that came or went meanwhile.
const TRIES: usize = 4;
/// `O_TMPFILE` without the part that is `O_DIRECTORY`.
const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);
/// What only matters for finding the file, which was found.
const FINDING: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW);
/// Of a terminal that is opened: this process must not get it as its own.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY);

/// What an open gives.
#[derive(Debug)]
pub(super) enum Opened {
    File(OwnedFd),
    /// A named pipe that nobody reads yet.
    Pipe(Object),
}

impl Broker {
    pub(super) fn open(
        &self,
        target: Target<'_>,
        at: At,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Opened, Errno> {
        let start = Start::read(target, at)?;
        let follow = !flags.contains(OFlags::NOFOLLOW);
        if flags.contains(OFlags::PATH) {
            // Nothing can be written by it, and the kernel looks at no other flag.
            return Ok(Opened::File(start.object(follow, false)?.file));
        }
        if flags.contains(UNNAMED) {
            return self.unnamed(target, &start.object(follow, false)?, flags, mode);
        }
        if !flags.contains(OFlags::CREATE) || start.is_link() {
            return self.reopen(target, start.object(follow, false)?, flags);
        }
        let mut named = start.named(Errno::ISDIR)?;
        for _ in 0..MAX_LINKS {
            match self.open_or_make(target, &named, flags, mode) {
                Err(Errno::NOENT) => {}
                done => return done,
            }
            // Only a link to a name that is not there comes here.
            match dangling(&named)? {
                Some(leads_to) => named = Start::inside(named.dir, leads_to).named(Errno::ISDIR)?,
                None => return Err(Errno::NOENT),
            }
        }
        Err(Errno::LOOP)
    }

    fn open_or_make(
        &self,
        target: Target<'_>,
        named: &Named,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Opened, Errno> {
        let exclusive = flags.contains(OFlags::EXCL);
        let follow = !exclusive && !flags.contains(OFlags::NOFOLLOW);
        for _ in 0..TRIES {
            match followed(named, follow) {
                Ok(_) if exclusive => return Err(Errno::EXIST),
                Ok(object) => return self.reopen(target, object, flags),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            if follow && dangling(named)?.is_some() {
                return Err(Errno::NOENT);
            }
            self.may_name(Act::Make, named)?;
            let made = mode.difference(target.umask());
            let flags = flags | OFlags::EXCL | ALWAYS;
            match openat(&named.dir, &named.name, flags, made) {
                Err(Errno::EXIST) if !exclusive => {}
                opened => return opened.map(Opened::File),
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens what was found, and nothing else.
    fn reopen(&self, target: Target<'_>, object: Object, flags: OFlags) -> Result<Opened, Errno> {
        match object.kind() {
            FileType::Symlink => return Err(Errno::LOOP),
            FileType::Directory => return Err(directory(flags)),
            FileType::CharacterDevice if object.stat.st_rdev == libc::makedev(5, 0) => {
                return target.terminal().map(Opened::File);
            }
            _ => {}
        }
        self.may(Act::Write, &object)?;
        let waits = !flags.contains(OFlags::RDWR) && !flags.contains(OFlags::NONBLOCK);
        if object.kind() == FileType::Fifo && waits {
            return Ok(Opened::Pipe(object));
        }
        open(magic(&object.file), reopening(flags), Mode::empty()).map(Opened::File)
    }

    /// A file without a name, in a directory.
    fn unnamed(&self, target: Target<'_>, dir: &Object, flags: OFlags, mode: Mode) -> Result<Opened, Errno> {
        judge(Act::Make, self.spot(&dir.path.join("unnamed")))?;
        let flags = flags.difference(OFlags::NOFOLLOW) | ALWAYS;
        open(magic(&dir.file), flags, mode.difference(target.umask())).map(Opened::File)
    }
}

/// The flags with which a file that was found is opened.
pub(super) const fn reopening(flags: OFlags) -> OFlags {
    flags.difference(FINDING).union(ALWAYS)
}

/// Why a directory cannot be opened like this.
const fn directory(flags: OFlags) -> Errno {
    if flags.contains(OFlags::CREATE) && flags.contains(OFlags::DIRECTORY) {
        Errno::INVAL
    } else {
        Errno::ISDIR
    }
}
