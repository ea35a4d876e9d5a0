//! Named pipes that a process opens for writing before there is a reader: this open blocks, and must block no other call.

use super::opening::reopening;
use super::resolve::Object;
use super::target::magic;
use agentd_seccomp_notify::Listener;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::sync::Arc;

/// The maximum number of blocked opens.
const MOST: usize = 64;

/// The pipes that are being opened.
#[derive(Debug, Default)]
pub(super) struct Pipes(Vec<Waiting>);

#[derive(Debug)]
struct Waiting {
    id: u64,
    pipe: Arc<OwnedFd>,
    thread: std::thread::JoinHandle<()>,
    /// The caller stopped waiting: this end lets the blocked thread find a reader and exit.
    reader: Option<OwnedFd>,
}

impl Pipes {
    /// Opens a pipe and answers the call as soon as there is a reader.
    pub(super) fn open(
        &mut self,
        listener: &Arc<Listener>,
        id: u64,
        pipe: Object,
        flags: OFlags,
    ) -> Result<(), Errno> {
        self.0.retain(|waiting| !waiting.thread.is_finished());
        for gone in self
            .0
            .iter_mut()
            .filter(|waiting| !listener.is_waiting(waiting.id))
        {
            if gone.reader.is_none() {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                gone.reader = open(magic(&gone.pipe), flags, Mode::empty()).ok();
            }
        }
        if self.0.iter().filter(|waiting| waiting.reader.is_none()).count() >= MOST {
            return Err(Errno::AGAIN);
        }
        let (listener, pipe) = (Arc::clone(listener), Arc::new(pipe.file));
        let own = Arc::clone(&pipe);
        let waits = move || {
            let opened = open(magic(&own), reopening(flags), Mode::empty());
            let failed = match opened {
                Ok(file) => {
                    let given = listener.answer_with(id, file.as_fd(), flags.contains(OFlags::CLOEXEC));
                    given
                        .err()
                        .map(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
                }
                Err(errno) => Some(errno),
            };
            if let Some(errno) = failed {
                listener.answer(id, Err(errno.raw_os_error()));
            }
        };
        let thread = std::thread::Builder::new().name("pipe".to_owned()).spawn(waits);
        let thread = thread.map_err(|_| Errno::AGAIN)?;
        self.0.push(Waiting {
            id,
            pipe,
            thread,
            reader: None,
        });
        Ok(())
    }
}
