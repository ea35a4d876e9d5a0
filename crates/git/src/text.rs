//! Reads the small files of a repository that commands can write.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The text of a regular file, empty if it does not exist; `None` for anything else, or for a file of more than `most` bytes.
/// Never waits for a pipe, and follows no link.
#[must_use]
pub fn text(path: &Path, most: u64) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Some(String::new()),
        Err(_) => return None,
    };
    if FileType::from_raw_mode(fstat(&file).ok()?.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(most + 1).read_to_end(&mut bytes).ok()?;
    if u64::try_from(read).ok()? > most {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        assert_eq!(text(&file, 3).as_deref(), Some(""));
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(text(&file, 3).as_deref(), Some("abc"));
        assert_eq!(text(&file, 2), None);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(text(&link, 3), None);
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(text(&pipe, 3), None, "reading a pipe would wait");
    }
}
