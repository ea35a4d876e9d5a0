//! What was changed, in order.

use bytes::Bytes;
use std::ffi::OsString;

/// The number of a file or directory; the root is 1.
pub(crate) type Inode = u64;

/// The root of the disk.
pub(crate) const ROOT: Inode = 1;

/// One change of the disk, or a note of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Bytes of a file.
    Write {
        /// Which file.
        inode: u64,
        /// Where.
        offset: u64,
        /// What.
        bytes: Bytes,
    },
    /// A file got another length.
    Resize {
        /// Which file.
        inode: u64,
        /// The length.
        size: u64,
    },
    /// A file is on the disk as it is now.
    Sync {
        /// Which file.
        inode: u64,
    },
    /// A sync failed: what waited for it will never be written, and the next sync does not tell.
    LostSync {
        /// Which file.
        inode: u64,
    },
    /// A name in a directory.
    Link {
        /// The directory.
        parent: u64,
        /// The name.
        name: OsString,
        /// What it names.
        inode: u64,
        /// Whether that is a directory.
        directory: bool,
    },
    /// A name is gone.
    Unlink {
        /// The directory.
        parent: u64,
        /// The name.
        name: OsString,
    },
    /// A name moved, over another one perhaps.
    Rename {
        /// The directory and the name.
        from: (u64, OsString),
        /// The new ones.
        to: (u64, OsString),
    },
    /// The names in a directory are on the disk as they are now.
    SyncNames {
        /// The directory.
        parent: u64,
    },
    /// What the program said to the outside: one line of the file `acknowledged`, which is no file of the disk.
    Said(String),
}
