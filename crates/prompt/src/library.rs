//! The Markdown files in the operator's directory and in the project's `.agentd`, read only beneath these directories.

use crate::places::{Origin, PROJECT_DIRECTORY, Places, ReadJudge};
use agentd_sandbox::{Beneath, EntryKind, SandboxError};
use std::path::{Path, PathBuf};

/// The most directory entries that are examined.
const MAX_ENTRIES: usize = 256;
/// The longest name.
const MAX_NAME: usize = 64;

/// One kind of file (`agents`, `skills`, `commands`) in both directories; the operator's directory comes first.
#[derive(Debug)]
pub(crate) struct Library {
    shelves: Vec<Shelf>,
    judge: ReadJudge,
}

#[derive(Debug)]
struct Shelf {
    origin: Origin,
    beneath: Beneath,
    /// The subdirectory of this kind.
    inner: PathBuf,
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) text: String,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

/// Whether this is a plain name, not a path.
pub(crate) fn named(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}

impl Library {
    pub(crate) fn open(places: &Places, workdir: &Path, shelf: &str) -> Self {
        let operator = places.operator.as_deref();
        let operator = operator.map(|path| (Origin::Operator, path, PathBuf::from(shelf)));
        let project = places
            .project
            .then(|| (Origin::Project, workdir, Path::new(PROJECT_DIRECTORY).join(shelf)));
        let shelves = [operator, project].into_iter().flatten();
        Self {
            judge: places.judge.clone(),
            shelves: shelves
                .filter_map(|(origin, root, inner)| {
                    let beneath = Beneath::open(root).ok()?;
                    Some(Shelf {
                        origin,
                        beneath,
                        inner,
                    })
                })
                .collect(),
        }
    }

    /// The first file with this path. An unreadable file still hides those after it.
    pub(crate) fn find(&self, path: &Path, max_bytes: u64) -> Result<Option<Found>, String> {
        for shelf in &self.shelves {
            match shelf.read(path, max_bytes, &self.judge) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The names in both directories, sorted: of files with this extension, or of directories.
    pub(crate) fn names(&self, ending: Option<&str>) -> Vec<String> {
        let mut names: Vec<String> = self
            .shelves
            .iter()
            .flat_map(|shelf| shelf.names(ending))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

impl Shelf {
    fn read(&self, path: &Path, max_bytes: u64, judge: &ReadJudge) -> Result<Option<Found>, String> {
        let inner = self.inner.join(path);
        match self.beneath.read(&inner, max_bytes) {
            Ok((bytes, opened)) => {
                let path = self.beneath.path().join(&inner).display().to_string();
                let judged = judge.may(self.beneath.path(), &inner, &opened.real);
                judged.map_err(|why| format!("{path}: {why}"))?;
                Ok(Some(Found {
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                    origin: self.origin,
                    path,
                }))
            }
            Err(SandboxError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn names(&self, ending: Option<&str>) -> Vec<String> {
        let Ok((entries, _)) = self.beneath.list(&self.inner, MAX_ENTRIES) else {
            return Vec::new();
        };
        let name = |entry: agentd_sandbox::Entry| match (ending, entry.kind) {
            (Some(ending), EntryKind::File) => entry.name.strip_suffix(ending).map(str::to_owned),
            (None, EntryKind::Directory) => Some(entry.name),
            _ => None,
        };
        entries
            .into_iter()
            .filter_map(name)
            .filter(|name| named(name))
            .collect()
    }
}
