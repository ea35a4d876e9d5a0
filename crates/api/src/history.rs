//! `session.undo` and `session.rewind`: planned here from the log, carried out by the session's loop.

use crate::answers::Answers as _;
use crate::api::{Api, READ};
use crate::idempotency::Keyed;
use crate::past::{Change, Past, back};
use crate::past_files::trees;
use crate::sight::{Caller, Seen};
use crate::words::cut;
use agentd_protocol::{
    ChangeBelow, Done, Event, EventBody, Fault, HistoryStarted, PutBackDone, RewindParams, Seq, UndoParams,
};
use agentd_store::{EncodedEvent, Range};
use agentd_turn::{Command, Rework};
use std::time::Duration;

/// Bytes of the log that one read returns.
const PAGE_BYTES: u32 = 1 << 20;
/// How long a client waits for the files.
const WORK: Duration = Duration::from_secs(110);
/// The maximum number of files restored at once.
const MAX_FILES: usize = 1_000;

/// The planned work, unless it is a dry run.
struct Wanted {
    session: Seen,
    head: Seq,
    work: HistoryStarted,
    dry_run: bool,
}

impl Api {
    pub(crate) async fn undo(&self, who: &Caller, params: UndoParams) -> Result<PutBackDone, Fault> {
        let session = self.session(who, &params.session).await?;
        let (key, _turn) = match self
            .keyed(who, "session.undo", params.key.as_deref(), &params)
            .await?
        {
            Keyed::Before(answer) => return self.ended_before(session, answer).await,
            Keyed::New(key, turn) => (key, turn),
        };
        let past = self.past_of_tree(who, session, Seq::MAX).await?;
        let chosen = chosen(&past, &params)?;
        let turns: Vec<_> = chosen.iter().map(|change| change.turn).collect();
        let (undoes, undoes_below) = places(chosen.iter().copied());
        let trees = trees(chosen.iter().copied()).unwrap_or_default();
        let work = HistoryStarted {
            undoes,
            undoes_below,
            files: if trees.is_empty() {
                back(chosen.iter().copied())
            } else {
                Vec::new()
            },
            force: params.force,
            stays: match (trees.is_empty(), params.turn) {
                (false, _) => past.recorded.left_out(),
                (true, Some(_)) => past.stays(|_, turn| turn.is_some() && turns.contains(&turn)),
                (true, None) => Vec::new(),
            },
            trees,
            ..HistoryStarted::default()
        };
        if work.files.is_empty() && work.trees.is_empty() {
            return Err(Fault::conflict(
                "nothing_to_undo",
                "these changes left every file unchanged",
            ));
        }
        let wanted = Wanted {
            session,
            head: past.head,
            work,
            dry_run: params.dry_run,
        };
        self.put_back(who, wanted, key).await
    }

    pub(crate) async fn rewind(&self, who: &Caller, params: RewindParams) -> Result<PutBackDone, Fault> {
        let session = self.session(who, &params.session).await?;
        let (key, _turn) = match self
            .keyed(who, "session.rewind", params.key.as_deref(), &params)
            .await?
        {
            Keyed::Before(answer) => return self.ended_before(session, answer).await,
            Keyed::New(key, turn) => (key, turn),
        };
        if params.at == 0 {
            let fault = Fault::invalid("at_missing", "the parameter `at` is missing");
            return Err(fault.hint(
                "give the seq of the last event to keep: `agentctl logs ID -o jsonl` shows it as seq",
            ));
        }
        let past = self.past_of_tree(who, session, params.at).await?;
        if params.at >= past.head {
            let message = format!(
                "the log ends at {}, so there is nothing after {}",
                past.head, params.at
            );
            return Err(Fault::invalid("at_too_late", message));
        }
        let (to, todo, plan) = past.point().ok_or_else(|| {
            Fault::conflict(
                "no_point",
                "the session has no point to rewind to at or before that event",
            )
        })?;
        let since = || past.standing().filter(|change| change.end > to);
        let all = past.changes.iter().filter(|change| change.end > to);
        let (undoes, undoes_below) = places(since().filter(|_| params.files));
        let trees = trees(all.clone().filter(|change| params.files && !change.within)).unwrap_or_default();
        let work = HistoryStarted {
            undoes,
            undoes_below,
            files: if params.files && trees.is_empty() {
                back(all)
            } else {
                Vec::new()
            },
            force: params.force,
            rewind_to: Some(to),
            todo,
            plan,
            stays: if trees.is_empty() {
                past.stays(|seq, _| seq > to)
            } else {
                past.recorded.left_out()
            },
            trees,
        };
        let wanted = Wanted {
            session,
            head: past.head,
            work,
            dry_run: params.dry_run,
        };
        self.put_back(who, wanted, key).await
    }

    /// Checks that the work can be done, has the loop do it, and waits for the end.
    async fn put_back(
        &self,
        who: &Caller,
        wanted: Wanted,
        key: Option<agentd_store::IdempotencyKey>,
    ) -> Result<PutBackDone, Fault> {
        let Wanted {
            session,
            head,
            work,
            dry_run,
        } = wanted;
        if work.files.len() > MAX_FILES {
            let message = format!(
                "{} files would be restored; the limit is {MAX_FILES}",
                work.files.len()
            );
            return Err(Fault::limit("too_many_files", message));
        }
        let (named, conflicts) = match work.trees.as_slice() {
            [] => {
                let named = work.files.iter().map(|file| file.path.clone()).collect();
                (named, self.conflicts(session, &work.files).await?)
            }
            trees => self.planned(session, trees).await?,
        };
        if named.is_empty() && !work.trees.is_empty() && work.rewind_to.is_none() {
            return Err(Fault::conflict(
                "nothing_to_undo",
                "the files are already as they were before",
            ));
        }
        if dry_run {
            return Ok(PutBackDone {
                session: *session,
                seq: 0,
                files: named,
                conflicts,
                undo_id: String::new(),
                rewound_to: work.rewind_to,
                stays: work.stays,
            });
        }
        if !conflicts.is_empty() && !work.force {
            let message = format!("these files have changed since: {}", conflicts.join(", "));
            return Err(Fault::conflict("undo_conflict", message).hint(
                "nothing was changed; `agentctl diff` shows the differences, --force discards the changes of others",
            ));
        }
        let command = Command::Rework(Box::new(Rework { head, work }));
        let reply = self.route(who, session, command, key.clone()).await;
        let done = self.settle(key, reply.map(|reply| reply.done())).await?;
        self.ended_before(session, done).await
    }

    /// Waits for the end of work whose start was answered.
    async fn ended_before(&self, session: Seen, answer: serde_json::Value) -> Result<PutBackDone, Fault> {
        let bad = |error| {
            Fault::internal(
                "bad_stored_answer",
                format!("cannot read a stored answer: {error}"),
            )
        };
        let Done { seq, .. } = serde_json::from_value(answer).map_err(bad)?;
        let ended = tokio::time::timeout(WORK, self.end_of(session, seq)).await;
        ended.unwrap_or_else(|_| {
            Err(
                Fault::timeout("history_slow", "agentd is still restoring the files")
                    .hint("the work continues; ask again with the same key, or look at the log"),
            )
        })
    }

    async fn end_of(&self, session: Seen, seq: Seq) -> Result<PutBackDone, Fault> {
        let mut committed = self.parts.backend.committed();
        let mut done = PutBackDone {
            session: *session,
            seq,
            files: Vec::new(),
            conflicts: Vec::new(),
            undo_id: String::new(),
            rewound_to: None,
            stays: Vec::new(),
        };
        let mut at = seq.saturating_sub(1);
        loop {
            committed.mark_unchanged();
            for event in self.events(session, at).await? {
                at = event.seq;
                if learn(&mut done, event.body)? {
                    return Ok(done);
                }
            }
            committed
                .changed()
                .await
                .map_err(|_| Fault::unavailable("store_unavailable", "the store has stopped"))?;
        }
    }

    /// The file changes and points in a log.
    pub(crate) async fn past(&self, session: Seen, upto: Seq) -> Result<Past, Fault> {
        let mut past = Past::upto(upto);
        loop {
            let events = self.events(session, past.head).await?;
            if events.is_empty() {
                return Ok(past);
            }
            for event in events {
                past.take(&event);
            }
        }
    }

    /// A page of a log.
    pub(crate) async fn events(&self, session: Seen, after: Seq) -> Result<Vec<Event>, Fault> {
        let range = Range {
            max_bytes: PAGE_BYTES,
            ..Range::after(after)
        };
        let read = self.load(session, range);
        let page = tokio::time::timeout(READ, read)
            .await
            .map_err(|_| Fault::timeout("store_slow", "could not read the log in time"))??;
        let decode = |(seq, line): (Seq, bytes::Bytes)| {
            EncodedEvent::decode(&line).map_err(|error| {
                Fault::storage(
                    "bad_event",
                    format!("cannot read event {seq} of the log: {error}"),
                )
            })
        };
        page.events.into_iter().map(decode).collect()
    }
}

/// Processes an event of the work; true: the work has ended.
#[expect(clippy::wildcard_enum_match_arm, reason = "other events are none of the work")]
fn learn(done: &mut PutBackDone, body: EventBody) -> Result<bool, Fault> {
    match body {
        EventBody::HistoryStarted(started) => {
            done.files = started.files.into_iter().map(|file| file.path).collect();
            done.rewound_to = started.rewind_to;
            done.stays = started.stays;
            Ok(false)
        }
        EventBody::HistoryFailed(failed) => Err(Fault::conflict(
            &failed.code.trim_start_matches("E_").to_ascii_lowercase(),
            failed.message,
        )),
        EventBody::UndoApplied(applied) => {
            done.undo_id = applied.undo_id;
            done.files.extend(applied.paths);
            Ok(done.rewound_to.is_none())
        }
        EventBody::SessionRewound(_) => Ok(true),
        _ => Ok(false),
    }
}

/// The positions of changes in the session's log, and in those of its sub-agents.
fn places<'a>(changes: impl Iterator<Item = &'a Change>) -> (Vec<Seq>, Vec<ChangeBelow>) {
    let (mut own, mut below) = (Vec::new(), Vec::new());
    for change in changes {
        match change.below {
            Some(of) => below.push(of),
            None => own.push(change.seq),
        }
        own.extend(&change.covers);
        below.extend(&change.covers_below);
    }
    (own, below)
}

/// The changes to undo.
fn chosen<'a>(past: &'a Past, params: &UndoParams) -> Result<Vec<&'a Change>, Fault> {
    if let Some(word) = params.change.as_deref() {
        let word = word.trim();
        let named = |change: &&Change| !word.is_empty() && change.id.starts_with(word);
        if let Some(change) = past.standing().filter(named).last() {
            return Ok(vec![change]);
        }
        let shown = cut(word);
        return Err(if past.changes.iter().any(|change| named(&change)) {
            Fault::conflict("already_undone", format!("change {shown:?} is already undone"))
        } else {
            Fault::not_found("unknown_change", format!("this session made no change {shown:?}"))
                .hint("`agentctl logs ID -o jsonl` shows changes as undo_id")
        });
    }
    let own = past
        .standing()
        .filter(|change| !change.is_undo() && !change.within);
    let found: Vec<_> = match params.turn.as_deref() {
        Some(word) => {
            let turn = unknown_turn(past, word)?;
            own.filter(|change| change.turn == Some(turn)).collect()
        }
        None => own.last().into_iter().collect(),
    };
    if found.is_empty() {
        let fault = Fault::conflict("nothing_to_undo", "there is no file change left to undo");
        return Err(fault.hint(
            "undo reverts what commands did only where files were recorded; `agentctl diff` shows the differences",
        ));
    }
    Ok(found)
}

/// Resolves a reference to a turn.
pub(crate) fn unknown_turn(past: &Past, word: &str) -> Result<agentd_protocol::TurnId, Fault> {
    past.turn(word.trim()).ok_or_else(|| {
        Fault::not_found(
            "unknown_turn",
            format!("{:?} does not identify one turn of this session", cut(word)),
        )
        .hint("give its id, the beginning or end of its id, or `last`")
    })
}
