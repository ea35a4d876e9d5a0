//! Recorded files in a log: which changes of the working directory the session made between two of them. Pure.

use crate::past::{Change, Past};
use agentd_protocol::{EffectClass, Event, EventBody, Seq, Timestamp, TreeChanged, TurnId};

/// The digits of a tree's id that name a change.
const ID_DIGITS: usize = 12;
/// The code of the warning that files were not recorded.
const FAILED: &str = "checkpoint_failed";

/// What the session did between two recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval {
    /// After this event ...
    after: Seq,
    /// ... up to this one, which names the files.
    seq: Seq,
    /// Its last effect.
    end: Seq,
    at: Timestamp,
    turn: Option<TurnId>,
    /// Not only the file tools had effects.
    commands: bool,
    trees: TreeChanged,
}

/// The recorded files read from a log so far.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    intervals: Vec<Interval>,
    /// The recorded files, each from this event on.
    states: Vec<(Seq, String)>,
    last: Option<String>,
    /// The files that the first and the last recording left out, with reasons.
    left_out: Option<[Vec<String>; 2]>,
    /// The event that named them.
    last_seq: Seq,
    /// Effects since then: the last one.
    end: Option<(Seq, Timestamp, Option<TurnId>)>,
    commands: bool,
    /// Some effects since then were not recorded one by one.
    gap: bool,
    /// The session has a workspace of its own, so changes in a gap are its work.
    own: bool,
    /// The first effect that no recording covers.
    missed: Option<Seq>,
    jobs: usize,
}

impl Recorded {
    /// Processes the next event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events are not about files")]
    pub(crate) fn take(&mut self, event: &Event) {
        match &event.body {
            EventBody::SessionCreated(created) => self.own = created.workspace.is_some(),
            EventBody::ToolStarted(started) => match started.effect {
                EffectClass::Write => self.effect(event, false),
                EffectClass::Exec => self.effect(event, true),
                EffectClass::Read | EffectClass::Network | EffectClass::None => {}
            },
            EventBody::ToolFinished(_) if self.end.is_some() => self.effect(event, false),
            EventBody::SubagentFinished(_) => self.effect(event, true),
            EventBody::JobStarted(_) => self.jobs += 1,
            EventBody::JobFinished(_) | EventBody::JobLost(_) => {
                self.jobs = self.jobs.saturating_sub(1);
                self.effect(event, true);
            }
            EventBody::WarningRaised(raised) if raised.code == FAILED => self.gap = true,
            EventBody::WorkspaceCheckpointed(taken) => {
                let now = &taken.left_out;
                let left_out = self.left_out.get_or_insert_with(|| [now.clone(), Vec::new()]);
                left_out[1].clone_from(now);
                self.recorded(event, &taken.tree);
            }
            EventBody::UndoApplied(applied) => match &applied.trees {
                Some(trees) => {
                    self.end = None;
                    self.recorded(event, &trees.after);
                }
                None => self.effect(event, false),
            },
            _ => {}
        }
    }

    fn effect(&mut self, event: &Event, commands: bool) {
        // An undo and the end of a job may be outside of turns: then they belong to the turn before.
        let turn = event.turn.or_else(|| self.end.and_then(|(.., turn)| turn));
        self.end = Some((event.seq, event.at, turn));
        self.commands |= commands;
    }

    fn recorded(&mut self, event: &Event, tree: &str) {
        if self.jobs > 0 {
            self.effect(event, true);
        }
        let since = (std::mem::take(&mut self.end), std::mem::take(&mut self.commands));
        let gap = std::mem::take(&mut self.gap);
        let before = self.last.replace(tree.to_owned());
        let gap = gap && (!self.own || before.is_none());
        if gap {
            self.missed = self.missed.or(since.0.map(|(end, ..)| end));
        }
        if let (Some((end, at, turn)), commands) = since
            && let Some(before) = before.filter(|before| before != tree && !gap)
        {
            self.intervals.push(Interval {
                after: self.last_seq,
                seq: event.seq,
                end,
                at,
                turn,
                commands,
                trees: TreeChanged {
                    before,
                    after: tree.to_owned(),
                },
            });
        }
        let from = since.0.map_or(event.seq, |(end, ..)| end);
        self.states.push((from, tree.to_owned()));
        self.last_seq = event.seq;
    }

    /// The files that the last recording left out and the first one did not, with reasons.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let [first, last] = self.left_out.clone().unwrap_or_default();
        last.into_iter().filter(|line| !first.contains(line)).collect()
    }

    /// Whether any files were recorded.
    pub(crate) const fn any(&self) -> bool {
        self.last.is_some()
    }

    /// The first effect of the session that no recording covers, because one failed.
    pub(crate) fn missed(&self) -> Option<Seq> {
        let last = self.end.filter(|_| self.gap).map(|(end, ..)| end);
        self.missed.or(last)
    }

    /// The recorded files at an event.
    pub(crate) fn at(&self, seq: Seq) -> Option<&str> {
        let known = self.states.iter().rev().find(|(from, _)| *from <= seq);
        known.map(|(_, tree)| tree.as_str())
    }
}

impl Past {
    /// Adds the recorded changes. Those of commands stand for the single changes that are part of them.
    pub(crate) fn with_recorded(&mut self) {
        for interval in std::mem::take(&mut self.recorded.intervals) {
            let within = |change: &&mut Change| interval.after < change.seq && change.seq <= interval.seq;
            let mut covered = Vec::new();
            for change in self.changes.iter_mut().filter(within) {
                change.trees = Some(interval.trees.clone());
                change.within = interval.commands;
                covered.push((change.below, change.seq));
            }
            if !interval.commands {
                continue;
            }
            let own = covered.iter().filter(|(below, _)| below.is_none());
            self.changes.push(Change {
                seq: interval.seq,
                end: interval.end,
                at: interval.at,
                below: None,
                turn: interval.turn,
                id: interval.trees.after.chars().take(ID_DIGITS).collect(),
                files: Vec::new(),
                trees: Some(interval.trees),
                within: false,
                covers: own.map(|(_, seq)| *seq).collect(),
                covers_below: covered.iter().filter_map(|(below, _)| *below).collect(),
                undoes: Vec::new(),
                undoes_below: Vec::new(),
            });
        }
        self.changes.sort_by_key(|change| change.at);
    }
}

/// The recorded changes to revert, in their order; none: these are single files, or not all of them were recorded.
pub(crate) fn trees<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Option<Vec<TreeChanged>> {
    let whole = changes
        .clone()
        .any(|change| change.files.is_empty() && change.trees.is_some());
    let mut found: Vec<TreeChanged> = Vec::new();
    for change in changes.filter(|_| whole) {
        let trees = change.trees.as_ref()?;
        if found.last() != Some(trees) {
            found.push(trees.clone());
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

#[cfg(test)]
mod tests;
