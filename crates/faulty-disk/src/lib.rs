//! For tests: a disk that fails as disks do. It is mounted with FUSE, keeps everything in memory and writes down every
//! change, so that one run of a program gives the disk after a loss of power at *every* moment of it.
//!
//! What is written is volatile until its file is synced; a name is volatile until its directory is. [`Disk::records`]
//! is the list of changes, [`Image::after_power_loss`] what is left of the first so many of them, [`Fault`] what goes
//! wrong while a program runs.
//!
//! Invariants: none of the product; I1 and I2 are tested on it. Whoever uses the disk is another process than the one
//! that serves it: a page fault on a mapped file of one's own disk could wait for itself.

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
