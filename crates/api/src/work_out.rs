//! `session.apply`, `session.branch`, `session.patch`: a session's changes, brought to where they are wanted.

use crate::api::Api;
use crate::past::Past;
use crate::recorded::{changes, every, fault, lossy};
use crate::sight::{Caller, Seen};
use crate::workspaces::fault_of_workspace;
use agentd_checkpoint::{Applied, Archive, Change, Committed, Error, NewCommit, Tree, TreeChange};
use agentd_file_work::FileWork;
use agentd_protocol::{
    AppliedTo, ApplyParams, BranchParams, Branched, Decision, EventBody, Fault, Patch, PatchParams,
    Principal, Seq, TransferKind, TransferStarted, Workspace,
};
use agentd_settings::mask_url;
use agentd_workspace::{check_url, protocol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of such work.
const WITHIN: Duration = Duration::from_secs(100);
/// The most bytes of a patch or a bundle.
const MOST_BYTES: usize = 5 << 20;
/// The most characters of a message's first line.
const SUBJECT_CHARS: usize = 72;
/// The most characters of a branch's name or a message.
const MOST_CHARS: usize = 20_000;

/// The changes of a session, in their order.
pub(crate) struct Work {
    pub(crate) session: Seen,
    pub(crate) workdir: PathBuf,
    /// How the directory was made, if the session has one of its own.
    pub(crate) workspace: Option<Box<Workspace>>,
    archive: Archive,
    /// Never empty.
    changes: Vec<TreeChange>,
}

impl Work {
    /// The recorded files before all changes.
    pub(crate) fn base(&self) -> Tree {
        let first = self.changes.first().map(|change| change.before.clone());
        first.unwrap_or_else(Tree::empty)
    }

    /// Carries out something in a separate thread.
    pub(crate) fn run<T, F>(
        &self,
        dir: &Path,
        work: F,
    ) -> impl Future<Output = Result<T, Fault>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Archive, &BTreeMap<Vec<u8>, Change>) -> Result<T, Error> + Send + 'static,
    {
        let (archive, changes, dir) = (self.archive.clone(), self.changes.clone(), dir.to_owned());
        let files = FileWork::of_session(&self.session.to_string());
        async move {
            let done = files.run(&dir, WITHIN, move || work(&archive, &archive.composed(&changes)?));
            done.await
                .map_err(|failed| Fault::timeout("files_slow", failed.to_string()))?
                .map_err(fault)
        }
    }
}

impl Api {
    pub(crate) async fn apply(
        self: &Arc<Self>,
        who: &Caller,
        params: ApplyParams,
    ) -> Result<AppliedTo, Fault> {
        let (work, _) = self.work(who, &params.session).await?;
        let to = self.target(who, &params.to).await?;
        let to = to.path().to_owned();
        if to == work.workdir {
            let message = "the session works in that directory, so its changes are there already";
            return Err(Fault::invalid("same_directory", message).hint("give another directory as `to`"));
        }
        let (target, dry_run) = (self.parts.checkpoints.archive(&to), params.dry_run);
        let apply = |dry_run| {
            let target = target.clone();
            work.run(&to, move |archive, changes| {
                target.apply(archive, changes, dry_run)
            })
        };
        let planned = apply(true).await?;
        self.places_untouched(&to, &planned.files)?;
        let done = if dry_run {
            planned
        } else {
            let started = TransferStarted {
                kind: TransferKind::Apply,
                to: lossy(&to),
                branch: None,
            };
            let outcome = |done: &Applied| (done.files.len(), None);
            let done = self
                .transferred(who, work.session, started, apply(false), outcome)
                .await?;
            self.note_fetched(&work).await;
            done
        };
        tracing::info!(session = %work.session, by = %who, to = %params.to, files = done.files.len(), dry_run, "changes applied");
        Ok(AppliedTo {
            to: lossy(&to),
            files: done.files.iter().map(|path| lossy(path)).collect(),
            merged: done.merged.iter().map(|path| lossy(path)).collect(),
        })
    }

    /// Refuses changes of places that are protected whatever the directory is: `bin/ls` is harmless in a project, and not in a
    /// home directory.
    fn places_untouched(&self, to: &Path, files: &[PathBuf]) -> Result<(), Fault> {
        let place = |file: &PathBuf| self.parts.protected.of_machine(&to.join(file));
        let Some((file, place)) = files.iter().find_map(|file| Some((file, place(file)?))) else {
            return Ok(());
        };
        let message = format!("the changes include {}: {place}", lossy(file));
        Err(Fault::denied("protected_directory", message)
            .hint("apply to another directory; or take the changes as a patch: agentctl export ID --patch"))
    }

    pub(crate) async fn branch(
        self: &Arc<Self>,
        who: &Caller,
        params: BranchParams,
    ) -> Result<Branched, Fault> {
        let (work, past) = self.work(who, &params.session).await?;
        let message = self.message(work.session, &past, params.message).await?;
        let origin = self.origin(&work).await?;
        let to = params.push.clone();
        let origin = match &to {
            Some(url) => {
                self.may_push(url)?;
                origin
            }
            None => origin.of_a_person()?,
        };
        let (author, seconds) = (self.author()?, self.seconds());
        let (name, from) = (params.name.clone(), origin.clone());
        let made = work.run(&origin.git_dir, move |archive, changes| {
            let new = NewCommit {
                branch: &name,
                message: &message,
                author: (&author.0, &author.1),
                seconds,
                base: &from.base,
            };
            match &to {
                Some(url) => archive.push(&from.git_dir, changes, &new, (url, protocol(url))),
                None => archive.branch(&from.git_dir, changes, &new),
            }
        });
        let started = TransferStarted {
            kind: match params.push {
                Some(_) => TransferKind::Push,
                None => TransferKind::Branch,
            },
            to: params
                .push
                .as_deref()
                .map_or_else(|| origin.name.clone(), mask_url),
            branch: Some(params.name.clone()),
        };
        let outcome = |made: &Committed| (made.files, Some(made.commit.clone()));
        let made = self
            .transferred(who, work.session, started, made, outcome)
            .await?;
        self.note_fetched(&work).await;
        tracing::info!(session = %work.session, by = %who, branch = %params.name, commit = %made.commit, "branch made");
        Ok(Branched {
            repository: params.push.unwrap_or(origin.name),
            branch: params.name,
            commit: made.commit,
            base: made.base,
            files: made.files as u64,
        })
    }

    pub(crate) async fn patch(&self, who: &Caller, params: PatchParams) -> Result<Patch, Fault> {
        let (work, past) = self.work(who, &params.session).await?;
        let bytes = match params.bundle {
            None => {
                let base = work.base();
                let made = work.run(self.parts.workspaces.root(), move |archive, changes| {
                    archive.patch(&base, &archive.with(&base, changes)?)
                });
                made.await?
            }
            Some(branch) => {
                let message = self.message(work.session, &past, None).await?;
                let (author, seconds) = (self.author()?, self.seconds());
                let origin = self.origin(&work).await?;
                let from = origin.clone();
                let made = work.run(&origin.git_dir, move |archive, changes| {
                    let new = NewCommit {
                        branch: &branch,
                        message: &message,
                        author: (&author.0, &author.1),
                        seconds,
                        base: &from.base,
                    };
                    archive.bundle(&from.git_dir, changes, &new)
                });
                made.await?
            }
        };
        if bytes.len() > MOST_BYTES {
            let message = format!("it has {} bytes; at most {MOST_BYTES} can be sent", bytes.len());
            return Err(
                Fault::limit("too_large", message).hint("`agentctl branch` and `apply` have no such limit")
            );
        }
        // Who may only read must not decide that the workspace can go.
        if who.may("session.branch").is_ok() {
            self.note_fetched(&work).await;
        }
        Ok(Patch {
            data: STANDARD.encode(bytes),
        })
    }

    /// Whether the operator lets branches be pushed to this URL.
    fn may_push(&self, url: &str) -> Result<(), Fault> {
        check_url(url).map_err(fault_of_workspace)?;
        if self.loaded().settings.workspace.may_push(url) {
            return Ok(());
        }
        let what = "no branch may be pushed to this URL";
        Err(Fault::denied("url_denied", what).hint("the operator can add it to workspace.push"))
    }

    /// All recorded changes of a session.
    async fn work(&self, who: &Caller, session: &str) -> Result<(Work, Past), Fault> {
        let (session, row) = self.row_of(who, session).await?;
        self.files_here(*session).await?;
        let past = self.past_of_tree(who, session, Seq::MAX).await?;
        let unknown = past.changes.iter().find(|change| change.trees.is_none());
        if let Some(seq) = unknown.map(|change| change.seq).or(past.recorded.missed()) {
            let message = format!("the files were not recorded around event {seq}");
            let hint = format!(
                "`agentctl diff ID` shows what is known; the files are in {}",
                row.summary.workdir
            );
            return Err(Fault::conflict("not_recorded", message).hint(hint));
        }
        let changes = changes(&every(past.changes.iter())).map_err(fault)?;
        if changes.is_empty() {
            return Err(Fault::conflict("no_changes", "this session changed no files"));
        }
        let workdir = PathBuf::from(row.summary.workdir);
        let work = Work {
            session,
            workspace: self.workspace_of(session).await?,
            archive: self.parts.checkpoints.archive(&workdir),
            workdir,
            changes,
        };
        Ok((work, past))
    }

    /// The message of a commit, with the session and the people who approved its calls.
    async fn message(&self, session: Seen, past: &Past, given: Option<String>) -> Result<String, Fault> {
        let title = self.row(session).await?.summary.name;
        let (said, people) = self.said_last(session, past.head).await?;
        let mut message = match given {
            Some(given) => given,
            None => {
                let subject: String = title
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(SUBJECT_CHARS)
                    .collect();
                let subject = if subject.trim().is_empty() {
                    "Work of an agent".to_owned()
                } else {
                    subject
                };
                format!("{subject}\n\n{said}")
            }
        };
        message = message.trim_end().chars().take(MOST_CHARS).collect();
        message.push_str(&format!("\n\nAgentd-Session: {}\n", *session));
        for person in people {
            message.push_str(&format!("Approved-by: {person}\n"));
        }
        Ok(message)
    }

    /// The text of the last turn, and who approved calls.
    async fn said_last(&self, session: Seen, head: Seq) -> Result<(String, BTreeSet<String>), Fault> {
        let (mut text, mut people, mut at) = (String::new(), BTreeSet::new(), 0);
        while at < head {
            let events = self.events(session, at).await?;
            let Some(last) = events.last() else { break };
            at = last.seq;
            for event in events {
                match event.body {
                    EventBody::TurnFinished(finished) => text = finished.text,
                    EventBody::ApprovalDecided(decided)
                        if decided.decision == Decision::Allow && event.by != Principal::agentd() =>
                    {
                        people.insert(event.by.to_string());
                    }
                    _ => {}
                }
            }
        }
        Ok((text, people))
    }

    /// `workspace.author`, as a name and an address.
    fn author(&self) -> Result<(String, String), Fault> {
        let loaded = self.loaded();
        let (name, address) = loaded
            .settings
            .workspace
            .author()
            .ok_or_else(|| Fault::invalid("bad_author", "workspace.author must be `Name <address>`"))?;
        Ok((name.to_owned(), address.to_owned()))
    }

    fn seconds(&self) -> i64 {
        i64::try_from(self.parts.clock.now().0 / 1_000).unwrap_or(0)
    }
}
