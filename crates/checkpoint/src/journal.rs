//! The note of what is being applied to a directory: after a kill, it says what to revert.

use crate::error::{Error, at};
use crate::restore::Step;
use crate::take::hex;
use crate::trees::{Item, Kind};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A note, on disk until the work is done.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    text: String,
}

/// A path, the file before, and the file wanted.
type Entry = (Vec<u8>, Option<Item>, Option<Item>);

impl Journal {
    /// Writes the note: whole, or not at all.
    pub(crate) fn begin(repository: &Path, steps: &[Step]) -> Result<Self, Error> {
        let path = repository.join("journal");
        let mut text = String::new();
        for step in steps {
            let now = step.now.as_ref().map(|(item, _)| item);
            let _ = writeln!(
                text,
                "{} {} {}",
                hex(&step.path),
                word(now),
                word(step.wanted.as_ref())
            );
        }
        let new = path.with_extension("new");
        let mut file = File::create(&new).map_err(at(&new))?;
        file.write_all(text.as_bytes()).map_err(at(&new))?;
        file.sync_all().map_err(at(&new))?;
        fs::rename(&new, &path).map_err(at(&path))?;
        Ok(Self { path, text })
    }

    /// The note that a killed daemon left.
    pub(crate) fn left(repository: &Path) -> Option<Self> {
        let path = repository.join("journal");
        let text = fs::read_to_string(&path).ok()?;
        Some(Self { path, text })
    }

    /// The work is done, or reverted.
    pub(crate) fn end(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(at(&self.path))
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let read = |line: &str| {
            let mut words = line.split(' ');
            Some((unhex(words.next()?)?, item(words.next()?), item(words.next()?)))
        };
        self.text.lines().filter_map(read).collect()
    }
}

fn word(item: Option<&Item>) -> String {
    item.map_or_else(
        || "-".to_owned(),
        |item| format!("{}:{}", item.kind.mode(), item.content),
    )
}

fn item(word: &str) -> Option<Item> {
    let (mode, content) = word.split_once(':')?;
    Some(Item {
        kind: Kind::of_mode(mode)?,
        content: content.to_owned(),
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}
