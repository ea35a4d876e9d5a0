//! Opens files for writing, and creates files.

use super::Broker;
use super::call::At;
use super::judge::{Act, judge};
use super::places::Checked;
use super::resolve::{Named, Object, Start, dangling, followed};
use super::target::{Target, magic};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, MemfdFlags, Mode, OFlags, memfd_create, open, openat};
use rustix::io::Errno;

/// The maximum number of links to follow.
const MAX_LINKS: usize = 40;
/// How often to retry when a name appeared or disappeared meanwhile.
const TRIES: usize = 4;
/// `O_TMPFILE` without the part that is `O_DIRECTORY`.
const UNNAMED: OFlags = OFlags::TMPFILE.difference(OFlags::DIRECTORY);
/// Flags that only matter for finding the file, which is done.
const FINDING: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW);
/// Creates a file to which nothing can be written.
const EMPTY: OFlags = OFlags::RDONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(ALWAYS);
/// For terminals: this process must not acquire one as its controlling terminal.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY);

/// The result of an open.
#[derive(Debug)]
pub(super) enum Opened {
    File(OwnedFd),
    /// A named pipe without a reader yet.
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
            // `O_PATH` cannot write anything, and the kernel ignores all other flags.
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
            // Only a link to a missing name gets here.
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
            let made = mode.difference(target.umask());
            if self.is_new_config(named) {
                let opened = openat(&named.dir, &named.name, EMPTY, made);
                return opened.map(Opened::File);
            }
            if self.places.is_lock_of_references(&named.path) {
                // Nothing can be written there, so there is nothing to lock.
                return memfd_create(c"packed-refs.lock", MemfdFlags::CLOEXEC).map(Opened::File);
            }
            self.may_name(Act::Make, named)?;
            let flags = flags | OFlags::EXCL | ALWAYS;
            match openat(&named.dir, &named.name, flags, made) {
                Err(Errno::EXIST) if !exclusive => {}
                opened => return opened.map(Opened::File),
            }
        }
        Err(Errno::AGAIN)
    }

    /// Whether this is the missing configuration of a repository that the session made. Libgit2, and so `cargo init`, creates it
    /// empty and then replaces it. An empty one decides nothing.
    fn is_new_config(&self, named: &Named) -> bool {
        let is_config = self.spot(&named.path).checked() == Some(Checked::Config);
        is_config && named.path.parent().is_some_and(|git_dir| self.made.has(git_dir))
    }

    /// Opens exactly the file that was found.
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

    /// An unnamed file in a directory.
    fn unnamed(&self, target: Target<'_>, dir: &Object, flags: OFlags, mode: Mode) -> Result<Opened, Errno> {
        judge(Act::Make, self.spot(&dir.path.join("unnamed")))?;
        let flags = flags.difference(OFlags::NOFOLLOW) | ALWAYS;
        open(magic(&dir.file), flags, mode.difference(target.umask())).map(Opened::File)
    }
}

/// The flags for opening a file that was found.
pub(super) const fn reopening(flags: OFlags) -> OFlags {
    flags.difference(FINDING).union(ALWAYS)
}

/// Why a directory cannot be opened this way.
const fn directory(flags: OFlags) -> Errno {
    if flags.contains(OFlags::CREATE) && flags.contains(OFlags::DIRECTORY) {
        Errno::INVAL
    } else {
        Errno::ISDIR
    }
}
