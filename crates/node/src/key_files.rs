//! Detects changes of key files.

use agentd_settings::Settings;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Identifies one version of a file: inode, length, modification time.
type Mark = (u64, u64, i64, i64);

/// A snapshot of all files. Omits missing and empty files: someone may be about to write the key.
pub(crate) type Look = BTreeMap<PathBuf, Mark>;

/// Takes a snapshot of all providers' key files.
pub(crate) fn look(settings: &Settings) -> Look {
    let credentials = settings.providers.values();
    let files =
        credentials.flat_map(|provider| provider.credentials.iter().filter_map(|key| key.file.as_ref()));
    files
        .filter_map(|file| Some((PathBuf::from(file), mark(file).ok()?)))
        .collect()
}

fn mark(file: &str) -> io::Result<Mark> {
    let found = std::fs::metadata(file)?;
    if found.len() == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

/// The snapshots that matter.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The files whose keys are in use.
    used: Look,
    last: Look,
}

impl Looks {
    /// Starts with the files from which the keys in use were read.
    pub(crate) fn new(used: Look) -> Self {
        Self {
            last: used.clone(),
            used,
        }
    }

    /// Adds a snapshot. True if a file has new content and two snapshots in a row agree, so that its writer has finished.
    pub(crate) fn settled(&mut self, now: Look) -> bool {
        let rests = now == self.last;
        self.last = now;
        let other = |(file, mark): (&PathBuf, &Mark)| self.used.get(file) != Some(mark);
        if !rests || !self.last.iter().any(other) {
            return false;
        }
        self.used.clone_from(&self.last);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(mark: Mark) -> Look {
        Look::from([(PathBuf::from("/key"), mark)])
    }

    #[test]
    fn a_new_key_is_used_once_and_only_after_the_file_settled() {
        let (a, b, c) = (one((1, 9, 0, 0)), one((1, 4, 1, 0)), one((1, 9, 1, 5)));
        let mut looks = Looks::new(a.clone());
        assert!(!looks.settled(a));
        assert!(!looks.settled(b), "it may still be written");
        assert!(!looks.settled(c.clone()));
        assert!(looks.settled(c.clone()));
        assert!(!looks.settled(c.clone()), "it is in use");
        assert!(
            !looks.settled(Look::new()) && !looks.settled(Look::new()),
            "a missing file is no key"
        );
        assert!(
            !looks.settled(c.clone()) && !looks.settled(c),
            "it is back as it was"
        );
    }

    #[test]
    fn a_missing_or_empty_file_has_no_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let path = file.to_str().unwrap();
        assert!(mark(path).is_err());
        std::fs::write(&file, "").unwrap();
        assert!(mark(path).is_err());
        std::fs::write(&file, "sk").unwrap();
        assert_eq!(mark(path).unwrap().1, 2);
    }
}
