//! The files of a chain: `audit.jsonl`, and before it the full ones: `audit-000001.jsonl`, compressed as
//! `audit-000001.jsonl.gz`. Earlier versions used names such as `audit.jsonl.1`, with the newest first.

use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The file that agentd writes to.
pub const CURRENT: &str = "audit.jsonl";

/// A full file, which is no longer written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Its number, from 1.
    pub number: u64,
    /// Its path.
    pub path: PathBuf,
}

impl Sealed {
    /// The next file in a directory, before its compression.
    #[must_use]
    pub fn next(dir: &Path, before: &[Self]) -> Self {
        let number = before.last().map_or(1, |last| last.number + 1);
        Self {
            number,
            path: dir.join(format!("audit-{number:06}.jsonl")),
        }
    }

    /// Whether it is compressed.
    #[must_use]
    pub fn compressed(&self) -> bool {
        is_compressed(&self.path)
    }
}

/// The full files of a directory, oldest first. During compression, the uncompressed file is the one listed.
///
/// # Errors
/// The directory cannot be read.
pub fn sealed(dir: &Path) -> io::Result<Vec<Sealed>> {
    let number = |name: &str| {
        let digits = name.strip_prefix("audit-")?;
        let digits = digits.strip_suffix(".gz").unwrap_or(digits);
        digits.strip_suffix(".jsonl")?.parse().ok()
    };
    let mut found: Vec<Sealed> = names(dir)?
        .into_iter()
        .filter_map(|(name, path)| {
            Some(Sealed {
                number: number(&name)?,
                path,
            })
        })
        .collect();
    found.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
    found.dedup_by_key(|file| file.number);
    Ok(found)
}

/// All files of a chain in a directory, oldest first.
///
/// # Errors
/// The directory cannot be read.
pub fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let number = |name: &str| name.strip_prefix(CURRENT)?.strip_prefix('.')?.parse::<u64>().ok();
    let mut older: Vec<(u64, PathBuf)> = names(dir)?
        .into_iter()
        .filter_map(|(name, path)| Some((number(&name)?, path)))
        .collect();
    older.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    let current = Some(dir.join(CURRENT)).filter(|path| path.exists());
    let sealed = sealed(dir)?.into_iter().map(|file| file.path);
    Ok(older
        .into_iter()
        .map(|(_, path)| path)
        .chain(sealed)
        .chain(current)
        .collect())
}

/// Opens a file of a chain for reading its lines, compressed or not.
///
/// # Errors
/// The file cannot be opened.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    Ok(if is_compressed(path) {
        Box::new(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    })
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

fn names(dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let name = |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, entry.path()));
    let entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter_map(name).collect())
}
