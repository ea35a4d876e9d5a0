//! Mounts the disk as a directory.

use crate::disk::Disk;
use crate::record::Inode;
use crate::tree::{Entry, Node};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, WriteFlags,
};
use nix::mount::{MntFlags, umount2};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may cache names and attributes. All changes go through the kernel.
const TTL: Duration = Duration::from_secs(60);
/// Reopening a file keeps the kernel's cache of it.
const KEEP: FopenFlags = FopenFlags::FOPEN_KEEP_CACHE;
/// 1 GiB in blocks of 4 KiB.
const BLOCKS: u64 = 1 << 18;

/// The disk could not be mounted. This is normal in a container or without root.
#[derive(Debug)]
pub struct MountError(pub std::io::Error);

/// A mounted disk; unmounted on drop.
#[derive(Debug)]
pub struct Mounted {
    directory: PathBuf,
    _session: BackgroundSession,
}

impl Mounted {
    /// Mounts a disk over an empty directory.
    ///
    /// # Errors
    /// This kernel has no FUSE, or we lack the permission to mount.
    pub fn new(disk: &Disk, directory: &Path) -> Result<Self, MountError> {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("faulty".to_owned())];
        // A slow sync must not block the rest.
        config.n_threads = Some(3);
        let served = Served { disk: disk.clone() };
        let session = Session::new(served, directory, &config).and_then(Session::spawn);
        Ok(Self {
            directory: directory.to_owned(),
            _session: session.map_err(MountError)?,
        })
    }

    /// The mount point.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // In a failed test, programs may still have files open there; these keep working until they are closed.
        let _ = umount2(&self.directory, MntFlags::MNT_DETACH);
    }
}

struct Served {
    disk: Disk,
}

/// Delays an operation on a slow disk.
#[expect(clippy::disallowed_methods, reason = "this is the fault")]
fn take(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

fn attributes(inode: Inode, entry: &Entry) -> FileAttr {
    let changed: SystemTime = UNIX_EPOCH + Duration::from_secs(entry.changed);
    let (kind, size) = match &entry.node {
        Node::Directory(_) => (FileType::Directory, 4_096),
        Node::File(bytes) => (FileType::RegularFile, bytes.len() as u64),
        Node::Special => (FileType::Socket, 0),
    };
    FileAttr {
        ino: INodeNo(inode),
        size,
        blocks: size.div_ceil(512),
        atime: changed,
        mtime: changed,
        ctime: changed,
        crtime: changed,
        kind,
        perm: u16::try_from(entry.mode & 0o7777).unwrap_or(0o700),
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4_096,
        flags: 0,
    }
}

impl Served {
    fn attributes(&self, inode: Inode) -> Result<FileAttr, Errno> {
        let state = self.disk.lock();
        let entry = state.tree.get(inode).ok_or(Errno::ENOENT)?;
        Ok(attributes(inode, entry))
    }

    fn make(&self, parent: INodeNo, name: &OsStr, node: Node, mode: u32) -> Result<FileAttr, Errno> {
        let inode = self.disk.lock().make(parent.0, name, node, mode)?;
        self.attributes(inode)
    }

    fn sync(&self, inode: INodeNo) -> Result<(), Errno> {
        let late = self.disk.lock().sync(inode.0)?;
        take(late);
        Ok(())
    }
}

fn entry(reply: ReplyEntry, made: Result<FileAttr, Errno>) {
    match made {
        Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.disk.answer();
        let found = self.disk.lock().tree.find(parent.0, name);
        entry(
            reply,
            found
                .ok_or(Errno::ENOENT)
                .and_then(|inode| self.attributes(inode)),
        );
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.disk.answer();
        match self.attributes(inode.0) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.disk.answer();
        let mut state = self.disk.lock();
        if let Some((entry, mode)) = state.tree.change(inode.0).zip(mode) {
            entry.mode = mode;
        }
        if let Some(Err(error)) = size.map(|size| state.resize(inode.0, size)) {
            return reply.error(error);
        }
        drop(state);
        self.getattr_of(inode, reply);
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        self.disk.answer();
        let regular = mode & 0o170_000 == 0o100_000;
        let node = if regular {
            Node::File(Vec::new())
        } else {
            Node::Special
        };
        entry(reply, self.make(parent, name, node, mode & !umask));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.disk.answer();
        let node = Node::Directory(BTreeMap::new());
        entry(reply, self.make(parent, name, node, mode & !umask));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.disk.answer();
        empty(reply, self.disk.lock().remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.disk.answer();
        empty(reply, self.disk.lock().remove(parent.0, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.disk.answer();
        let (from, to) = ((parent.0, name.to_owned()), (newparent.0, newname.to_owned()));
        empty(reply, self.disk.lock().rename(from, to));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.disk.answer();
        reply.opened(FileHandle(0), KEEP);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        self.disk.answer();
        match self.make(parent, name, Node::File(Vec::new()), mode & !umask) {
            Ok(attributes) => reply.created(&TTL, &attributes, Generation(0), FileHandle(0), KEEP),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.disk.answer();
        let state = self.disk.lock();
        match state.tree.get(inode.0).map(|entry| &entry.node) {
            Some(Node::File(bytes)) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let end = start.saturating_add(size as usize).min(bytes.len());
                reply.data(bytes.get(start..end).unwrap_or_default());
            }
            _ => reply.error(Errno::EISDIR),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.disk.answer();
        let written = self.disk.lock().write(inode.0, offset, data);
        match written {
            Ok(late) => {
                take(late);
                reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
            }
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.disk.answer();
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.disk.answer();
        empty(reply, self.sync(inode));
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.disk.answer();
        empty(reply, self.sync(inode));
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.disk.answer();
        let state = self.disk.lock();
        let Some(names) = state.tree.names(inode.0) else {
            return reply.error(Errno::ENOTDIR);
        };
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        for ((name, inode), next) in names.iter().zip(1_u64..).skip(skip) {
            let Some(found) = state.tree.get(*inode) else {
                continue;
            };
            if reply.add(INodeNo(*inode), next, attributes(*inode, found).kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.disk.answer();
        reply.statfs(
            BLOCKS,
            BLOCKS / 2,
            BLOCKS / 2,
            BLOCKS,
            BLOCKS / 2,
            4_096,
            255,
            4_096,
        );
    }
}

impl Served {
    fn getattr_of(&self, inode: INodeNo, reply: ReplyAttr) {
        match self.attributes(inode.0) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }
}
