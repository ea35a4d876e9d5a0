//! A wall clock that a test moves.

use std::path::{Path, PathBuf};

/// The path of libfaketime, if it is installed.
fn faketime() -> Option<PathBuf> {
    let dirs = std::fs::read_dir("/usr/lib")
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let mut dirs: Vec<PathBuf> = dirs.collect();
    dirs.push(PathBuf::from("/usr/lib"));
    let file = |dir: PathBuf| dir.join("faketime/libfaketimeMT.so.1");
    dirs.into_iter().map(file).find(|file| file.exists())
}

/// The environment of a daemon whose wall clock is shifted by what the file says: `+0`, `+86400`. `None`: libfaketime is not
/// installed, which is reported.
#[must_use]
pub fn clock_of(test: &str, file: &Path) -> Option<Vec<(String, String)>> {
    let Some(library) = faketime() else {
        crate::skipped(test, "libfaketime is not installed; install faketime");
        return None;
    };
    let env = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    Some(env.map(|(name, value)| (name.to_owned(), value)).to_vec())
}
