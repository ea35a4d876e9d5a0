//! Collects the hits of a search, up to its limits.

use crate::shape::excerpt;
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::io;

/// The longest part of a line to show.
const LINE_CHARS: usize = 500;

/// The form in which the result shows hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The matching lines.
    Content,
    /// The paths of the files.
    Files,
    /// The number of hits per file.
    Count,
}

/// The hits so far.
#[derive(Debug)]
pub(crate) struct Hits {
    pub(crate) mode: Mode,
    pub(crate) lines: Vec<String>,
    bytes: usize,
    pub(crate) matches: u64,
    pub(crate) files: u64,
    /// Files with hits that the session may not read.
    pub(crate) left_out: u64,
    /// Files that were not searched to their end because they have a NUL byte.
    pub(crate) binary: u64,
    max_lines: usize,
    max_bytes: usize,
}

impl Hits {
    pub(crate) const fn new(mode: Mode, max_lines: usize, max_bytes: usize) -> Self {
        Self {
            mode,
            lines: Vec::new(),
            bytes: 0,
            matches: 0,
            files: 0,
            left_out: 0,
            binary: 0,
            max_lines,
            max_bytes,
        }
    }

    /// Whether a limit is reached.
    pub(crate) const fn full(&self) -> bool {
        self.lines.len() >= self.max_lines || self.bytes >= self.max_bytes
    }

    fn line(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push(line);
    }

    /// Ends a file that had `matches` hits.
    pub(crate) fn end_file(&mut self, path: &str, matches: u64) {
        if matches == 0 {
            return;
        }
        self.files += 1;
        self.matches += matches;
        match self.mode {
            Mode::Content => {}
            Mode::Files => self.line(path.to_owned()),
            Mode::Count => self.line(format!("{path}:{matches}")),
        }
    }
}

/// Collects the hits of one file.
pub(crate) struct FileSink<'a> {
    pub(crate) hits: &'a mut Hits,
    pub(crate) path: &'a str,
    pub(crate) regex: &'a RegexMatcher,
    pub(crate) matches: u64,
    pub(crate) stop: &'a dyn Fn() -> bool,
    pub(crate) may_read: &'a dyn Fn() -> bool,
    /// The verdict on the file, asked for once, at the first hit.
    pub(crate) judged: Option<bool>,
}

impl FileSink<'_> {
    fn is_hidden(&mut self) -> bool {
        if self.judged.is_none() {
            let allowed = (self.may_read)();
            self.hits.left_out += u64::from(!allowed);
            self.judged = Some(allowed);
        }
        self.judged != Some(true)
    }

    fn show(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        // Where the match begins in the text, which can be longer than the bytes.
        let found = self.regex.find(bytes).ok().flatten();
        let before = found.and_then(|found| bytes.get(..found.start()));
        let at = before.map_or(0, |before| String::from_utf8_lossy(before).len());
        let text = String::from_utf8_lossy(bytes);
        let line = excerpt(text.trim_end_matches(['\n', '\r']), at, LINE_CHARS).into_owned();
        self.hits.line(format!(
            "{}{mark}{}{mark}{line}",
            self.path,
            number.unwrap_or_default()
        ));
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.is_hidden() {
            return Ok(false);
        }
        self.matches += 1;
        match self.hits.mode {
            Mode::Content => {
                self.show(hit.line_number(), ':', hit.bytes());
                Ok(!self.hits.full() && !(self.stop)())
            }
            Mode::Files => Ok(false),
            Mode::Count => Ok(!(self.stop)()),
        }
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        // Context lines are reported before their hit.
        if self.is_hidden() {
            return Ok(false);
        }
        if self.hits.mode == Mode::Content {
            self.show(line.line_number(), '-', line.bytes());
        }
        Ok(!self.hits.full())
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.hits.binary += u64::from(end.binary_byte_offset().is_some());
        Ok(())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.hits.mode == Mode::Content {
            self.hits.line("--".to_owned());
        }
        Ok(true)
    }
}
