//! `session.diff`: compares stored contents with the current files. Reads files in a separate thread, a few at a time.

use crate::api::Api;
use crate::history::unknown_turn;
use crate::past::{Change, Past};
use crate::sight::{Caller, Seen};
use agentd_actor_kit::Read;
use agentd_file_work::FileWork;
use agentd_protocol::{DiffParams, Diffed, Fault, FileBack, FileChanged, FileDiff, SessionId};
use agentd_tools::{Beneath, change, file_now};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// The time limit for reading files.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);
/// The maximum number of files in one diff.
pub(crate) const MAX_FILES: usize = 500;
/// Maximum bytes of the diffs in one answer.
const MAX_BYTES: usize = 4 << 20;

/// One side of a comparison.
pub(crate) enum Side {
    /// The stored content; `None`: the file did not exist.
    Kept(Option<Vec<u8>>),
    /// The current content of the file.
    Now,
    /// The content was not stored.
    Lost,
}

/// A file to compare.
pub(crate) struct Pair {
    pub(crate) path: String,
    pub(crate) before: Side,
    pub(crate) after: Side,
}

impl Api {
    pub(crate) async fn diff(&self, who: &Caller, params: DiffParams) -> Result<Diffed, Fault> {
        let (session, _) = self.row_of(who, &params.session).await?;
        let past = self.past_of_tree(who, session, 0).await?;
        let turn = match params.turn.as_deref() {
            Some(word) => Some(unknown_turn(&past, word)?),
            None => None,
        };
        let of_turn = |change: &Change| turn.is_none() || change.turn == turn;
        let stays = match past.recorded.any() {
            true => past.recorded.left_out(),
            false => past.stays(|_, of| turn.is_none() || of == turn),
        };
        let ends = ends(&past, of_turn, turn.is_some());
        if ends.len() > MAX_FILES {
            let message = format!(
                "{} files were changed; at most {MAX_FILES} are compared",
                ends.len()
            );
            return Err(Fault::limit("too_many_files", message).hint("compare one turn only"));
        }
        let recorded = self
            .recorded(session, &past, (turn, params.at.as_deref()))
            .await?;
        let ends = if params.at.is_some() { Vec::new() } else { ends };
        let mut pairs = Vec::new();
        for (path, before, after) in ends {
            if recorded.iter().any(|pair| pair.path == path) {
                continue;
            }
            pairs.push(Pair {
                path,
                before: self.side(before).await?,
                after: match after {
                    Some(after) => self.side(after).await?,
                    None => Side::Now,
                },
            });
        }
        pairs.extend(recorded);
        let mut files = self
            .in_workdir(session, move |workdir, max| compared(workdir, max, pairs))
            .await?;
        let chosen: Vec<&Change> = past.changes.iter().filter(|change| of_turn(change)).collect();
        for file in &mut files {
            file.by = changed_by(&chosen, &file.path);
        }
        Ok(Diffed { files, stays })
    }

    /// The files that changed since the session last wrote them.
    pub(crate) async fn conflicts(&self, session: Seen, files: &[FileBack]) -> Result<Vec<String>, Fault> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let files = files.to_vec();
        self.in_workdir(session, move |workdir, max| {
            let differs = |file: &FileBack| match file_now(workdir, &file.path, max) {
                Ok(now) => {
                    let hash = now.map(|(_, hash)| hash);
                    hash != file.now && hash != file.wanted
                }
                Err(_) => true,
            };
            files.into_iter().filter(differs).map(|file| file.path).collect()
        })
        .await
    }

    async fn side(&self, hash: Option<String>) -> Result<Side, Fault> {
        let Some(name) = hash else {
            return Ok(Side::Kept(None));
        };
        let bytes = self.read(|done| Read::Blob { name, done }).await?;
        Ok(bytes.map_or(Side::Lost, |bytes| Side::Kept(Some(bytes.to_vec()))))
    }

    async fn in_workdir<T: Send + 'static>(
        &self,
        session: Seen,
        look: impl FnOnce(&Beneath, u64) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        self.files_here(*session).await?;
        let workdir = PathBuf::from(self.row(session).await?.summary.workdir);
        let max = self.loaded().settings.tools.max_file_bytes;
        let _turn = tokio::time::timeout(WITHIN, self.comparing.on(&workdir))
            .await
            .map_err(|_| Fault::busy("comparing", "too many file comparisons are running"))?;
        let (files, dir) = (FileWork::of_session(&session.to_string()), workdir.clone());
        let work = files.run(&dir, WITHIN, move || {
            let workdir = Beneath::open(&workdir).map_err(|error| {
                Fault::unavailable("workdir_unavailable", error.to_string())
                    .hint("the session's working directory must exist and be readable")
            })?;
            Ok(look(&workdir, max))
        });
        work.await
            .map_err(|failed| Fault::timeout("files_slow", failed.to_string()))?
    }
}

/// The sub-agents that changed a file.
fn changed_by(changes: &[&Change], path: &str) -> Vec<SessionId> {
    let touched = changes
        .iter()
        .filter(|change| change.files.iter().any(|file| file.path == path));
    let by: BTreeSet<_> = touched
        .filter_map(|change| change.below.map(|of| of.session))
        .collect();
    by.into_iter().collect()
}

/// By path: the content before the first chosen change, and, when only a part is chosen, the content before the next
/// change after the last chosen one; absent: the current content.
type Ends = Vec<(String, Option<String>, Option<Option<String>>)>;

fn ends(past: &Past, chosen: impl Fn(&Change) -> bool, part: bool) -> Ends {
    let mut ends: BTreeMap<&str, (Option<String>, Option<Option<String>>)> = BTreeMap::new();
    for change in &past.changes {
        for FileChanged {
            path, before_sha256, ..
        } in &change.files
        {
            if chosen(change) {
                let end = ends.entry(path).or_insert_with(|| (before_sha256.clone(), None));
                end.1 = None;
            } else if part && let Some((_, after)) = ends.get_mut(path.as_str()) {
                after.get_or_insert_with(|| before_sha256.clone());
            }
        }
    }
    ends.into_iter()
        .map(|(path, (before, after))| (path.to_owned(), before, after))
        .collect()
}

fn compared(workdir: &Beneath, max: u64, pairs: Vec<Pair>) -> Vec<FileDiff> {
    let mut room = MAX_BYTES;
    pairs
        .into_iter()
        .filter_map(|pair| one(workdir, max, pair, &mut room))
        .collect()
}

fn one(workdir: &Beneath, max: u64, pair: Pair, room: &mut usize) -> Option<FileDiff> {
    let Pair { path, before, after } = pair;
    let said = |path: String, status: &str, diff: String| FileDiff {
        path,
        status: status.to_owned(),
        added: 0,
        removed: 0,
        diff,
        by: Vec::new(),
    };
    let after = match after {
        Side::Now => match file_now(workdir, &path, max) {
            Ok(now) => now.map(|(content, _)| content),
            Err(why) => {
                let diff = format!("cannot compare {path}: {why}\n");
                return Some(said(path, "modified", diff));
            }
        },
        Side::Kept(content) => content,
        Side::Lost => {
            let diff = format!("cannot compare {path}: its later content was not kept\n");
            return Some(said(path, "modified", diff));
        }
    };
    let Side::Kept(before) = before else {
        let diff = format!("cannot compare {path}: its earlier content was not kept\n");
        return Some(said(path, "modified", diff));
    };
    if before == after {
        return None;
    }
    let status = match (&before, &after) {
        (None, _) => "added",
        (_, None) => "deleted",
        (Some(_), Some(_)) => "modified",
    };
    if is_binary(before.as_deref()) || is_binary(after.as_deref()) {
        let diff = format!("Binary file {path} differs\n");
        return Some(said(path, status, diff));
    }
    let change = change(&path, before.as_deref(), after.as_deref());
    let diff = if change.text.len() <= *room {
        *room -= change.text.len();
        change.text
    } else {
        format!("The diff of {path} is too long to show with the others.\n")
    };
    let count = |lines: usize| u64::try_from(lines).unwrap_or(u64::MAX);
    Some(FileDiff {
        added: count(change.added),
        removed: count(change.removed),
        ..said(path, status, diff)
    })
}

fn is_binary(content: Option<&[u8]>) -> bool {
    content.is_some_and(|content| content.iter().take(8192).any(|byte| *byte == 0))
}
