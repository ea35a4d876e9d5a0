//! Computes the files after a patch from the files before it.

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
    /// The session's knowledge of it.
    pub(crate) seen: Seen,
}

/// The change of a file, for the list in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Created, or replaced as a whole.
    Added,
    /// Modified.
    Modified,
    /// Deleted.
    Deleted,
}

/// The effect of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    /// The files that differ afterwards, in the order of writing. Without content the file is deleted.
    pub(crate) files: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// The old paths of moved files.
    pub(crate) moved_from: BTreeMap<PathBuf, PathBuf>,
    /// The changes to list in the result.
    pub(crate) listed: Vec<(Mark, PathBuf)>,
}

/// A patch that cannot be applied to these files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no such file.
    Missing(PathBuf),
    /// The patch would replace a file that the session has not read, or that changed since.
    Unknown { path: PathBuf, seen: Seen },
    /// It is not text.
    Binary(PathBuf),
    /// A hunk fits nowhere in it.
    Misfit { path: PathBuf, misfit: Misfit },
    /// The patch would change nothing.
    Same,
}

/// A file while the patch is applied.
struct Now<'a> {
    content: Option<std::borrow::Cow<'a, [u8]>>,
    /// Whether the patch may replace it: the patch wrote it, or the session knows it.
    seen: Seen,
}

/// Locates every hunk, all of them or none. Later sections see the effects of earlier ones.
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

    /// Refuses if the patch would replace a file that the session does not know.
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
