//! Reads a chain, file by file.

use crate::link::{Link, links_of};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

/// The longest line to read, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// The `event` of the line that records an operator's acceptance of a loss.
pub const LOSS_ACCEPTED: &str = "store.loss_accepted";

/// The `event` of the line that records the deletion of a full file: `what.head` is the hash of the last line of that
/// file.
pub const FILE_DELETED: &str = "audit.file_deleted";

/// The defect of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It has no hashes.
    #[error("it is not sealed: it was changed, or not written by agentd")]
    Unsealed,
    /// Its own hash is wrong.
    #[error("its hash does not match its content: it was changed")]
    Changed,
    /// It names a different previous line.
    #[error("it does not follow the line before it: a line was removed, added or moved")]
    Moved,
    /// It is the first line with hashes, but does not begin the chain.
    #[error("it follows a missing line, and the lines before it are not sealed: their seals were removed")]
    Stripped,
    /// Its event is older than that of an earlier line.
    #[error(
        "its event is older than that of an earlier line: the database lost audited events, and no operator accepted the loss"
    )]
    Backwards,
    /// The file ends in the middle of the line.
    #[error("it is incomplete")]
    Cut,
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The first broken line of this file, from 1.
    #[error("line {0}: {1}")]
    Broken(u64, Broken),
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The part of a chain that has been read. The caller passes the files from the oldest to the newest.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    start: Option<Link>,
    head: Option<Link>,
    lines: u64,
    unsealed: u64,
    wanted: Option<Link>,
    found: bool,
    /// The cursor of the last event.
    cursor: u64,
    /// The last hashes of the files whose deletion the chain records.
    deleted: Vec<Link>,
}

impl Chain {
    /// A chain that should contain this hash.
    #[must_use]
    pub fn with_head(wanted: Option<Link>) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Reads a file to its end.
    ///
    /// # Errors
    /// The first broken line, or an error of reading the file.
    pub fn read(&mut self, mut file: impl BufRead) -> Result<(), Stop> {
        let mut number = 0;
        loop {
            let mut line = Vec::new();
            (&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(());
            }
            number += 1;
            let broken = |broken| Stop::Broken(number, broken);
            if line.pop() != Some(b'\n') {
                return Err(broken(Broken::Cut));
            }
            let line = str::from_utf8(&line).map_err(|_| broken(Broken::Unsealed))?;
            self.follow(line).map_err(broken)?;
        }
    }

    /// Checks the next line, without its line feed.
    fn follow(&mut self, line: &str) -> Result<(), Broken> {
        let Some((prev, own, right)) = links_of(line) else {
            // Files from before the chain existed begin with unsealed lines; within the chain every line is sealed.
            if self.head.is_some() {
                return Err(Broken::Unsealed);
            }
            self.unsealed += 1;
            return Ok(());
        };
        if !right {
            return Err(Broken::Changed);
        }
        if self.head.is_none() && self.unsealed > 0 && prev != Link::START {
            return Err(Broken::Stripped);
        }
        if self.head.is_some_and(|head| head != prev) {
            return Err(Broken::Moved);
        }
        self.note(line)?;
        self.start.get_or_insert(prev);
        self.found |= self.wanted == Some(own);
        self.head = Some(own);
        self.lines += 1;
        Ok(())
    }

    /// Reads what a line records about the chain itself. Cursors only rise, except where a loss was accepted: after that
    /// the log was written again.
    fn note(&mut self, line: &str) -> Result<(), Broken> {
        #[derive(Deserialize)]
        struct Said<'a> {
            cursor: Option<u64>,
            #[serde(borrow)]
            event: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct Deletion {
            what: Deleted,
        }
        #[derive(Deserialize)]
        struct Deleted {
            head: String,
        }
        let Ok(Said { cursor, event }) = serde_json::from_str(line) else {
            return Ok(());
        };
        if event.as_deref() == Some(FILE_DELETED) {
            let deletion = serde_json::from_str::<Deletion>(line).ok();
            let head: Option<Link> = deletion.and_then(|deletion| deletion.what.head.parse().ok());
            self.deleted.extend(head);
        }
        let Some(cursor) = cursor else { return Ok(()) };
        if cursor < self.cursor && event.as_deref() != Some(LOSS_ACCEPTED) {
            return Err(Broken::Backwards);
        }
        self.cursor = cursor;
        Ok(())
    }

    /// The number of lines before the chain: an older version wrote them, and they prove nothing.
    #[must_use]
    pub const fn unsealed(&self) -> u64 {
        self.unsealed
    }

    /// The number of lines of the chain that were read.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The hash of the last line.
    #[must_use]
    pub const fn head(&self) -> Option<Link> {
        self.head
    }

    /// Whether it begins with the very first line; otherwise older files are missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.start.is_none_or(|start| start == Link::START)
    }

    /// Whether agentd deleted the missing older files according to its settings: the chain has a line about it.
    #[must_use]
    pub fn deletion_is_recorded(&self) -> bool {
        self.start.is_some_and(|start| self.deleted.contains(&start))
    }

    /// The expected hash, if it was not found.
    #[must_use]
    pub fn missing(&self) -> Option<Link> {
        self.wanted.filter(|_| !self.found)
    }
}
