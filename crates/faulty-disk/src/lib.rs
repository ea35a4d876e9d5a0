//! For tests: a disk that fails as real disks do. It is mounted with FUSE, keeps everything in memory and records every
//! change, so that one run of a program yields the disk after a power loss at *every* moment of the run.
//!
//! Written data is volatile until its file is synced; a name is volatile until its directory is. [`Disk::records`] is the
//! list of changes, [`Image::after_power_loss`] is what a prefix of them leaves on the disk, [`Fault`] is what goes wrong
//! while a program runs.
//!
//! Invariants: none of the product; it serves to test I1 and I2. The process that uses the disk must not be the one that
//! serves it: a page fault on a mapped file of its own disk could wait for itself.

mod disk;
mod fault;
mod image;
mod loop_mount;
mod mount;
mod record;
mod tree;

pub use disk::{Counts, Disk, Frozen};
pub use fault::Fault;
pub use image::{Image, Loss};
pub use loop_mount::LoopMount;
pub use mount::{MountError, Mounted};
pub use record::Record;
