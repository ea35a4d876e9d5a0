//! A log file that is rotated when it is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A log file that is renamed to `NAME.1`, `NAME.2`, … at its maximum size; the oldest is deleted. It never splits a
/// write, so a line is never split over two files.
#[derive(Debug)]
pub(crate) struct Rotated {
    path: PathBuf,
    max_bytes: u64,
    files: u32,
    file: File,
    size: u64,
}

impl Rotated {
    /// Opens `path` for appending. Keeps at most `files` files of about `max_bytes` bytes.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: &Path, max_bytes: u64, files: u32) -> io::Result<Self> {
        let file = append_to(path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path: path.to_path_buf(),
            max_bytes,
            files: files.max(1),
            file,
            size,
        })
    }

    fn numbered(&self, n: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        name.into()
    }

    fn rotate(&mut self) -> io::Result<()> {
        for n in (1..self.files.saturating_sub(1)).rev() {
            // A gap in the numbers is no reason to stop writing logs.
            let _ = fs::rename(self.numbered(n), self.numbered(n + 1));
        }
        if self.files > 1 {
            fs::rename(&self.path, self.numbered(1))?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.file = append_to(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for Rotated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.size > 0 && self.size.saturating_add(len) > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(bytes)?;
        self.size = self.size.saturating_add(len);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = Rotated::open(&path, 10, 3).unwrap();
        for line in ["one 456789", "two 456789", "three 6789", "four 56789"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "four 56789");
        assert_eq!(
            fs::read_to_string(dir.path().join("a.log.1")).unwrap(),
            "three 6789"
        );
        assert_eq!(
            fs::read_to_string(dir.path().join("a.log.2")).unwrap(),
            "two 456789"
        );
        assert!(!dir.path().join("a.log.3").exists());
    }

    #[test]
    fn a_file_of_exactly_the_limit_is_not_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = Rotated::open(&path, 10, 2).unwrap();
        log.write_all(b"12345").unwrap();
        log.write_all(b"12345").unwrap();
        assert!(!dir.path().join("a.log.1").exists());
        log.write_all(b"x").unwrap();
        assert!(dir.path().join("a.log.1").exists());
    }
}
