//! From a patch and the files as they are to the files as they become.

use super::locate::{Misfit, Places, update};
use super::{Patch, Section};
use crate::seen::Seen;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file before the patch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Its content.
    pub(crate) content: &'a [u8],
    /// What the session knows of it.
    pub(crate) seen: Seen,
}

/// What became of a file, as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is new, or new as a whole.
    Added,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// What a patch comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// The files that differ afterwards, in the order in which they are written. Absent content: the file goes.
    pub(crate) files: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Where a file comes from that was moved.
    pub(crate) moved_from: BTreeMap<PathBuf, PathBuf>,
    /// What is said of it.
    pub(crate) listed: Vec<(Mark, PathBuf)>,
}

/// A patch that cannot be applied to these files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no such file.
    Missing(PathBuf),
    /// It would be replaced, and was not read or changed since.
    Unknown { path: PathBuf, seen: Seen },
    /// It is no text.
    Binary(PathBuf),
    /// A hunk has no place in it.
    Misfit { path: PathBuf, misfit: Misfit },
    /// Nothing would be another.
    Same,
}

/// A file in the course of the patch.
struct Now<'a> {
    content: Option<std::borrow::Cow<'a, [u8]>>,
    /// Whether the patch may replace it: it wrote it itself, or the session knows it.
    seen: Seen,
}

/// Every hunk in its place, all at once or nothing. Later parts see what earlier ones made.
pub(crate) fn plan(patch: &Patch, files: &BTreeMap<PathBuf, Option<Known<'_>>>) -> Result<Plan, Refused> {
    let mut course = Course::new(files);
    for section in &patch.sections {
        course.take(section)?;
    }
    let mut plan = Plan {
        moved_from: course.moved_from,
        listed: course.listed,
        files: Vec::new(),
    };
    for path in course.touched {
        let before = files.get(&path).copied().flatten().map(|known| known.content);
        let after = course.now.remove(&path).and_then(|now| now.content);
        if before != after.as_deref() {
            plan.files.push((path, after.map(std::borrow::Cow::into_owned)));
        }
    }
    if plan.files.is_empty() {
        return Err(Refused::Same);
    }
    Ok(plan)
}

struct Course<'a> {
    now: BTreeMap<PathBuf, Now<'a>>,
    touched: Vec<PathBuf>,
    moved_from: BTreeMap<PathBuf, PathBuf>,
    listed: Vec<(Mark, PathBuf)>,
}

impl<'a> Course<'a> {
    fn new(files: &BTreeMap<PathBuf, Option<Known<'a>>>) -> Self {
        let now = |known: &Option<Known<'a>>| Now {
            content: known.map(|known| known.content.into()),
            seen: known.map_or(Seen::Same, |known| known.seen),
        };
        Self {
            now: files
                .iter()
                .map(|(path, known)| (path.clone(), now(known)))
                .collect(),
            touched: Vec::new(),
            moved_from: BTreeMap::new(),
            listed: Vec::new(),
        }
    }

    fn take(&mut self, section: &Section) -> Result<(), Refused> {
        match section {
            Section::Add { path, content } => {
                self.replaceable(path)?;
                self.put(path, Some(content.as_bytes().to_vec()), Mark::Added);
            }
            Section::Delete { path } => {
                self.content(path)?;
                self.put(path, None, Mark::Deleted);
            }
            Section::Update { path, to, hunks } => {
                let (content, seen) = self.content(path)?;
                if !hunks.is_empty() && content.contains(&0) {
                    return Err(Refused::Binary(path.clone()));
                }
                let places = if seen == Seen::Same {
                    Places::First
                } else {
                    Places::Only
                };
                let content = if hunks.is_empty() {
                    content.to_vec()
                } else {
                    update(content, hunks, places).map_err(|misfit| Refused::Misfit {
                        path: path.clone(),
                        misfit,
                    })?
                };
                match to.as_ref().filter(|to| *to != path) {
                    None => self.put(path, Some(content), Mark::Modified),
                    Some(to) => {
                        self.replaceable(to)?;
                        self.put(to, Some(content), Mark::Modified);
                        self.put_quietly(path, None);
                        self.moved_from.insert(to.clone(), path.clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn content(&self, path: &Path) -> Result<(&[u8], Seen), Refused> {
        let now = self.now.get(path);
        now.and_then(|now| Some((now.content.as_deref()?, now.seen)))
            .ok_or_else(|| Refused::Missing(path.to_owned()))
    }

    /// Whether a file may be put there.
    fn replaceable(&self, path: &Path) -> Result<(), Refused> {
        match self.now.get(path) {
            Some(now) if now.content.is_some() && now.seen != Seen::Same => Err(Refused::Unknown {
                path: path.to_owned(),
                seen: now.seen,
            }),
            _ => Ok(()),
        }
    }

    fn put(&mut self, path: &Path, content: Option<Vec<u8>>, mark: Mark) {
        self.put_quietly(path, content);
        self.listed.push((mark, path.to_owned()));
    }

    fn put_quietly(&mut self, path: &Path, content: Option<Vec<u8>>) {
        if !self.touched.iter().any(|touched| touched == path) {
            self.touched.push(path.to_owned());
        }
        let now = Now {
            content: content.map(Into::into),
            seen: Seen::Same,
        };
        self.now.insert(path.to_owned(), now);
    }
}
