//! Work on files and history: restoring files, going back to an earlier point of the conversation. The intent is
//! durable before the effect (I4); the effect checks before it writes, so it can be repeated after a crash.

use crate::draft::Draft;
use crate::durable::apply::Refusal;
use crate::durable::{Durable, OpenHistory, Totals};
use crate::effect::Reply;
use crate::planning::Plan;
use crate::questions::{self, Question, Subject};
use crate::words;
use agentd_protocol::{
    Fault, HistoryFailed, HistoryStarted, NoteInjected, NoteKind, Seq, SessionRewound, Spent, Timestamp,
    UndoApplied,
};

/// A principal's request to restore files or the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Rework {
    /// The log's head when the request was made; the request is refused if the head has moved since.
    pub head: Seq,
    /// The work.
    pub work: HistoryStarted,
}

/// How the work ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reworked {
    /// The files are as requested, and the conversation can be.
    Done(UndoApplied),
    /// Nothing was changed.
    Failed(HistoryFailed),
}

impl Reworked {
    /// The outcome of work that somebody could not do, or did not finish.
    #[must_use]
    pub fn not_done(why: &str) -> Self {
        Self::Failed(HistoryFailed {
            code: "E_TOOL".to_owned(),
            message: format!("cannot restore the files: {why}; some may already be restored"),
        })
    }
}

/// Refuses commands that cannot run while such work is open.
pub(crate) fn none_open(draft: &Draft<'_, '_>) -> Result<(), Fault> {
    match draft.durable().history {
        None => Ok(()),
        Some(_) => Err(Fault::conflict(
            "history_busy",
            "files or the conversation of this session are being put back",
        )
        .hint("try again in a moment")),
    }
}

/// Starts the work, if nothing else is running.
pub(crate) fn begin(draft: &mut Draft<'_, '_>, rework: Rework) -> Result<Reply, Fault> {
    if draft.turn().is_some() {
        return Err(Fault::conflict("turn_running", "a turn runs in this session")
            .hint("cancel it first, or wait for its end"));
    }
    none_open(draft)?;
    if !draft.durable().children.is_empty() {
        return Err(Fault::conflict(
            "subagents_running",
            "sub-agents of this session have not ended yet",
        )
        .hint("wait for their end: `agentctl ps --tree` shows them"));
    }
    if draft.seen().shrinking.is_some() || draft.durable().compaction_asked {
        return Err(
            Fault::conflict("compacting", "the conversation is being compacted")
                .hint("try again when that is done"),
        );
    }
    if draft.durable().head != rework.head {
        return Err(
            Fault::conflict("session_moved_on", "the session went on meanwhile")
                .hint("look at it and try again"),
        );
    }
    if rework.work.rewind_to.is_some() && !draft.durable().inbox.is_empty() {
        return Err(
            Fault::conflict("inputs_wait", "inputs wait in this session, so it cannot go back")
                .hint("cancel them first, or let them run"),
        );
    }
    draft.emit_by_caller(rework.work);
    start(draft);
    Ok(Reply::Done { seq: 0 })
}

/// The seq of work that was started but is not running in this incarnation.
pub(crate) fn lost(draft: &Draft<'_, '_>) -> Option<Seq> {
    let open = draft.durable().history.as_ref().map(|open| open.seq);
    open.filter(|seq| !draft.seen().questions.is_pending(&Subject::Rework(*seq)))
}

/// Repeats interrupted work after a restart.
pub(crate) fn again(draft: &mut Draft<'_, '_>) {
    if lost(draft).is_some() {
        start(draft);
    }
}

fn start(draft: &mut Draft<'_, '_>) {
    let Some(work) = draft.durable().history.clone().map(Box::new) else {
        return;
    };
    questions::ask(draft, Question::Rework(work));
}

/// Records the end of the work and tells the model.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, reworked: Reworked) {
    let Some(OpenHistory { seq, started }) = draft.durable().history.clone() else {
        return;
    };
    let applied = match reworked {
        Reworked::Failed(failed) => return draft.emit(failed),
        Reworked::Done(applied) => applied,
    };
    let mut files: Vec<String> = started.files.iter().map(|file| file.path.clone()).collect();
    files.extend(applied.paths.iter().cloned());
    if !files.is_empty() || !started.trees.is_empty() {
        draft.emit(applied);
    }
    let rewound = started.rewind_to.is_some();
    if let Some(to_seq) = started.rewind_to {
        draft.emit(SessionRewound {
            to_seq,
            from_seq: seq,
            todo: started.todo,
            plan: started.plan,
            stays: started.stays,
        });
    }
    draft.emit(NoteInjected {
        kind: NoteKind::HistoryNotice,
        text: words::put_back(&files, rewound, !started.trees.is_empty()),
    });
}

impl Durable {
    pub(crate) fn history_started(&mut self, started: &HistoryStarted, seq: Seq) -> Result<(), Refusal> {
        self.still_open()?;
        if self.turn.is_some() {
            return Err("a turn runs");
        }
        if self.history.is_some() {
            return Err("other work on the history is open");
        }
        if started.rewind_to.is_some_and(|to| to >= seq) {
            return Err("nobody can go back to what was not yet");
        }
        let started = started.clone();
        self.history = Some(OpenHistory { seq, started });
        Ok(())
    }

    pub(crate) fn history_failed(&mut self) -> Result<(), Refusal> {
        self.history
            .take()
            .map(drop)
            .ok_or("no work on the history is open")
    }

    pub(crate) fn undo_applied(&mut self, applied: &UndoApplied, seq: Seq) -> Result<(), Refusal> {
        match &applied.trees {
            Some(trees) => {
                self.files.tree = Some(trees.after.clone());
                self.files.recorded = seq;
            }
            None => self.files.touched = seq,
        }
        let open = self.history.as_ref().ok_or("no work on the history is open")?;
        if open.started.rewind_to.is_none() {
            self.history = None;
        }
        Ok(())
    }

    /// Folds a fork: resets the totals, because the original session's spending is not this session's. What a principal asked
    /// of the original is not asked of the fork, which nobody wakes to do it.
    pub(crate) fn forked(&mut self, at: Timestamp) -> Result<(), Refusal> {
        self.created_at = at;
        self.totals = Totals::default();
        self.below = Spent::default();
        self.subagents = 0;
        self.compaction_asked = false;
        // It is at home where it is made.
        self.home.clear();
        Ok(())
    }

    pub(crate) fn session_rewound(&mut self, rewound: &SessionRewound) -> Result<(), Refusal> {
        let open = self.history.take().ok_or("no work on the history is open")?;
        if open.started.rewind_to != Some(rewound.to_seq) || open.seq != rewound.from_seq {
            return Err("the work that is open is another");
        }
        self.todo.clone_from(&rewound.todo);
        // Logs of older versions do not say which plan was current then: the model makes a new one if it needs one.
        self.plan = Plan {
            steps: rewound.plan.steps.clone(),
            replans: rewound.plan.replans,
        };
        self.forget_told(true);
        self.shortened(false)
    }
}
