//! What the API reads from recorded files: the plan of an undo, and both sides of a comparison.

use crate::api::Api;
use crate::compare::{MAX_FILES, Pair, Side, WITHIN};
use crate::past::{Change as Past_, Past};
use crate::sight::{Caller, Seen};
use agentd_checkpoint::{Archive, Change, Contents, Error, Item, Tree, TreeChange};
use agentd_file_work::FileWork;
use agentd_protocol::{Fault, FilesParams, RecordedFile, RecordedFiles, Seq, TreeChanged, TurnId};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The most paths that an answer names.
const MOST_NAMED: usize = 1_000;

impl Api {
    /// Works on the recorded files of a session's directory, in a separate thread.
    pub(crate) async fn in_archive<T: Send + 'static>(
        &self,
        session: Seen,
        work: impl FnOnce(&Archive) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Fault> {
        self.files_here(*session).await?;
        let workdir = PathBuf::from(self.row(session).await?.summary.workdir);
        let archive = self.parts.checkpoints.archive(&workdir);
        let _turn = tokio::time::timeout(WITHIN, self.comparing.on(&workdir))
            .await
            .map_err(|_| Fault::busy("comparing", "too many file comparisons are running"))?;
        let files = FileWork::of_session(&session.to_string());
        let work = files.run(&workdir, WITHIN, move || work(&archive));
        let done = work
            .await
            .map_err(|failed| Fault::timeout("files_slow", failed.to_string()))?;
        done.map_err(fault)
    }

    /// What reverting recorded changes would do: the files, and those that were changed since.
    pub(crate) async fn planned(
        &self,
        session: Seen,
        trees: &[TreeChanged],
    ) -> Result<(Vec<String>, Vec<String>), Fault> {
        let changes = changes(trees).map_err(fault)?;
        let plan = self
            .in_archive(session, move |archive| archive.planned(&changes))
            .await?;
        Ok((named(&plan.0), named(&plan.1)))
    }

    /// Both sides of the recorded changes: of the session, of one turn, or between two events.
    pub(crate) async fn recorded(
        &self,
        session: Seen,
        past: &Past,
        (turn, at): (Option<TurnId>, Option<&str>),
    ) -> Result<Vec<Pair>, Fault> {
        let (trees, to_now) = match at {
            Some(range) => (vec![between(past, range)?], false),
            None => {
                let chosen = |change: &&Past_| turn.is_none() || change.turn == turn;
                (every(past.changes.iter().filter(chosen)), turn.is_none())
            }
        };
        if trees.is_empty() {
            return Ok(Vec::new());
        }
        let changes = changes(&trees).map_err(fault)?;
        let pairs = self
            .in_archive(session, move |archive| pairs(archive, &changes, to_now))
            .await?;
        if pairs.len() > MAX_FILES {
            let message = format!(
                "{} files were changed; at most {MAX_FILES} are compared",
                pairs.len()
            );
            return Err(Fault::limit("too_many_files", message).hint("compare one turn only"));
        }
        Ok(pairs)
    }
}

/// The most files of a listing.
const MOST_LISTED: usize = 10_000;

impl Api {
    /// `session.files`: the recorded files at an event.
    pub(crate) async fn files(&self, who: &Caller, params: FilesParams) -> Result<RecordedFiles, Fault> {
        let (session, _) = self.row_of(who, &params.session).await?;
        let past = self.past_of_tree(who, session, Seq::MAX).await?;
        let tree = recorded_at(&past, params.at.unwrap_or(Seq::MAX))?;
        let tree = Tree::parse(&tree).map_err(fault)?;
        self.in_archive(session, move |archive| listed(archive, &tree))
            .await
    }
}

fn listed(archive: &Archive, tree: &Tree) -> Result<RecordedFiles, Error> {
    let all = archive.files_of(tree)?;
    let mut contents = archive.contents()?;
    let mut files = Vec::new();
    for (path, item) in all.iter().take(MOST_LISTED) {
        files.push(RecordedFile {
            path: String::from_utf8_lossy(path).into_owned(),
            mode: item.kind.mode().to_owned(),
            bytes: contents.size(&item.content)? as u64,
            content: item.content.clone(),
        });
    }
    Ok(RecordedFiles {
        tree: tree.to_string(),
        more: all.len().saturating_sub(files.len()) as u64,
        files,
    })
}

/// The tree that was recorded last at or before an event.
fn recorded_at(past: &Past, seq: Seq) -> Result<String, Fault> {
    past.recorded.at(seq).map(str::to_owned).ok_or_else(|| {
        Fault::not_found(
            "not_recorded",
            format!("no files were recorded at or before event {seq}"),
        )
    })
}

/// All recorded changes among these, in their order.
pub(crate) fn every<'a>(changes: impl Iterator<Item = &'a Past_>) -> Vec<TreeChanged> {
    let mut found: Vec<TreeChanged> = Vec::new();
    for trees in changes.filter_map(|change| change.trees.as_ref()) {
        if found.last() != Some(trees) {
            found.push(trees.clone());
        }
    }
    found
}

/// The recorded files at both ends of `SEQ..SEQ`.
fn between(past: &Past, range: &str) -> Result<TreeChanged, Fault> {
    let bad = || {
        Fault::invalid("bad_range", format!("{range:?} is not a range of events"))
            .hint("give two numbers of events, as `agentctl logs --seq ID` shows them: 12..40")
    };
    let (from, to) = range.split_once("..").ok_or_else(bad)?;
    let seq = |word: &str| word.trim().parse::<Seq>().map_err(|_| bad());
    let (from, to) = (seq(from)?, seq(to)?);
    Ok(TreeChanged {
        before: recorded_at(past, from)?,
        after: recorded_at(past, to)?,
    })
}

/// Reads the names of recorded changes.
pub(crate) fn changes(trees: &[TreeChanged]) -> Result<Vec<TreeChange>, Error> {
    let one = |changed: &TreeChanged| {
        Ok(TreeChange {
            before: Tree::parse(&changed.before)?,
            after: Tree::parse(&changed.after)?,
        })
    };
    trees.iter().map(one).collect()
}

fn pairs(archive: &Archive, changes: &[TreeChange], to_now: bool) -> Result<Vec<Pair>, Error> {
    let mut changed = archive.composed(changes)?;
    if to_now {
        archive.take()?;
        now(archive, &mut changed);
    }
    if changed.len() > MAX_FILES {
        // Only their number is of interest.
        let none = |path: &Vec<u8>| Pair {
            path: String::from_utf8_lossy(path).into_owned(),
            before: Side::Lost,
            after: Side::Lost,
        };
        return Ok(changed.keys().map(none).collect());
    }
    let mut contents = archive.contents()?;
    let mut pairs = Vec::new();
    for (path, Change { before, after }) in changed {
        pairs.push(Pair {
            path: String::from_utf8_lossy(&path).into_owned(),
            before: side(&mut contents, before)?,
            after: side(&mut contents, after)?,
        });
    }
    Ok(pairs)
}

/// Replaces what a change left by what is there now.
fn now(archive: &Archive, changed: &mut BTreeMap<Vec<u8>, Change>) {
    let mut items = archive.current(changed.keys());
    for (path, change) in changed.iter_mut() {
        change.after = items.remove(path);
    }
    changed.retain(|_, change| change.before != change.after);
}

fn side(contents: &mut Contents, item: Option<Item>) -> Result<Side, Error> {
    match item {
        None => Ok(Side::Kept(None)),
        Some(item) => match contents.get(&item.content) {
            Ok(bytes) => Ok(Side::Kept(Some(bytes))),
            Err(Error::Lost(_)) => Ok(Side::Lost),
            Err(error) => Err(error),
        },
    }
}

fn named(paths: &[PathBuf]) -> Vec<String> {
    let shown = paths.iter().take(MOST_NAMED).map(|path| lossy(path));
    let more = paths.len().saturating_sub(MOST_NAMED);
    shown
        .chain((more > 0).then(|| format!("and {more} more")))
        .collect()
}

pub(crate) fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(OsStr::as_bytes(path.as_os_str())).into_owned()
}

/// A failure as its caller sees it.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn fault(error: Error) -> Fault {
    let message = error.to_string();
    match error {
        Error::Conflict(_) => Fault::conflict("undo_conflict", message).hint("nothing was changed"),
        Error::Sha256(_) => Fault::conflict("sha256_repository", message),
        Error::Exists(_) => Fault::conflict("branch_exists", message),
        Error::BadBranch(_) => Fault::invalid("bad_branch", message),
        Error::TooManyFiles(_) | Error::TooManyBytes(_) | Error::StoreLimit(_) => {
            let hint = "delete files that are not needed, or have the operator raise the setting";
            Fault::limit("too_many_files", message).hint(hint)
        }
        Error::BadTree(_) => Fault::invalid("bad_tree", message),
        Error::Lost(_) | Error::Forged(_) => Fault::conflict("object_lost", message),
        Error::NoGit => Fault::unavailable("no_git", message).hint("install git"),
        Error::Git { .. }
        | Error::File { .. }
        | Error::Halfway { .. }
        | Error::Unrecorded(_)
        | Error::Injected(_) => Fault::unavailable("checkpoint_failed", message),
    }
}
