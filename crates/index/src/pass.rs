//! One pass over a working directory: adds new files to the index and removes missing ones. Blocks: it has a thread of
//! its own, rests between small batches, and holds one file at a time.

use crate::chunk::chunks;
use crate::database::{self, Writer};
use crate::error::IndexError;
use crate::limits::Limits;
use crate::pace::Pace;
use agentd_repo_map::{Definition, Language, MapError, Priority, TagFinder, TagFinders};
use agentd_sandbox::{Beneath, OpenFile};
use agentd_tools::walk_files;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Rows per query in the search for missing files.
const SWEEP: u32 = 1_000;
/// Bytes of a line that are indexed; the rest is likely data.
const MAX_LINE: usize = 2_000;

/// Called with the working directory and a path below it.
type Rule = dyn Fn(&Path, &str) -> bool + Send + Sync;

/// Decides whether a file may be in an index. Files that the rules deny or ask about may not.
#[derive(Clone)]
pub struct ReadRule(Arc<Rule>);

impl ReadRule {
    /// Wraps `f`, which gets the working directory and the path below it.
    pub fn new(f: impl Fn(&Path, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    fn allows(&self, workdir: &Path, path: &str) -> bool {
        (self.0)(workdir, path)
    }
}

impl fmt::Debug for ReadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadRule")
    }
}

/// The progress of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Files that this pass has seen.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Files that were new or changed.
    pub written: u64,
    /// Whether a pass has seen every file.
    pub complete: bool,
    /// Whether no pass is scheduled or still looking at files.
    pub current: bool,
    /// Why the last pass failed.
    pub failed: Option<String>,
    /// Whether a pass has given every chunk a vector, or found that none are available.
    pub vectors: bool,
    /// Chunks that got a vector in this pass.
    pub embedded: u64,
    /// Which part of the directory is not indexed, and why.
    pub left_out: Option<String>,
    /// Why some or all vectors are missing.
    pub unembedded: Option<String>,
}

/// The job of a pass.
#[derive(Debug)]
pub struct Job {
    /// The working directory.
    pub workdir: PathBuf,
    /// The index file.
    pub file: PathBuf,
    /// The limits.
    pub limits: Limits,
    /// The rule that decides which files may be read.
    pub rule: ReadRule,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// Identifies the current boot of the machine.
    pub boot: String,
}

/// The state of one pass.
pub(crate) struct Pass<'a> {
    job: &'a Job,
    workdir: Beneath,
    pub(crate) writer: Writer,
    pub(crate) pace: &'a mut Pace,
    tell: &'a watch::Sender<Progress>,
    pub(crate) progress: Progress,
    finder: Option<Box<dyn TagFinder>>,
    seen: HashSet<i64>,
}

impl<'a> Pass<'a> {
    pub(crate) fn begin(
        job: &'a Job,
        pace: &'a mut Pace,
        tell: &'a watch::Sender<Progress>,
    ) -> Result<Self, IndexError> {
        let progress = Progress {
            complete: tell.borrow().complete,
            vectors: tell.borrow().vectors,
            ..Progress::default()
        };
        Ok(Self {
            workdir: Beneath::open(&job.workdir)?,
            writer: database::open(&job.file, job.limits.max_index_bytes, &job.boot)?,
            job,
            pace,
            tell,
            progress,
            finder: job
                .parsers
                .as_ref()
                .map(|parsers| parsers.finder(Priority::Background)),
            seen: HashSet::new(),
        })
    }

    /// Updates words and places.
    pub(crate) fn words(&mut self) -> Result<(), IndexError> {
        // Opened separately: the visits borrow all of `self` during the walk.
        let workdir = Beneath::open(&self.job.workdir)?;
        let mut failed = None;
        let walked = walk_files(&workdir, Path::new(""), false, &|| false, |path| {
            match self.visit(&path) {
                Ok(on) => on,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        match failed {
            Some(error) if error.is_full() => {
                self.writer.roll_back();
                self.leave_out(format!(
                    "its index has {} MB, the limit (index.max_index_bytes)",
                    self.job.limits.max_index_bytes / 1_000_000
                ));
            }
            Some(error) => {
                self.writer.roll_back();
                return Err(error);
            }
            None => {}
        }
        if self.pace.is_over() {
            self.writer.commit()?;
            return Ok(());
        }
        if walked {
            self.sweep()?;
        }
        self.writer.complete()?;
        self.progress.complete = true;
        self.progress.current = true;
        self.tell();
        Ok(())
    }

    fn leave_out(&mut self, why: String) {
        self.progress.left_out = Some(why);
    }

    /// Indexes one file if needed. Returns whether to continue.
    fn visit(&mut self, path: &Path) -> Result<bool, IndexError> {
        if self.pace.is_due() {
            self.breathe()?;
        }
        if self.pace.is_over() {
            return Ok(false);
        }
        let limits = &self.job.limits;
        if self.progress.files >= limits.max_files {
            let why = format!(
                "the index contains only the first {} files (index.max_files)",
                limits.max_files
            );
            self.leave_out(why);
            return Ok(false);
        }
        let Some(name) = path.to_str() else {
            return Ok(true);
        };
        if !self.job.rule.allows(&self.job.workdir, name) {
            return Ok(true);
        }
        let opened = self.workdir.open_file(path).ok();
        let most = limits.max_file_bytes;
        let Some(opened) = opened.filter(|opened| opened.real == path && opened.bytes <= most) else {
            return Ok(true);
        };
        if self.progress.bytes.saturating_add(opened.bytes) > limits.max_bytes {
            let why = format!(
                "the index contains only the first {} MB of files (index.max_bytes)",
                limits.max_bytes / 1_000_000
            );
            self.leave_out(why);
            return Ok(false);
        }
        self.file(name, opened)?;
        Ok(true)
    }

    fn file(&mut self, name: &str, opened: OpenFile) -> Result<(), IndexError> {
        let (stamp, bytes) = (opened.version.stamp(), opened.bytes);
        let known = self.writer.known(name)?;
        if let Some(known) = known.as_ref().filter(|known| known.stamp == stamp) {
            self.count(known.id, known.bytes);
            return Ok(());
        }
        let Some(content) = content(opened, self.job.limits.max_file_bytes) else {
            return Ok(());
        };
        let hash = Sha256::digest(&content);
        if let Some(known) = known.filter(|known| known.hash == hash.as_slice()) {
            self.writer.touch(known.id, stamp)?;
            self.count(known.id, bytes);
            return Ok(());
        }
        let text = String::from_utf8_lossy(&content);
        let lines: Vec<&str> = text.lines().map(cut).collect();
        let definitions = self.definitions(name, &content);
        let chunks = chunks(&lines, &definitions);
        let id = self.writer.put(name, (stamp, bytes, &hash), &lines, &chunks)?;
        self.progress.written += 1;
        self.count(id, bytes);
        Ok(())
    }

    fn count(&mut self, id: i64, bytes: u64) {
        self.seen.insert(id);
        self.progress.files += 1;
        self.progress.bytes = self.progress.bytes.saturating_add(bytes);
    }

    /// The definitions in a file; empty if its language is unknown or it cannot be parsed. Its chunks then end at blank lines.
    fn definitions(&mut self, name: &str, content: &[u8]) -> Vec<Definition> {
        let Some(language) = Language::of(name) else {
            return Vec::new();
        };
        let Some(finder) = &mut self.finder else {
            return Vec::new();
        };
        let pace = &*self.pace;
        match finder.tags(language, content, &|| pace.is_over()) {
            Ok(tags) => tags.definitions,
            Err(MapError::Unavailable(why)) => {
                tracing::debug!(why, "source files are indexed without their definitions");
                self.finder = None;
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Commits the batch for searches, and rests so that others can work.
    fn breathe(&mut self) -> Result<(), IndexError> {
        self.writer.commit()?;
        self.tell();
        self.pace.rest();
        Ok(())
    }

    pub(crate) fn tell(&self) {
        self.tell.send_replace(self.progress.clone());
    }

    /// Removes files from the index that are gone or no longer readable under the rules.
    fn sweep(&mut self) -> Result<(), IndexError> {
        let mut last = i64::MIN;
        loop {
            let ids = self.writer.files_after(last, SWEEP)?;
            let Some(end) = ids.last() else {
                return Ok(());
            };
            last = *end;
            for id in ids {
                if self.pace.is_due() {
                    self.breathe()?;
                }
                if !self.seen.contains(&id) {
                    self.writer.forget(id)?;
                }
            }
        }
    }

    /// A range of lines of a file, if it is unchanged since it was indexed.
    pub(crate) fn lines(&self, path: &str, stamp: u64, first: u32, last: u32) -> Option<String> {
        let opened = self.workdir.open_file(Path::new(path)).ok()?;
        if opened.version.stamp() != stamp {
            return None;
        }
        let content = content(opened, self.job.limits.max_file_bytes)?;
        let text = String::from_utf8_lossy(&content);
        let (first, last) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        let lines = text.lines().map(cut).take(last).skip(first.checked_sub(1)?);
        Some(lines.collect::<Vec<_>>().join("\n"))
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.job.limits
    }
}

/// The content of a text file, unless it is too large.
pub(crate) fn content(opened: OpenFile, most: u64) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(opened.bytes.min(most)).ok()?);
    let read = opened.file.take(most.saturating_add(1)).read_to_end(&mut content);
    let length = u64::try_from(read.ok()?).ok()?;
    (length <= most && memchr::memchr(0, &content).is_none()).then_some(content)
}

/// The indexed start of a line.
pub(crate) fn cut(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_LINE)).unwrap_or(line)
}
