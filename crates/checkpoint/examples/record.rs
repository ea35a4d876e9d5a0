//! Records a directory and prints the processor time, with that of `git`, for docs/decisions/checkpoints.md:
//! `cargo run --release -p agentd-checkpoint --example record -- DIR ARCHIVES`.
#![expect(clippy::print_stdout, reason = "this is its output")]

use agentd_checkpoint::{Keeper, Limits};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(directory), Some(archives)) = (words.next(), words.next()) else {
        return Err("record DIR ARCHIVES".into());
    };
    let began = clock_gettime(ClockId::Monotonic);
    let taken = Keeper::new(&archives, Limits::default())
        .archive(&directory)
        .take()?;
    let ended = clock_gettime(ClockId::Monotonic);
    let wall = (ended.tv_sec - began.tv_sec) * 1_000 + (ended.tv_nsec - began.tv_nsec) / 1_000_000;
    println!("{} files, tree {}, {wall} ms", taken.files, taken.tree);
    Ok(())
}
