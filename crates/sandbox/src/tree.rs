//! Single mounts, by descriptor.

use crate::mounts::Access;
use rustix::fd::{AsFd, AsRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_remount, move_mount, open_tree,
};
use std::path::Path;

/// A detached copy of what is mounted at a path without links, with everything below it.
pub(crate) fn copy(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    clone(&place)
}

/// The same for an open place.
pub(crate) fn clone(place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(place, "", flags)
}

/// Attaches a mount over an open place.
pub(crate) fn attach(mount: &OwnedFd, at: impl AsFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", at, "", flags)
}

/// A new file system, still detached.
pub(crate) fn file_system(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Errno> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(context.as_fd(), *name, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Removes rights from an attached mount. Rights that it lacked stay removed: the kernel insists on it.
pub(crate) fn restrict(mount: &OwnedFd, access: Access) -> Result<(), Errno> {
    let has = fstatvfs(mount)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    if access == Access::Read || has.contains(StatVfsMountFlags::RDONLY) {
        flags |= MountFlags::RDONLY;
    }
    if has.contains(StatVfsMountFlags::NOEXEC) {
        flags |= MountFlags::NOEXEC;
    }
    mount_remount(format!("/proc/self/fd/{}", mount.as_raw_fd()), flags, "")
}

/// Freezes the entries of this file system. Device files on it stay usable.
pub(crate) fn seal(mount: &OwnedFd) -> Result<(), Errno> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
    let has = fstatvfs(mount)?.f_flag;
    let no_exec = if has.contains(StatVfsMountFlags::NOEXEC) {
        MountFlags::NOEXEC
    } else {
        MountFlags::empty()
    };
    mount_remount(
        format!("/proc/self/fd/{}", mount.as_raw_fd()),
        flags | no_exec,
        "",
    )
}

/// The mounts below a copy. Only the topmost mount at a path is visible; the others need nothing.
pub(crate) fn below(copy: &OwnedFd, path: &Path, access: Access) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let found = match openat2(copy, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    match restrict(&found, access) {
        // Another mount covers it, and it is not a mount point itself.
        Err(Errno::INVAL) => {}
        done => done?,
    }
    let has = fstatvfs(&found)?.f_flag;
    if access == Access::Read && !has.contains(StatVfsMountFlags::RDONLY) {
        return Err(Errno::ROFS);
    }
    Ok(())
}
