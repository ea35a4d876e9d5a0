//! The file changes in a log, and the points that a conversation can return to. Pure.

use crate::past_files::Recorded;
use agentd_protocol::{
    Block, ChangeBelow, EffectClass, Event, EventBody, FileBack, FileChanged, PlanThen, Seq, SessionId,
    Timestamp, TodoItem, ToolCallId, TreeChanged, TurnId,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of listed actions that an undo cannot revert.
const MAX_STAYS: usize = 50;

/// One change of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// For a sub-agent's change: where the sub-agent was started.
    pub(crate) seq: Seq,
    /// Its last effect.
    pub(crate) end: Seq,
    pub(crate) at: Timestamp,
    /// The sub-agent that made it, and its place in that log.
    pub(crate) below: Option<ChangeBelow>,
    pub(crate) turn: Option<TurnId>,
    /// Its undo id.
    pub(crate) id: String,
    pub(crate) files: Vec<FileChanged>,
    /// The recorded files before and after it, or before and after the step that it is part of.
    pub(crate) trees: Option<TreeChanged>,
    /// It is part of a recorded change.
    pub(crate) within: bool,
    /// The changes that are part of it.
    pub(crate) covers: Vec<Seq>,
    /// Those of sub-agents.
    pub(crate) covers_below: Vec<ChangeBelow>,
    /// The changes that it undid, if it is an undo by a person.
    pub(crate) undoes: Vec<Seq>,
    /// The changes of sub-agents that it undid.
    pub(crate) undoes_below: Vec<ChangeBelow>,
}

impl Change {
    /// Whether it undoes other changes.
    pub(crate) const fn is_undo(&self) -> bool {
        !self.undoes.is_empty() || !self.undoes_below.is_empty()
    }
}

/// A point that a conversation can return to: no request to a model or a tool is open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Point {
    seq: Seq,
    todo: Vec<TodoItem>,
    plan: PlanThen,
}

/// The history read from a log so far.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) changes: Vec<Change>,
    pub(crate) head: Seq,
    /// Turns with the seq of their first event.
    turns: Vec<(TurnId, Seq)>,
    /// Its sub-agents: each with its tool call, and the seq and turn of its start.
    pub(crate) started: Vec<(SessionId, ToolCallId, Seq, Option<TurnId>)>,
    /// Commands and network requests; they cannot be undone.
    pub(crate) lasting: Vec<(Seq, Option<TurnId>, String)>,
    /// The recorded files.
    pub(crate) recorded: Recorded,
    /// The last seq at which a point is accepted.
    upto: Seq,
    point: Option<Point>,
    todo: Vec<TodoItem>,
    plan: PlanThen,
    asking: bool,
    open: BTreeSet<String>,
    reworking: bool,
    /// Where the lines of an imported log end.
    imported: Seq,
    /// The files of the open undo or rewind.
    wanted: Vec<FileBack>,
}

impl Past {
    /// An empty history that accepts points up to this seq.
    pub(crate) fn upto(upto: Seq) -> Self {
        Self {
            upto,
            ..Self::default()
        }
    }

    /// Processes the next event.
    pub(crate) fn take(&mut self, event: &Event) {
        self.head = event.seq;
        self.recorded.take(event);
        self.files(event);
        self.openings(event);
        // The open work among the lines of an imported log is unknown.
        let quoted = matches!(event.body, EventBody::ImportedEvent(_)) && event.seq < self.imported;
        let rests = !self.asking && self.open.is_empty() && !self.reworking;
        if event.seq <= self.upto && rests && !quoted {
            self.point = Some(Point {
                seq: event.seq,
                todo: self.todo.clone(),
                plan: self.plan.clone(),
            });
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most events are not about files")]
    fn files(&mut self, event: &Event) {
        match &event.body {
            EventBody::TurnStarted(_) => self.turns.extend(event.turn.map(|turn| (turn, event.seq))),
            EventBody::ToolStarted(started)
                if matches!(started.effect, EffectClass::Exec | EffectClass::Network) =>
            {
                self.lasting.push((event.seq, event.turn, started.title.clone()));
            }
            EventBody::ToolFinished(finished) => {
                let details = finished.outcome.details.as_ref();
                let id = details.and_then(|details| details.get("undo_id")?.as_str());
                let files = details.and_then(|details| details.get("changes")).map(listed);
                if let (Some(id), Some(files)) = (id, files) {
                    self.change(event, id, files, Default::default());
                }
            }
            EventBody::HistoryStarted(started) => self.wanted.clone_from(&started.files),
            EventBody::UndoApplied(applied) => {
                let mut files = applied.changes.clone();
                files.extend(was_so_already(&self.wanted, &applied.changes));
                let undoes = (applied.undoes.clone(), applied.undoes_below.clone());
                self.change(event, &applied.undo_id, files, undoes);
                if let Some(change) = self.changes.last_mut().filter(|change| change.seq == event.seq) {
                    change.trees.clone_from(&applied.trees);
                }
            }
            EventBody::SubagentStarted(started) => {
                let of = (started.child, started.tool_call, event.seq, event.turn);
                self.started.push(of);
            }
            _ => {}
        }
    }

    fn change(
        &mut self,
        event: &Event,
        id: &str,
        files: Vec<FileChanged>,
        (undoes, undoes_below): (Vec<Seq>, Vec<ChangeBelow>),
    ) {
        if !files.is_empty() || !undoes.is_empty() || !undoes_below.is_empty() {
            self.changes.push(Change {
                seq: event.seq,
                end: event.seq,
                at: event.at,
                below: None,
                turn: event.turn,
                id: id.to_owned(),
                files,
                trees: None,
                within: false,
                covers: Vec::new(),
                covers_below: Vec::new(),
                undoes,
                undoes_below,
            });
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events open and close nothing"
    )]
    fn openings(&mut self, event: &Event) {
        match &event.body {
            // After it comes the event that created the session.
            EventBody::SessionImported(it) => self.imported = (event.seq + 1).saturating_add(it.events),
            EventBody::ModelStarted(_) => self.asking = true,
            EventBody::ModelFinished(finished) => {
                self.asking = false;
                self.open
                    .extend(finished.content.iter().filter_map(|block| match block {
                        Block::ToolUse { id, .. } => Some(id.clone()),
                        _ => None,
                    }));
            }
            EventBody::ToolFinished(finished) => self.close(finished.tool_call),
            EventBody::TurnFinished(_) => {
                self.asking = false;
                self.open.clear();
            }
            EventBody::TodoUpdated(updated) => self.todo.clone_from(&updated.items),
            EventBody::PlanUpdated(updated) => {
                self.plan = PlanThen {
                    steps: updated.steps.clone(),
                    replans: updated.replans,
                };
            }
            EventBody::HistoryStarted(_) => self.reworking = true,
            EventBody::HistoryFailed(_) | EventBody::UndoApplied(_) => self.reworking = false,
            EventBody::SessionRewound(rewound) => {
                self.reworking = false;
                self.todo.clone_from(&rewound.todo);
                self.plan.clone_from(&rewound.plan);
            }
            _ => {}
        }
    }

    fn close(&mut self, call: ToolCallId) {
        self.open.remove(&call.to_string());
    }

    /// The last point that a conversation can return to, with the to-do list and the plan at that time.
    pub(crate) fn point(&self) -> Option<(Seq, Vec<TodoItem>, PlanThen)> {
        let point = self.point.as_ref()?;
        Some((point.seq, point.todo.clone(), point.plan.clone()))
    }

    /// Resolves a reference to a turn.
    pub(crate) fn turn(&self, word: &str) -> Option<TurnId> {
        if word == "last" {
            return self.turns.last().map(|(turn, _)| *turn);
        }
        let plain = |text: &str| text.replace('-', "").to_ascii_lowercase();
        let word = plain(word);
        let mut found = self.turns.iter().filter(|(turn, _)| {
            let id = plain(&turn.to_string());
            !word.is_empty() && (id.starts_with(&word) || id.ends_with(&word))
        });
        match (found.next(), found.next()) {
            (Some((turn, _)), None) => Some(*turn),
            (None, _) | (Some(_), Some(_)) => None,
        }
    }

    /// Changes that have not been undone.
    pub(crate) fn standing(&self) -> impl Iterator<Item = &Change> {
        let mut undone = BTreeSet::new();
        for change in self.changes.iter().rev() {
            if !undone.contains(&place(change)) {
                undone.extend(change.undoes.iter().map(|seq| (None, *seq)));
                let below = change.undoes_below.iter();
                undone.extend(below.map(|of| (Some(of.session), of.seq)));
            }
        }
        self.changes
            .iter()
            .filter(move |change| !undone.contains(&place(change)))
    }

    /// The names of the last commands and network requests among the chosen events; their effects cannot be undone.
    pub(crate) fn stays(&self, chosen: impl Fn(Seq, Option<TurnId>) -> bool) -> Vec<String> {
        let chosen = self.lasting.iter().filter(|(seq, turn, _)| chosen(*seq, *turn));
        let names: Vec<&String> = chosen.map(|(.., title)| title).collect();
        let left_out = names.len().saturating_sub(MAX_STAYS);
        let more = (left_out > 0).then(|| format!("{left_out} more before these"));
        more.into_iter()
            .chain(names.into_iter().skip(left_out).cloned())
            .collect()
    }
}

/// The log that the change is in, and its seq there.
fn place(change: &Change) -> (Option<SessionId>, Seq) {
    match change.below {
        Some(of) => (Some(of.session), of.seq),
        None => (None, change.seq),
    }
}

/// Files that an undo did not write because they already were as wanted: an interrupted undo had restored them, or a
/// person. They count as written by this undo.
fn was_so_already(wanted: &[FileBack], written: &[FileChanged]) -> Vec<FileChanged> {
    let left = wanted
        .iter()
        .filter(|back| written.iter().all(|file| file.path != back.path));
    left.map(|back| FileChanged {
        path: back.path.clone(),
        before_sha256: back.now.clone(),
        after_sha256: back.wanted.clone(),
        mode: back.mode,
    })
    .collect()
}

fn listed(changes: &Value) -> Vec<FileChanged> {
    let changes = changes.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |change: &Value| serde_json::from_value(change.clone()).ok();
    changes.iter().filter_map(read).collect()
}

/// The files to restore to undo these changes, which are in log order.
pub(crate) fn back<'a>(changes: impl Iterator<Item = &'a Change>) -> Vec<FileBack> {
    let mut files: BTreeMap<&str, FileBack> = BTreeMap::new();
    for file in changes.flat_map(|change| &change.files) {
        match files.get_mut(file.path.as_str()) {
            Some(back) => back.now.clone_from(&file.after_sha256),
            None => {
                let back = FileBack {
                    path: file.path.clone(),
                    now: file.after_sha256.clone(),
                    wanted: file.before_sha256.clone(),
                    mode: file.mode,
                };
                files.insert(&file.path, back);
            }
        }
    }
    let files = files.into_values();
    files.filter(|back| back.now != back.wanted).collect()
}

#[cfg(test)]
mod tests;
