//! Parses the text of a patch.

use super::{Hunk, Line, MAX_BYTES, MAX_FILES, MAX_HUNKS, Malformed, Patch, Section};
use std::path::{Component, Path, PathBuf};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
/// Lines that git puts before its hunks. Patches cannot change links, submodules or modes.
const GIT_HEADERS: [&str; 9] = [
    "diff --git ",
    "index ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "rename from ",
    "rename to ",
];

/// Parses a patch. Its paths come out normalized and relative.
pub(crate) fn parse(text: &str) -> Result<Patch, Malformed> {
    if text.len() > MAX_BYTES {
        return Err(too_much("bytes", text.len(), MAX_BYTES));
    }
    let mut reader = Reader::new(text)?;
    let mut sections = Vec::new();
    while reader.skip_blank() {
        sections.push(reader.section()?);
        if sections.len() > MAX_FILES {
            return Err(too_much("files", sections.len(), MAX_FILES));
        }
        if reader.hunks > MAX_HUNKS {
            return Err(too_much("hunks", reader.hunks, MAX_HUNKS));
        }
    }
    if sections.is_empty() {
        return Err(reader.wrong("the patch is empty: there is nothing between its first and last line"));
    }
    Ok(Patch { sections })
}

const fn too_much(what: &'static str, found: usize, max: usize) -> Malformed {
    Malformed::TooMuch { what, found, max }
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// The index of the next line.
    at: usize,
    /// Lines of the patch before the first one in `lines`.
    before: usize,
    hunks: usize,
}

impl<'a> Reader<'a> {
    /// The lines between the marks, without the wrappers that models put around a patch.
    fn new(text: &'a str) -> Result<Self, Malformed> {
        let all: Vec<&str> = text.lines().collect();
        let full = |line: &&str| !line.trim().is_empty();
        let first = all.iter().position(&full).unwrap_or_default();
        let end = all.iter().rposition(full).map_or(0, |at| at + 1);
        let (first, end) = match (all.get(first), all.get(end.saturating_sub(1))) {
            (Some(head), Some(tail)) if wraps(head.trim(), tail.trim()) && end > first + 1 => {
                (first + 1, end - 1)
            }
            _ => (first, end),
        };
        let wrong = |at: usize, why: String| Err(Malformed::Line { at, why });
        if all.get(first).map(|line| line.trim()) != Some(BEGIN) {
            return wrong(first + 1, format!("the first line must be `{BEGIN}`"));
        }
        if end < first + 2 || all.get(end - 1).map(|line| line.trim()) != Some(END) {
            return wrong(end, format!("the last line must be `{END}`"));
        }
        Ok(Self {
            lines: all.get(first + 1..end - 1).unwrap_or_default().to_vec(),
            at: 0,
            before: first + 1,
            hunks: 0,
        })
    }

    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// The line number of the next line in the patch, from 1.
    fn number(&self) -> usize {
        self.before + self.at + 1
    }

    fn wrong(&self, why: impl Into<String>) -> Malformed {
        Malformed::Line {
            at: self.number(),
            why: why.into(),
        }
    }

    /// Skips blank lines. Returns whether another line follows.
    fn skip_blank(&mut self) -> bool {
        while self.line().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        self.line().is_some()
    }

    fn section(&mut self) -> Result<Section, Malformed> {
        let line = self.line().unwrap_or_default().trim();
        if let Some(path) = line.strip_prefix("*** Add File:") {
            let path = self.path(path)?;
            self.at += 1;
            return Ok(Section::Add {
                path,
                content: self.added(),
            });
        }
        if let Some(path) = line.strip_prefix("*** Delete File:") {
            let path = self.path(path)?;
            self.at += 1;
            return Ok(Section::Delete { path });
        }
        if let Some(path) = line.strip_prefix("*** Update File:") {
            let path = self.path(path)?;
            self.at += 1;
            return self.update(path);
        }
        Err(self.wrong(no_header(line)))
    }

    fn added(&mut self) -> String {
        let mut content = String::new();
        while let Some(line) = self.line().and_then(|line| line.strip_prefix('+')) {
            content.push_str(line);
            content.push('\n');
            self.at += 1;
        }
        content
    }

    fn update(&mut self, path: PathBuf) -> Result<Section, Malformed> {
        let mut to = None;
        if let Some(other) = self
            .line()
            .and_then(|line| line.trim().strip_prefix("*** Move to:"))
        {
            to = Some(self.path(other)?);
            self.at += 1;
        }
        let mut hunks = Vec::new();
        while self.skip_blank() && !self.line().is_some_and(|line| line.starts_with("***")) {
            // The header of the next section may be indented if no hunk is open.
            if self.line().is_some_and(|line| is_header(line.trim())) {
                break;
            }
            hunks.push(self.hunk()?);
            self.hunks += 1;
        }
        if hunks.is_empty() && to.is_none() {
            return Err(self.wrong(format!("the update of {} has no hunk", path.display())));
        }
        Ok(Section::Update { path, to, hunks })
    }

    fn hunk(&mut self) -> Result<Hunk, Malformed> {
        let at = self.number();
        let mut contexts = Vec::new();
        while let Some(rest) = self.line().and_then(|line| line.strip_prefix("@@")) {
            contexts.extend(context(rest));
            self.at += 1;
        }
        let mut lines = Vec::new();
        let mut at_end = false;
        while let Some(line) = self.line() {
            if line.trim_end() == END_OF_FILE {
                at_end = true;
                self.at += 1;
                break;
            }
            if line.starts_with("@@") || line.starts_with("***") {
                break;
            }
            lines.push(self.content(line)?);
            self.at += 1;
        }
        if lines.is_empty() {
            return Err(self.wrong(format!("the hunk that begins in line {at} is empty")));
        }
        Ok(Hunk {
            at,
            contexts,
            lines,
            at_end,
        })
    }

    fn content(&self, line: &str) -> Result<Line, Malformed> {
        let mut chars = line.chars();
        let first = chars.next();
        let rest = chars.as_str().to_owned();
        match first {
            None => Ok(Line::Keep(String::new())),
            Some(' ') => Ok(Line::Keep(rest)),
            Some('-') => Ok(Line::Remove(rest)),
            Some('+') => Ok(Line::Add(rest)),
            Some(_) if GIT_HEADERS.iter().any(|header| line.starts_with(header)) => {
                Err(self.wrong(no_header(line)))
            }
            Some(_) => Err(self.wrong(format!(
                "`{}` must begin with a space (stays), `-` (goes) or `+` (comes)",
                short(line)
            ))),
        }
    }

    /// A path of the patch: relative, normalized, and inside the working directory.
    fn path(&self, given: &str) -> Result<PathBuf, Malformed> {
        let given = given.trim();
        if given.is_empty() {
            return Err(self.wrong("the path is missing"));
        }
        if given.chars().any(char::is_control) {
            return Err(self.wrong("the path contains a control character"));
        }
        let outside = || Malformed::Outside { path: short(given) };
        let mut clean = PathBuf::new();
        for component in Path::new(given).components() {
            match component {
                Component::Normal(name) => clean.push(name),
                Component::CurDir => {}
                Component::ParentDir if clean.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        if clean.as_os_str().is_empty() || given.ends_with('/') {
            return Err(self.wrong(format!("`{}` is not the path of a file", short(given))));
        }
        Ok(clean)
    }
}

/// Whether these are the first and the last line of a here-document or code block around a patch.
fn wraps(head: &str, tail: &str) -> bool {
    let here = head.strip_prefix("apply_patch").unwrap_or(head).trim_start();
    let word = here
        .strip_prefix("<<")
        .map(|word| word.trim_start_matches('-').trim_matches(['\'', '"', ' ']));
    word.is_some_and(|word| !word.is_empty() && word == tail) || (head.starts_with("```") && tail == "```")
}

fn is_header(line: &str) -> bool {
    ["*** Add File:", "*** Delete File:", "*** Update File:"]
        .iter()
        .any(|header| line.starts_with(header))
}

/// The text after `@@`: a line of the file. Skips the line numbers of a unified diff.
fn context(rest: &str) -> Option<String> {
    let rest = rest.trim();
    let text = match rest
        .strip_prefix('-')
        .and_then(|numbers| numbers.split_once("@@"))
    {
        Some((numbers, text)) if numbers.chars().all(|c| c.is_ascii_digit() || ", +".contains(c)) => {
            text.trim()
        }
        _ => rest.strip_suffix("@@").unwrap_or(rest).trim(),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn no_header(line: &str) -> String {
    if GIT_HEADERS.iter().any(|header| line.starts_with(header)) {
        return format!(
            "`{}` is git's: symbolic links, submodules and modes cannot be patched",
            short(line)
        );
    }
    format!(
        "`{}` is none of `*** Add File: PATH`, `*** Update File: PATH`, `*** Delete File: PATH`",
        short(line)
    )
}

fn short(line: &str) -> String {
    let mut short: String = line.chars().take(100).collect();
    if short.len() < line.len() {
        short.push_str("...");
    }
    short
}
