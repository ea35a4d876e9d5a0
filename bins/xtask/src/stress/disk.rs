//! Work for the disk: what others on the machine write, so that a sync takes long.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One write.
const BLOCK: usize = 4 << 20;
/// The size at which the file is emptied.
const MOST: u64 = 256 << 20;

/// A thread that writes and syncs in the directory of temporary files, until it is dropped.
pub(crate) struct BusyDisk {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<Syncs>>>,
}

/// How long its syncs took.
#[derive(Debug, Default)]
struct Syncs {
    count: u32,
    time: Duration,
}

impl BusyDisk {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || work(&seen)));
        Self { stop, thread }
    }

    /// Ends the work, and says what it did.
    pub(crate) fn end(mut self) -> String {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Ok(syncs))) if syncs.count > 0 => {
                let took = syncs.time / syncs.count;
                format!(
                    "with {} syncs of 4 MiB, {} ms each",
                    syncs.count,
                    took.as_millis()
                )
            }
            Some(Ok(Err(error))) => format!("WITHOUT pressure on the disk: {error}"),
            _ => "WITHOUT pressure on the disk".to_owned(),
        }
    }
}

impl Drop for BusyDisk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn work(stop: &AtomicBool) -> std::io::Result<Syncs> {
    // It has no name, so nothing is left if this process is killed.
    let mut file: File = tempfile::tempfile()?;
    let block = vec![7; BLOCK];
    let mut syncs = Syncs::default();
    while !stop.load(Ordering::Relaxed) {
        if file.stream_position()? >= MOST {
            file.set_len(0)?;
            file.rewind()?;
        }
        file.write_all(&block)?;
        let start = Instant::now();
        file.sync_all()?;
        syncs.count += 1;
        syncs.time += start.elapsed();
    }
    Ok(syncs)
}
