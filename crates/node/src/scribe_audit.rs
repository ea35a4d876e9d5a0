//! `audit.jsonl`: whole lines only, each sealed to the line before it, over crashes and rotation.

use crate::rotated::Rotated;
use agentd_audit::{Link, links_of, seal};
use agentd_fault_points as fault;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Bytes at the end of a file that are searched for its last line; no line comes near it.
const TAIL: u64 = 1 << 20;

/// The audit file.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    max_bytes: u64,
    files: u32,
    file: Rotated,
    link: Link,
    cursor: Option<u64>,
    /// A write failed: what the file has is looked up before the next.
    doubtful: bool,
}

impl Audit {
    /// Opens the file, cuts off a line that a crash left unfinished, and goes on after the last whole one.
    pub(crate) fn open(path: &Path, max_bytes: u64, files: u32) -> io::Result<Self> {
        mend(path)?;
        let (link, cursor) = end_of(path)?;
        Ok(Self {
            path: path.to_owned(),
            max_bytes,
            files,
            file: Rotated::open(path, max_bytes, files)?,
            link,
            cursor,
            doubtful: false,
        })
    }

    /// The cursor of the last event that is in it.
    pub(crate) const fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Adds a line. After an error it is not in the file, nor is any part of it once the next is written.
    pub(crate) fn write(&mut self, line: &Value) -> io::Result<()> {
        if self.doubtful {
            *self = Self::open(&self.path, self.max_bytes, self.files)?;
        }
        let text = line.to_string();
        let safe = agentd_text::redact(&text);
        let sealed = seal(&safe, self.link).or_else(|| seal(&json!({ "text": safe }).to_string(), self.link));
        let (mut sealed, link) = sealed.ok_or_else(|| io::Error::other("a line that cannot be sealed"))?;
        sealed.push('\n');
        self.doubtful = true;
        fault::point(fault::AUDIT_WRITE).map_err(io::Error::other)?;
        self.file.write_all(sealed.as_bytes())?;
        self.file.flush()?;
        self.doubtful = false;
        self.link = link;
        self.cursor = line.get("cursor").and_then(Value::as_u64).or(self.cursor);
        Ok(())
    }
}

/// The cursor of the last event that is in the file at `path`, or in the one that was rotated before it.
pub(crate) fn last_cursor(path: &Path) -> io::Result<Option<u64>> {
    Ok(end_of(path)?.1)
}

fn end_of(path: &Path) -> io::Result<(Link, Option<u64>)> {
    let mut older = path.as_os_str().to_owned();
    older.push(".1");
    let last = match last_line(path)? {
        Some(last) => Some(last),
        // It was just rotated.
        None => last_line(Path::new(&older))?,
    };
    Ok(last.unwrap_or((Link::START, None)))
}

/// Cuts off what stands after the last line end.
fn mend(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(TAIL);
        file.seek(SeekFrom::Start(start))?;
        let mut part = Vec::new();
        (&mut file).take(end - start).read_to_end(&mut part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            end = start + u64::try_from(at).unwrap_or_default() + 1;
            break;
        }
        end = start;
    }
    if end < length {
        tracing::warn!(path = %path.display(), bytes = length - end, "the unfinished last line of the audit file is cut off; it is written again");
        file.set_len(end)?;
    }
    Ok(())
}

/// The hash of the last sealed line, and the cursor of the last one that has any.
fn last_line(path: &Path) -> io::Result<Option<(Link, Option<u64>)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let lines = || tail.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let link = |line| Some(links_of(str::from_utf8(line).ok()?)?.1);
    let cursor = |line| {
        serde_json::from_slice::<Value>(line)
            .ok()?
            .get("cursor")?
            .as_u64()
    };
    let (link, cursor) = (lines().find_map(link), lines().find_map(cursor));
    Ok((link.is_some() || cursor.is_some()).then(|| (link.unwrap_or(Link::START), cursor)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_audit::Chain;
    use std::fs;

    fn line(cursor: u64) -> Value {
        json!({"at": "2026-11-20T09:00:00.123Z", "who": "user:ana", "what": {"title": "Bash cargo test"}, "cursor": cursor})
    }

    fn lines(files: &[PathBuf]) -> u64 {
        let mut chain = Chain::default();
        for file in files {
            chain.read(io::BufReader::new(File::open(file).unwrap())).unwrap();
        }
        chain.lines()
    }

    #[test]
    fn the_chain_goes_on_after_a_restart_and_over_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        for cursor in 1..=12 {
            let mut audit = Audit::open(&path, 1_000, 5).unwrap();
            assert_eq!(audit.cursor(), (cursor > 1).then(|| cursor - 1));
            audit.write(&line(cursor)).unwrap();
        }
        let numbered = |n: u32| dir.path().join(format!("audit.jsonl.{n}"));
        let mut files: Vec<_> = (1..5).rev().map(numbered).filter(|file| file.exists()).collect();
        assert!(!files.is_empty(), "nothing was rotated");
        files.push(path);
        assert_eq!(lines(&files), 12);
    }

    #[test]
    fn a_crash_in_the_middle_of_a_line_leaves_the_chain_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::open(&path, 1_000_000, 5).unwrap();
        audit.write(&line(1)).unwrap();
        let one = fs::read(&path).unwrap().len();
        audit.write(&line(2)).unwrap();
        let whole = fs::read(&path).unwrap();
        for end in one..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let mut audit = Audit::open(&path, 1_000_000, 5).unwrap();
            assert_eq!(audit.cursor(), Some(1));
            audit.write(&line(2)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "cut at {end}");
        }
    }

    #[test]
    fn after_a_failed_write_the_file_is_mended_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::open(&path, 1_000_000, 5).unwrap();
        audit.write(&line(1)).unwrap();
        audit.doubtful = true;
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"at\":\"20").unwrap();
        audit.write(&line(2)).unwrap();
        assert_eq!((lines(&[path]), audit.cursor()), (2, Some(2)));
    }

    #[test]
    fn a_just_rotated_file_goes_on_where_the_older_one_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        Audit::open(&path, 1_000, 5).unwrap().write(&line(7)).unwrap();
        let older = dir.path().join("audit.jsonl.1");
        fs::rename(&path, &older).unwrap();
        let mut audit = Audit::open(&path, 1_000, 5).unwrap();
        assert_eq!(audit.cursor(), Some(7));
        audit.write(&line(8)).unwrap();
        assert_eq!(lines(&[older, path]), 2);
    }
}
