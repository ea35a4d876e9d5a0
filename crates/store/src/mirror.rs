//! The JSONL mirror: one file per session, for `tail -f` and for rebuilding. It trails the commits and never delays them.
//!
//! The mirror follows the fleet-wide stream by cursor, so it needs no queue: a slow mirror just reads later. It finds
//! its position from the end of each file, so it repairs a restart, a torn last line or a removed file from the store.
//! It keeps a file that extends past the store.

use crate::directory::private_dir;
use crate::{Backend, Filter, Range, StoreError};
use agentd_protocol::{Seq, SessionId};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Events per read.
const STEP: u32 = 500;
/// Sessions whose last mirrored seq is cached; for the others, the mirror reads the file again.
const REMEMBERED: usize = 4_096;
/// How many bytes at the end of a file are searched first for the last complete line.
const TAIL: u64 = 64 * 1024;

/// A running mirror. Dropping it writes what is committed, then stops its thread.
#[derive(Debug)]
pub struct Mirror {
    stop: watch::Sender<bool>,
    written: watch::Receiver<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    /// Starts the mirror's thread. It first brings every file up to date, then follows the stream.
    ///
    /// # Errors
    /// The directory or the thread cannot be created.
    pub fn start(log: Arc<dyn Backend>, dir: &Path) -> Result<Self, StoreError> {
        private_dir(dir)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let runtime = runtime.map_err(|error| StoreError::io(dir, error))?;
        let (stop, stopped) = watch::channel(false);
        let (written_tx, written) = watch::channel(0);
        let work = Work {
            log,
            dir: dir.to_owned(),
            seqs: BTreeMap::new(),
            written: written_tx,
        };
        let thread = std::thread::Builder::new()
            .name("store-mirror".to_owned())
            .spawn(move || runtime.block_on(work.run(stopped)))
            .map_err(|error| StoreError::io(dir, error))?;
        Ok(Self {
            stop,
            written,
            thread: Some(thread),
        })
    }

    /// Watches the fleet-wide cursor up to which the files are written.
    #[must_use]
    pub fn written(&self) -> watch::Receiver<u64> {
        self.written.clone()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    log: Arc<dyn Backend>,
    dir: PathBuf,
    seqs: BTreeMap<SessionId, Seq>,
    written: watch::Sender<u64>,
}

impl Work {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        if let Err(error) = self.follow(&mut stopped).await {
            // The mirror is a copy: the store goes on without it, and the next start brings it up to date.
            tracing::error!(%error, dir = %self.dir.display(), "stopping the JSONL mirror");
        }
    }

    async fn follow(&mut self, stopped: &mut watch::Receiver<bool>) -> Result<(), StoreError> {
        let mut committed = self.log.committed();
        // Read before catching up: events committed meanwhile come up again below and are skipped.
        let mut cursor = self.log.watch(None, 1).await?.cursor;
        self.catch_up().await?;
        self.written.send_replace(cursor);
        loop {
            committed.mark_unchanged();
            let stopping = *stopped.borrow();
            let seen = self.log.watch(Some(cursor), STEP).await?;
            if seen.events.is_empty() {
                if stopping {
                    return Ok(());
                }
                tokio::select! {
                    moved = committed.changed() => if moved.is_err() { return Ok(()) },
                    _ = stopped.changed() => {}
                }
                continue;
            }
            let mut by_session: BTreeMap<SessionId, Vec<(Seq, Bytes)>> = BTreeMap::new();
            for event in seen.events {
                by_session
                    .entry(event.session)
                    .or_default()
                    .push((event.seq, event.body));
            }
            for (session, events) in by_session {
                self.add(session, events).await?;
            }
            cursor = seen.cursor;
            self.written.send_replace(cursor);
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        self.extend(SessionId::NIL).await?;
        let mut after = None;
        loop {
            let rows = self
                .log
                .list(Filter {
                    all: true,
                    limit: STEP,
                    after,
                    ..Filter::default()
                })
                .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.summary.session.into());
            for row in rows {
                let (session, head) = (row.summary.session, row.head);
                if self.mirrored(session)? > head {
                    self.set_aside(session)?;
                }
                if self.mirrored(session)? < head {
                    self.extend(session).await?;
                }
            }
        }
    }

    /// Renames a file that extends past the log to `ID.jsonl.lost-1`: the database has lost events, and this may be
    /// their only copy. The log continues in a new file.
    fn set_aside(&mut self, session: SessionId) -> Result<(), StoreError> {
        let path = self.path(session);
        let named = |n| path.with_extension(format!("jsonl.lost-{n}"));
        let aside = (1_u32..).map(named).find(|aside| !aside.exists());
        let aside = aside.unwrap_or_else(|| named(0));
        std::fs::rename(&path, &aside).map_err(|error| StoreError::io(&path, error))?;
        tracing::warn!(
            %session,
            kept = %aside.display(),
            "the mirror contains events that the database has lost; keeping them in a separate file"
        );
        self.seqs.remove(&session);
        Ok(())
    }

    /// Writes the events that the store has and the file lacks.
    async fn extend(&mut self, session: SessionId) -> Result<(), StoreError> {
        loop {
            let after = self.mirrored(session)?;
            match self
                .log
                .load(
                    session,
                    Range {
                        after,
                        limit: STEP,
                        ..Range::default()
                    },
                )
                .await
            {
                Ok(page) => {
                    self.write(session, &page.events)?;
                    if !page.more {
                        return Ok(());
                    }
                }
                Err(StoreError::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    async fn add(&mut self, session: SessionId, mut events: Vec<(Seq, Bytes)>) -> Result<(), StoreError> {
        let have = self.mirrored(session)?;
        events.retain(|(seq, _)| *seq > have);
        match events.first() {
            None => Ok(()),
            Some((first, _)) if *first == have + 1 => self.write(session, &events),
            Some(_) => self.extend(session).await,
        }
    }

    fn path(&self, session: SessionId) -> PathBuf {
        self.dir.join(format!("{session}.jsonl"))
    }

    /// The last seq in the file. Cuts off a torn last line.
    fn mirrored(&mut self, session: SessionId) -> Result<Seq, StoreError> {
        if let Some(seq) = self.seqs.get(&session) {
            return Ok(*seq);
        }
        let path = self.path(session);
        let seq = last_seq(&path).map_err(|error| StoreError::io(&path, error))?;
        self.remember(session, seq);
        Ok(seq)
    }

    fn remember(&mut self, session: SessionId, seq: Seq) {
        if self.seqs.len() >= REMEMBERED && !self.seqs.contains_key(&session) {
            self.seqs.clear();
        }
        self.seqs.insert(session, seq);
    }

    fn write(&mut self, session: SessionId, events: &[(Seq, Bytes)]) -> Result<(), StoreError> {
        let Some((last, _)) = events.last() else {
            return Ok(());
        };
        let path = self.path(session);
        let mut text = Vec::with_capacity(events.iter().map(|(_, line)| line.len() + 1).sum());
        for (_, line) in events {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path);
        file.and_then(|mut file| file.write_all(&text))
            .map_err(|error| StoreError::io(path, error))?;
        self.remember(session, *last);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Numbered {
    seq: Seq,
}

fn last_seq(path: &Path) -> std::io::Result<Seq> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    let mut tail = TAIL;
    loop {
        let start = size.saturating_sub(tail);
        if let Some((seq, end)) = last_line(&mut file, start)? {
            file.set_len(end)?;
            return Ok(seq);
        }
        if start == 0 {
            file.set_len(0)?;
            return Ok(0);
        }
        tail = tail.saturating_mul(8);
    }
}

/// The seq and the end of the last complete line that begins after `start` (or at 0).
fn last_line(file: &mut File, start: u64) -> std::io::Result<Option<(Seq, u64)>> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut text)?;
    let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let whole = text.get(..end).unwrap_or_default();
    let line = match whole.iter().rposition(|byte| *byte == b'\n') {
        Some(before) => whole.get(before + 1..).unwrap_or_default(),
        None if start == 0 => whole,
        None => return Ok(None),
    };
    match serde_json::from_slice::<Numbered>(line) {
        Ok(numbered) => Ok(Some((numbered.seq, start + end as u64 + 1))),
        // Not a line that we wrote: start the file over rather than guess.
        Err(_) => Ok((start == 0).then_some((0, 0))),
    }
}
