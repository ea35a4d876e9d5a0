//! The files as programs see them.

use crate::record::{Inode, ROOT};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The object behind a number.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Directory(BTreeMap<OsString, Inode>),
    File(Vec<u8>),
    /// A socket or a pipe: only a name.
    Special,
}

/// One entry of the table.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) node: Node,
    pub(crate) mode: u32,
    /// Increases with every change; programs see it as a time in seconds.
    pub(crate) changed: u64,
}

/// All entries. A removed file stays in the table, since it may be open.
#[derive(Debug)]
pub(crate) struct Tree {
    entries: BTreeMap<Inode, Entry>,
    next: Inode,
    ticks: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Entry {
            node: Node::Directory(BTreeMap::new()),
            mode: 0o700,
            changed: 0,
        };
        Self {
            entries: BTreeMap::from([(ROOT, root)]),
            next: ROOT + 1,
            ticks: 1,
        }
    }

    pub(crate) fn get(&self, inode: Inode) -> Option<&Entry> {
        self.entries.get(&inode)
    }

    pub(crate) fn change(&mut self, inode: Inode) -> Option<&mut Entry> {
        self.ticks += 1;
        let ticks = self.ticks;
        let entry = self.entries.get_mut(&inode)?;
        entry.changed = ticks;
        Some(entry)
    }

    pub(crate) fn add(&mut self, node: Node, mode: u32) -> Inode {
        let inode = self.next;
        self.next += 1;
        self.ticks += 1;
        let changed = self.ticks;
        self.entries.insert(inode, Entry { node, mode, changed });
        inode
    }

    pub(crate) fn names(&self, parent: Inode) -> Option<&BTreeMap<OsString, Inode>> {
        match &self.get(parent)?.node {
            Node::Directory(names) => Some(names),
            Node::File(_) | Node::Special => None,
        }
    }

    pub(crate) fn names_mut(&mut self, parent: Inode) -> Option<&mut BTreeMap<OsString, Inode>> {
        match &mut self.change(parent)?.node {
            Node::Directory(names) => Some(names),
            Node::File(_) | Node::Special => None,
        }
    }

    pub(crate) fn find(&self, parent: Inode, name: &OsStr) -> Option<Inode> {
        self.names(parent)?.get(name).copied()
    }

    pub(crate) fn is_directory(&self, inode: Inode) -> bool {
        self.names(inode).is_some()
    }

    pub(crate) fn bytes_mut(&mut self, inode: Inode) -> Option<&mut Vec<u8>> {
        match &mut self.change(inode)?.node {
            Node::File(bytes) => Some(bytes),
            Node::Directory(_) | Node::Special => None,
        }
    }
}

/// Writes into a file, extending it if it is too short.
pub(crate) fn put(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    if let Some(place) = file.get_mut(start..end) {
        place.copy_from_slice(bytes);
    }
}
