//! `audit.jsonl`: only complete lines, each chained to the line before it, also across crashes and rotation. A full file is
//! set aside and compressed. Files are deleted only if the settings say so, and the chain then has a line for each deletion.

use agentd_audit::{FILE_DELETED, Link, Sealed, links_of, open as open_to_read, seal, sealed};
use agentd_fault_points as fault;
use agentd_protocol::Principal;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Bytes at the end of a file that are searched for its last line; every line is far shorter.
const TAIL: u64 = 1 << 20;

/// The audit file.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    max_bytes: u64,
    /// Full files to keep; 0: all.
    keep: u32,
    file: File,
    size: u64,
    link: Link,
    cursor: Option<u64>,
    /// A write failed: before the next write, read back what the file contains.
    doubtful: bool,
    /// The thread that compresses full files. If the daemon ends meanwhile, the next start repeats the work.
    compressing: Option<JoinHandle<()>>,
}

impl Audit {
    /// Opens the file, cuts off a torn last line, and continues after the last complete one. A file of more than
    /// `max_bytes` is set aside; `keep` of those are kept, 0 means all.
    pub(crate) fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        mend(path)?;
        let (link, cursor) = end_of(path)?;
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        let mut audit = Self {
            path: path.to_owned(),
            max_bytes,
            keep,
            file,
            size,
            link,
            cursor,
            doubtful: false,
            compressing: None,
        };
        audit.compress()?;
        Ok(audit)
    }

    /// The cursor of the last event in the file.
    pub(crate) const fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Appends a line. After an error, the next write first removes any part of the failed line.
    pub(crate) fn write(&mut self, line: &Value) -> io::Result<()> {
        if self.doubtful {
            self.settle();
            *self = Self::open(&self.path, self.max_bytes, self.keep)?;
        }
        if self.size >= self.max_bytes {
            self.rotate(line.get("at"))?;
        }
        self.add(line)
    }

    fn add(&mut self, line: &Value) -> io::Result<()> {
        let text = line.to_string();
        let safe = agentd_text::redact(&text);
        let sealed = seal(&safe, self.link).or_else(|| seal(&json!({ "text": safe }).to_string(), self.link));
        let (mut sealed, link) = sealed.ok_or_else(|| io::Error::other("cannot seal an audit line"))?;
        sealed.push('\n');
        self.doubtful = true;
        fault::point(fault::AUDIT_WRITE).map_err(io::Error::other)?;
        self.file.write_all(sealed.as_bytes())?;
        self.doubtful = false;
        self.size = self
            .size
            .saturating_add(u64::try_from(sealed.len()).unwrap_or(u64::MAX));
        self.link = link;
        self.cursor = line.get("cursor").and_then(Value::as_u64).or(self.cursor);
        Ok(())
    }

    /// Sets the full file aside, starts a new one, and deletes the files beyond the number to keep.
    fn rotate(&mut self, at: Option<&Value>) -> io::Result<()> {
        self.doubtful = true;
        // Finished long ago: the compression started one file earlier.
        self.settle();
        self.file.sync_data()?;
        let before = sealed(self.dir())?;
        fs::rename(&self.path, Sealed::next(self.dir(), &before).path)?;
        self.file = append_to(&self.path)?;
        self.size = 0;
        self.doubtful = false;
        let kept = usize::try_from(self.keep).unwrap_or(usize::MAX);
        let over = if kept == 0 {
            0
        } else {
            (before.len() + 1).saturating_sub(kept)
        };
        for old in before.iter().take(over) {
            let head = last_line(&old.path)?.map_or(Link::START, |(link, _)| link);
            let name = old
                .path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            // Recorded before the deletion: a crash in between leaves an extra file, not a gap.
            self.add(&json!({
                "at": at, "who": Principal::agentd(), "event": FILE_DELETED, "why": "log.audit_files",
                "what": {"file": name, "head": head.to_string()},
            }))?;
            fs::remove_file(&old.path)?;
        }
        self.compress()
    }

    /// Waits for the compression to finish: two at once would write the same file.
    fn settle(&mut self) {
        if let Some(compressing) = self.compressing.take() {
            let _ = compressing.join();
        }
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Compresses full files on a thread of its own, so that writes do not wait.
    fn compress(&mut self) -> io::Result<()> {
        let mut plain = sealed(self.dir())?;
        plain.retain(|file| !file.compressed());
        if plain.is_empty() {
            return Ok(());
        }
        let thread = std::thread::Builder::new().name("audit-compress".to_owned());
        self.compressing = Some(thread.spawn(move || {
            for file in plain {
                if let Err(error) = compress(&file.path) {
                    tracing::warn!(
                        %error,
                        path = %file.path.display(),
                        "could not compress a full audit file; keeping it uncompressed"
                    );
                }
            }
        })?);
        Ok(())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Replaces a file with a compressed one. At every moment one of them is complete.
fn compress(path: &Path) -> io::Result<()> {
    let named = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (part, whole) = (named(".part"), named(".gz"));
    let mut options = OpenOptions::new();
    let out = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)?;
    let mut encoder = GzEncoder::new(BufWriter::new(out), Compression::default());
    let copied = match File::open(path) {
        Ok(mut from) => io::copy(&mut from, &mut encoder),
        // It was compressed or deleted in the meantime.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fs::remove_file(&part),
        Err(error) => Err(error),
    };
    copied?;
    let out = encoder
        .finish()?
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    out.sync_data()?;
    fs::rename(&part, &whole)?;
    fs::remove_file(path)
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The cursor of the last event in the file at `path`, or in the file set aside before it.
pub(crate) fn last_cursor(path: &Path) -> io::Result<Option<u64>> {
    Ok(end_of(path)?.1)
}

fn end_of(path: &Path) -> io::Result<(Link, Option<u64>)> {
    if let Some(last) = last_line(path)? {
        return Ok(last);
    }
    // The file was just set aside, or an earlier version rotated it.
    let mut older = path.as_os_str().to_owned();
    older.push(".1");
    let dir = path.parent().unwrap_or(Path::new("."));
    let newest = if dir.exists() { sealed(dir)?.pop() } else { None };
    let before = newest.map_or_else(|| PathBuf::from(older), |file| file.path);
    Ok(last_line(&before)?.unwrap_or((Link::START, None)))
}

/// Cuts off everything after the last line feed.
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
        tracing::warn!(
            path = %path.display(),
            bytes = length - end,
            "the last line of the audit file is incomplete; removing it and writing it again"
        );
        file.set_len(end)?;
    }
    Ok(())
}

/// The hash of the last chained line, and the last cursor.
fn last_line(path: &Path) -> io::Result<Option<(Link, Option<u64>)>> {
    let tail = match tail_of(path) {
        Ok(tail) => tail,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
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

/// The end of a file, or the whole content of a compressed one.
fn tail_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        open_to_read(path)?.read_to_end(&mut tail)?;
        return Ok(tail);
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    file.read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_audit::{Chain, files};

    fn line(cursor: u64) -> Value {
        json!({"at": "2026-11-20T09:00:00.123Z", "who": "user:ana", "what": {"title": "Bash cargo test"}, "cursor": cursor})
    }

    /// All files, after full ones have been compressed.
    fn settled(audit: Audit, dir: &Path) -> Vec<PathBuf> {
        drop(audit);
        files(dir).unwrap()
    }

    fn read(files: &[PathBuf]) -> Chain {
        let mut chain = Chain::default();
        for file in files {
            chain.read(open_to_read(file).unwrap()).unwrap();
        }
        chain
    }

    #[test]
    fn the_chain_continues_over_restart_and_rotation_and_no_file_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        for cursor in 1..=40 {
            let mut audit = Audit::open(&path, 1_000, 0).unwrap();
            assert_eq!(audit.cursor(), (cursor > 1).then(|| cursor - 1));
            audit.write(&line(cursor)).unwrap();
        }
        let files = settled(Audit::open(&path, 1_000, 0).unwrap(), dir.path());
        assert!(files.len() > 5, "nothing was set aside: {files:?}");
        let compressed = files
            .iter()
            .filter(|file| file.extension().is_some_and(|end| end == "gz"));
        assert_eq!(compressed.count(), files.len() - 1);
        let chain = read(&files);
        assert_eq!((chain.lines(), chain.is_whole()), (40, true));
    }

    #[test]
    fn a_file_that_the_settings_delete_leaves_a_line_in_the_chain() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::open(&path, 1_000, 2).unwrap();
        (1..=40).for_each(|cursor| audit.write(&line(cursor)).unwrap());
        let files = settled(audit, dir.path());
        assert_eq!(files.len(), 3, "two full ones and the present one: {files:?}");
        let chain = read(&files);
        assert!(!chain.is_whole() && chain.deletion_is_recorded());
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(FILE_DELETED) && text.contains("2026-11-20T09:00:00.123Z"),
            "{text}"
        );
        // The control: someone else removes a file.
        let chain = read(&files[1..]);
        assert!(!chain.is_whole() && !chain.deletion_is_recorded());
    }

    #[test]
    fn a_crash_in_the_middle_of_a_line_leaves_the_chain_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::open(&path, 1_000_000, 0).unwrap();
        audit.write(&line(1)).unwrap();
        let one = fs::read(&path).unwrap().len();
        audit.write(&line(2)).unwrap();
        let whole = fs::read(&path).unwrap();
        for end in one..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let mut audit = Audit::open(&path, 1_000_000, 0).unwrap();
            assert_eq!(audit.cursor(), Some(1));
            audit.write(&line(2)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "cut at {end}");
        }
    }

    #[test]
    fn after_a_failed_write_the_file_is_repaired_before_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let mut audit = Audit::open(&path, 1_000_000, 0).unwrap();
        audit.write(&line(1)).unwrap();
        audit.doubtful = true;
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"at\":\"20").unwrap();
        audit.write(&line(2)).unwrap();
        assert_eq!((read(&[path]).lines(), audit.cursor()), (2, Some(2)));
    }

    #[test]
    fn a_rotated_file_continues_the_chain_of_the_older_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        Audit::open(&path, 1_000, 0).unwrap().write(&line(7)).unwrap();
        let older = dir.path().join("audit.jsonl.1");
        fs::rename(&path, &older).unwrap();
        let mut audit = Audit::open(&path, 1_000, 0).unwrap();
        assert_eq!(audit.cursor(), Some(7));
        audit.write(&line(8)).unwrap();
        assert_eq!(read(&[older, path]).lines(), 2);
    }
}
