//! The disk itself: files, faults, and the list of changes.

use crate::fault::{Blow, Fault};
use crate::record::{Inode, Record};
use crate::tree::{Node, Tree, put};
use bytes::Bytes;
use fuser::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file of this name at the root takes notes of the test.
pub(crate) const SAID: &str = "acknowledged";

/// The number of operations on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes, and other changes that need space; refused ones included.
    pub writes: u64,
    /// Syncs, of files and of directories.
    pub syncs: u64,
    /// The number of both that a fault refused.
    pub refused: u64,
}

/// An in-memory disk. Clones share it.
#[derive(Debug, Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    ice: Arc<Ice>,
}

/// Whether the disk is frozen.
#[derive(Debug, Default)]
struct Ice {
    frozen: Mutex<bool>,
    thawed: Condvar,
}

/// A frozen disk: no operation on it completes until this is dropped.
#[derive(Debug)]
pub struct Frozen(Arc<Ice>);

impl Drop for Frozen {
    fn drop(&mut self) {
        *self.0.frozen.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.thawed.notify_all();
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) tree: Tree,
    records: Vec<Record>,
    fault: Fault,
    counts: Counts,
    /// Files that only hold memory: the index of SQLite's log, which is rebuilt after a crash.
    memory: BTreeSet<Inode>,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Disk {
    /// Creates an empty disk without a fault.
    #[must_use]
    pub fn new() -> Self {
        let state = State {
            tree: Tree::new(),
            records: Vec::new(),
            fault: Fault::None,
            counts: Counts::default(),
            memory: BTreeSet::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            ice: Arc::default(),
        }
    }

    /// Freezes the disk from now on, like a dead server or a frozen disk.
    #[must_use]
    pub fn freeze(&self) -> Frozen {
        *self.ice.frozen.lock().unwrap_or_else(PoisonError::into_inner) = true;
        Frozen(Arc::clone(&self.ice))
    }

    /// Waits while the disk is frozen.
    pub(crate) fn answer(&self) {
        let mut frozen = self.ice.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        while *frozen {
            frozen = self
                .ice
                .thawed
                .wait(frozen)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the fault from now on. Resets the counts.
    pub fn set(&self, fault: Fault) {
        let mut state = self.lock();
        state.fault = fault;
        state.counts = Counts::default();
    }

    /// The counts since the last [`Disk::set`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Every change so far. Copies the list, but not the bytes.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.lock().records.clone()
    }

    /// Records in the list of changes that the program made a statement to the outside.
    pub fn say(&self, what: &str) {
        self.lock().records.push(Record::Said(what.to_owned()));
    }
}

impl State {
    /// Applies the fault to a change that needs space. Returns the delay.
    fn writable(&mut self) -> Result<Duration, Errno> {
        self.counts.writes += 1;
        let blow = self.fault.on_write();
        self.suffer(blow)
    }

    fn suffer(&mut self, blow: Blow) -> Result<Duration, Errno> {
        let error = match blow {
            Blow::None => return Ok(Duration::ZERO),
            Blow::Late(late) => return Ok(late),
            Blow::NoSpace => Errno::ENOSPC,
            Blow::Failed => Errno::EIO,
            Blow::ReadOnly => Errno::EROFS,
        };
        self.counts.refused += 1;
        Err(error)
    }

    pub(crate) fn make(
        &mut self,
        parent: Inode,
        name: &OsStr,
        node: Node,
        mode: u32,
    ) -> Result<Inode, Errno> {
        if self.tree.find(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.writable()?;
        let (directory, file) = match &node {
            Node::Directory(_) => (true, false),
            Node::File(_) => (false, true),
            Node::Special => (false, false),
        };
        let inode = self.tree.add(node, mode);
        let names = self.tree.names_mut(parent).ok_or(Errno::ENOTDIR)?;
        names.insert(name.to_owned(), inode);
        if name.as_encoded_bytes().ends_with(b"-shm") {
            self.memory.insert(inode);
        }
        // A socket means nothing after a restart.
        if directory || file {
            self.records.push(Record::Link {
                parent,
                name: name.to_owned(),
                inode,
                directory,
            });
        }
        Ok(inode)
    }

    pub(crate) fn remove(&mut self, parent: Inode, name: &OsStr) -> Result<(), Errno> {
        let inode = self.tree.find(parent, name).ok_or(Errno::ENOENT)?;
        if self.tree.names(inode).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        let blow = self.fault.on_removal();
        self.suffer(blow)?;
        self.tree.names_mut(parent).ok_or(Errno::ENOTDIR)?.remove(name);
        let name = name.to_owned();
        self.records.push(Record::Unlink { parent, name });
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: (Inode, OsString), to: (Inode, OsString)) -> Result<(), Errno> {
        let inode = self.tree.find(from.0, &from.1).ok_or(Errno::ENOENT)?;
        self.writable()?;
        self.tree.names_mut(from.0).ok_or(Errno::ENOTDIR)?.remove(&from.1);
        let names = self.tree.names_mut(to.0).ok_or(Errno::ENOTDIR)?;
        names.insert(to.1.clone(), inode);
        self.records.push(Record::Rename { from, to });
        Ok(())
    }

    /// Returns the delay of the write.
    pub(crate) fn write(&mut self, inode: Inode, offset: u64, bytes: &[u8]) -> Result<Duration, Errno> {
        if self.is_note(inode) {
            let text = String::from_utf8_lossy(bytes);
            let said = text.lines().map(|line| Record::Said(line.to_owned()));
            self.records.extend(said);
            return Ok(Duration::ZERO);
        }
        let late = if self.memory.contains(&inode) {
            Duration::ZERO
        } else {
            self.writable()?
        };
        put(self.tree.bytes_mut(inode).ok_or(Errno::EISDIR)?, offset, bytes);
        let bytes = Bytes::copy_from_slice(bytes);
        self.records.push(Record::Write { inode, offset, bytes });
        Ok(late)
    }

    pub(crate) fn resize(&mut self, inode: Inode, size: u64) -> Result<(), Errno> {
        if !self.memory.contains(&inode) {
            self.writable()?;
        }
        let bytes = self.tree.bytes_mut(inode).ok_or(Errno::EISDIR)?;
        bytes.resize(usize::try_from(size).map_err(|_| Errno::EFBIG)?, 0);
        self.records.push(Record::Resize { inode, size });
        Ok(())
    }

    /// Returns the delay of the sync.
    pub(crate) fn sync(&mut self, inode: Inode) -> Result<Duration, Errno> {
        self.counts.syncs += 1;
        let blow = self.fault.on_sync();
        let directory = self.tree.is_directory(inode);
        let late = self.suffer(blow);
        match (&late, directory) {
            (Ok(_), true) => self.records.push(Record::SyncNames { parent: inode }),
            (Ok(_), false) => self.records.push(Record::Sync { inode }),
            (Err(_), true) => {}
            (Err(_), false) => self.records.push(Record::LostSync { inode }),
        }
        late
    }

    fn is_note(&self, inode: Inode) -> bool {
        self.tree.find(crate::record::ROOT, OsStr::new(SAID)) == Some(inode)
    }
}
