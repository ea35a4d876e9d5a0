//! Reading a chain, file by file.

use crate::link::{Link, links_of};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

/// The longest line that is read.
const MAX_LINE: u64 = 16 << 20;

/// The `event` of the line with which an operator's acceptance of a loss is written down.
pub const LOSS_ACCEPTED: &str = "store.loss_accepted";

/// The `event` of the line with which the deletion of a full file is written down: `what.head` is the hash of the last line
/// of that file.
pub const FILE_DELETED: &str = "audit.file_deleted";

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It has no hashes.
    #[error("it is not sealed: it was changed, or not written by agentd")]
    Unsealed,
    /// Its own hash is another.
    #[error("its hash does not fit what it says: it was changed")]
    Changed,
    /// It names another line before it.
    #[error("it does not follow the line before it: a line was removed, added or moved")]
    Moved,
    /// It is the first with hashes and does not begin the chain.
    #[error(
        "it follows a line that is not there, and the lines before it are not sealed: their seals were taken away"
    )]
    Stripped,
    /// Its event is older than one before it.
    #[error(
        "it goes back in the history: the database lost events that were audited, and nobody accepted that"
    )]
    Backwards,
    /// The file ends in its middle.
    #[error("it is cut off")]
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

/// A chain as far as it was read. Files are given from the oldest to the newest.
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
    /// Ends of files whose deletion is in the chain.
    deleted: Vec<Link>,
}

impl Chain {
    /// A chain that is to have this hash somewhere.
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
    /// The first broken line, or the file cannot be read.
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

    /// Takes the next line, without its end.
    fn follow(&mut self, line: &str) -> Result<(), Broken> {
        let Some((prev, own, right)) = links_of(line) else {
            // Files from before there was a chain begin so; within it every line is sealed.
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

    /// What a line says of the chain itself. Cursors only rise, but where a loss was accepted: from there the log was
    /// written again.
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

    /// How many lines there are before the chain: they were written by an older version, and prove nothing.
    #[must_use]
    pub const fn unsealed(&self) -> u64 {
        self.unsealed
    }

    /// How many lines of the chain were read.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// The hash of the last line.
    #[must_use]
    pub const fn head(&self) -> Option<Link> {
        self.head
    }

    /// Whether it begins with the first line of all; else older files are gone.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.start.is_none_or(|start| start == Link::START)
    }

    /// Whether agentd deleted the older files that are gone, as its settings say: the chain has a line of it.
    #[must_use]
    pub fn deletion_is_recorded(&self) -> bool {
        self.start.is_some_and(|start| self.deleted.contains(&start))
    }

    /// The hash that is wanted and was not met.
    #[must_use]
    pub fn missing(&self) -> Option<Link> {
        self.wanted.filter(|_| !self.found)
    }
}
