//! The changes of the disk, in order.

use bytes::Bytes;
use std::ffi::OsString;

/// The number of a file or directory; the root is 1.
pub(crate) type Inode = u64;

/// The root of the disk.
pub(crate) const ROOT: Inode = 1;

/// One change of the disk, or a note of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Bytes were written to a file.
    Write {
        /// The file.
        inode: u64,
        /// The offset in bytes.
        offset: u64,
        /// The data.
        bytes: Bytes,
    },
    /// A file changed its length.
    Resize {
        /// The file.
        inode: u64,
        /// The new length.
        size: u64,
    },
    /// The current state of a file is durable.
    Sync {
        /// The file.
        inode: u64,
    },
    /// A sync failed: pending changes will never be written, and the next sync does not report that.
    LostSync {
        /// The file.
        inode: u64,
    },
    /// A directory got a new name.
    Link {
        /// The directory.
        parent: u64,
        /// The name.
        name: OsString,
        /// The file or directory that it names.
        inode: u64,
        /// Whether that is a directory.
        directory: bool,
    },
    /// A name was removed.
    Unlink {
        /// The directory.
        parent: u64,
        /// The name.
        name: OsString,
    },
    /// A name was moved, possibly over another one.
    Rename {
        /// The old directory and name.
        from: (u64, OsString),
        /// The new directory and name.
        to: (u64, OsString),
    },
    /// The current names in a directory are durable.
    SyncNames {
        /// The directory.
        parent: u64,
    },
    /// A statement of the program to the outside: one line of the file `acknowledged`, which is not part of the disk.
    Said(String),
}
