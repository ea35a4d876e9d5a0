//! Resolves a path that a process passes to what the kernel finds there.

use super::call::At;
use super::target::{Target, magic};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

const SEEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A directory and a name in it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) dir: OwnedFd,
    /// The name as written: trailing slashes, if any, say that it is a directory.
    pub(super) name: OsString,
    /// The real path of the directory, with the name appended.
    pub(super) path: PathBuf,
}

/// An existing file of any type, held open.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) file: OwnedFd,
    /// Its real path.
    pub(super) path: PathBuf,
    pub(super) stat: Stat,
}

impl Object {
    pub(super) fn of(file: OwnedFd) -> Result<Self, Errno> {
        Ok(Self {
            path: real_path(&file)?,
            stat: fstat(&file)?,
            file,
        })
    }

    /// Whether it has no name any more. Some file systems count no links at all, and a name may end like this.
    pub(super) fn is_removed(&self) -> bool {
        let same = |found: Stat| (found.st_dev, found.st_ino) == (self.stat.st_dev, self.stat.st_ino);
        self.stat.st_nlink == 0
            && self.path.as_os_str().as_bytes().ends_with(b" (deleted)")
            && !statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(same)
    }
}

impl Named {
    /// The metadata of what is there now; does not follow links.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.dir, bare(&self.name), AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// A path and its starting point.
#[derive(Debug)]
pub(super) struct Start {
    /// `None` for an absolute path.
    base: Option<OwnedFd>,
    rest: OsString,
    /// The whole path is the link of a descriptor.
    link: bool,
    /// The path begins with one.
    by_descriptor: bool,
}

impl Start {
    /// Parses a path. One that names a descriptor of the process itself (`/proc/self/fd/3`, `/dev/stdout`) starts there:
    /// here the same path would mean a descriptor of ours.
    pub(super) fn read(target: Target<'_>, at: At) -> Result<Self, Errno> {
        Self::of(target, at.dir, target.text(at.path)?)
    }

    /// The same for a path that was read.
    pub(super) fn of(target: Target<'_>, dir: i32, text: OsString) -> Result<Self, Errno> {
        if let Some((descriptor, rest)) = own_descriptor(text.as_bytes(), target.pid) {
            return Ok(Self {
                base: Some(target.base(descriptor)?),
                rest: OsString::from_vec(rest.to_vec()),
                link: rest.is_empty(),
                by_descriptor: true,
            });
        }
        let base = if text.as_bytes().starts_with(b"/") {
            None
        } else {
            Some(target.base(dir)?)
        };
        Ok(Self {
            base,
            rest: text,
            link: false,
            by_descriptor: false,
        })
    }

    /// A path relative to a directory, as links hold it.
    pub(super) fn inside(dir: OwnedFd, path: OsString) -> Self {
        let absolute = path.as_bytes().starts_with(b"/");
        Self {
            base: (!absolute).then_some(dir),
            rest: path,
            link: false,
            by_descriptor: false,
        }
    }

    /// Opens a path from here with `O_PATH`. Does not follow magic links, which only the kernel can follow.
    fn look(&self, path: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        let open = |dir| {
            openat2(
                dir,
                path,
                SEEN | flags,
                Mode::empty(),
                ResolveFlags::NO_MAGICLINKS,
            )
        };
        match &self.base {
            Some(base) => open(rustix::fd::AsFd::as_fd(base)),
            None => open(CWD),
        }
    }

    /// The place of the last name. `otherwise` is the error if there is no last name.
    pub(super) fn named(self, otherwise: Errno) -> Result<Named, Errno> {
        let bytes = self.rest.as_bytes();
        if bytes.is_empty() {
            return Err(if self.link { otherwise } else { Errno::NOENT });
        }
        let end = bytes.iter().rposition(|byte| *byte != b'/').ok_or(otherwise)?;
        let at = bytes
            .iter()
            .take(end)
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let (before, name) = bytes.split_at(at);
        if [&b"."[..], b".."].contains(&bare(OsStr::from_bytes(name)).as_bytes()) {
            return Err(otherwise);
        }
        let before = OsStr::from_bytes(if before.is_empty() { b"." } else { before });
        let dir = self.look(before, OFlags::DIRECTORY)?;
        let path = real_path(&dir)?.join(bare(OsStr::from_bytes(name)));
        Ok(Named {
            dir,
            name: OsString::from_vec(name.to_vec()),
            path,
        })
    }

    /// The existing object. An empty path means the starting point, if `empty` allows that.
    pub(super) fn object(self, follow: bool, empty: bool) -> Result<Object, Errno> {
        if self.rest.is_empty() {
            return match self.base {
                Some(base) if if self.link { follow } else { empty } => Object::of(base),
                Some(_) if self.link => Err(Errno::LOOP),
                Some(_) | None => Err(Errno::NOENT),
            };
        }
        let flags = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        Object::of(self.look(&self.rest, flags)?)
    }

    /// Whether the path begins with a descriptor of the process.
    pub(super) const fn is_by_descriptor(&self) -> bool {
        self.by_descriptor
    }

    /// Whether the path is that of a descriptor, which has no place for a name.
    pub(super) const fn is_link(&self) -> bool {
        self.link
    }
}

/// The target of a name.
pub(super) fn followed(named: &Named, follow: bool) -> Result<Object, Errno> {
    let flags = if follow { SEEN } else { SEEN | OFlags::NOFOLLOW };
    let opened = openat2(
        &named.dir,
        &named.name,
        flags,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    );
    Object::of(opened?)
}

/// The target of a dangling link.
pub(super) fn dangling(named: &Named) -> Result<Option<OsString>, Errno> {
    match readlinkat(&named.dir, bare(&named.name), Vec::new()) {
        Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()))),
        Err(Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A name without trailing slashes.
pub(super) fn bare(name: &OsStr) -> &OsStr {
    let bytes = name.as_bytes();
    let end = bytes
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    OsStr::from_bytes(bytes.get(..end).unwrap_or_default())
}

/// The real path of a directory.
pub(super) fn real(path: &Path) -> Result<PathBuf, Errno> {
    real_path(&rustix::fs::open(path, SEEN | OFlags::DIRECTORY, Mode::empty())?)
}

fn real_path(file: &OwnedFd) -> Result<PathBuf, Errno> {
    let path = readlinkat(CWD, magic(file), Vec::with_capacity(256))?;
    Ok(Path::new(OsStr::from_bytes(path.as_bytes())).to_owned())
}

/// The number of the descriptor that a path starts with, and the rest of the path.
fn own_descriptor(path: &[u8], pid: i32) -> Option<(i32, &[u8])> {
    for (name, descriptor) in [(&b"/dev/stdin"[..], 0), (b"/dev/stdout", 1), (b"/dev/stderr", 2)] {
        if path == name {
            return Some((descriptor, b""));
        }
    }
    let own = format!("/proc/{pid}/");
    let directories = [&b"/proc/self/"[..], b"/proc/thread-self/", own.as_bytes()];
    let inside = directories.iter().find_map(|dir| path.strip_prefix(*dir));
    if let Some(rest) = inside.and_then(|inside| inside.strip_prefix(b"cwd/")) {
        return Some((libc::AT_FDCWD, rest));
    }
    let numbers = inside.and_then(|inside| inside.strip_prefix(b"fd/"));
    let numbers = numbers.or_else(|| path.strip_prefix(b"/dev/fd/"))?;
    let end = numbers
        .iter()
        .position(|byte| *byte == b'/')
        .unwrap_or(numbers.len());
    let (number, rest) = numbers.split_at(end);
    let number = std::str::from_utf8(number).ok()?.parse::<u32>().ok()?;
    let rest = rest
        .iter()
        .position(|byte| *byte != b'/')
        .map_or(&b""[..], |at| rest.get(at..).unwrap_or_default());
    Some((i32::try_from(number).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_the_process_itself_are_known_by_their_paths() {
        let own = |path: &'static str| {
            own_descriptor(path.as_bytes(), 7).map(|(fd, rest)| (fd, std::str::from_utf8(rest).unwrap()))
        };
        assert_eq!(own("/dev/stdout"), Some((1, "")));
        assert_eq!(own("/dev/fd/63"), Some((63, "")));
        assert_eq!(own("/proc/self/fd/5//a/b"), Some((5, "a/b")));
        assert_eq!(own("/proc/thread-self/fd/5"), Some((5, "")));
        assert_eq!(own("/proc/7/fd/5"), Some((5, "")));
        assert_eq!(own("/proc/self/cwd/a"), Some((libc::AT_FDCWD, "a")));
        for other in [
            "/proc/8/fd/5",
            "/dev/fd/x",
            "/dev/fd/-1",
            "/dev/stdout/a",
            "/proc/self/fd",
            "dev/fd/3",
        ] {
            assert_eq!(own(other), None, "{other}");
        }
    }

    #[test]
    fn slashes_at_the_end_belong_to_no_name() {
        assert_eq!(bare(OsStr::new("a//")), "a");
        assert_eq!(bare(OsStr::new("a")), "a");
        assert_eq!(bare(OsStr::new("/")), "");
    }
}
