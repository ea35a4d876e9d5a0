//! `node.log`: the end of the daemon's log file.

use crate::api::{Api, READ};
use crate::backup::blocking;
use agentd_protocol::{Fault, LogParams, LogTail};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Lines unless the caller asks for another number.
const LINES: u32 = 200;
/// The maximum number of lines.
const MAX_LINES: u32 = 2_000;
/// The maximum size of an answer in bytes.
const BYTES: u64 = 1 << 20;

impl Api {
    pub(crate) async fn node_log(&self, params: LogParams) -> Result<LogTail, Fault> {
        let lines = params.lines.unwrap_or(LINES);
        if !(1..=MAX_LINES).contains(&lines) {
            let why = format!("lines: {lines} is not from 1 to {MAX_LINES}");
            return Err(Fault::invalid("bad_lines", why));
        }
        let path = Path::new(&self.parts.facts.data_dir).join("logs/agentd.log");
        let slow = || Fault::timeout("log_slow", "the disk of the log file does not respond");
        let permit = Arc::clone(&self.auditing).acquire_owned();
        let permit = tokio::time::timeout(READ, permit).await.map_err(|_| slow())?;
        let read = blocking(move || {
            let _permit = permit.map_err(io::Error::other)?;
            end_of(&path)
        });
        let read = tokio::time::timeout(READ, read).await.map_err(|_| slow())?;
        let end = read.map_err(|error| Fault::internal("log_unreadable", error.to_string()))?;
        Ok(LogTail {
            lines: tail(&end, usize::try_from(lines).unwrap_or(usize::MAX)),
        })
    }
}

/// The last bytes of a file from the beginning of a line on; of a missing file, nothing.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = match std::fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    let from = file.metadata()?.len().saturating_sub(BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(BYTES).read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end).into_owned();
    // The first line is cut, unless the file begins there.
    let whole = if from == 0 {
        Some(end.as_str())
    } else {
        end.split_once('\n').map(|(_, rest)| rest)
    };
    Ok(whole.unwrap_or_default().to_owned())
}

fn tail(text: &str, lines: usize) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    all.iter().skip(from).map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentd.log");
        assert_eq!(end_of(&path).unwrap(), "");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let short = end_of(&path).unwrap();
        assert_eq!(tail(&short, 2), ["two", "three"]);
        assert_eq!(tail(&short, 9), ["one", "two", "three"]);
        let line = "x".repeat(999);
        let long: String = (0..2_000).map(|_| format!("{line}\n")).collect();
        std::fs::write(&path, long).unwrap();
        let end = tail(&end_of(&path).unwrap(), usize::MAX);
        assert_eq!(end.len(), 1_048, "the lines that fit into a mebibyte");
        assert!(end.iter().all(|each| *each == line));
    }
}
