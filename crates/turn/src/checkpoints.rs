//! Checkpoints: the files of the working directory are recorded at the start of a turn and after each step that may
//! have changed them. The next model call does not wait for that; the next effect does.
//!
//! The fact travels with the append before the next effect, so it costs no append of its own.

use crate::draft::Draft;
use crate::durable::apply::Refusal;
use crate::durable::{Durable, Phase, Turn};
use crate::questions::{self, Question, Subject};
use crate::{Config, calls::judging, setup, tree::delegate, volatile::Volatile};
use agentd_protocol::{EffectClass, Event, EventBody, Seq, TurnId, WarningRaised, WorkspaceCheckpointed};
use serde::{Deserialize, Serialize};

/// The code of the warning that files are not recorded.
pub(crate) const FAILED: &str = "checkpoint_failed";

/// When files are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckpointRule {
    /// Never.
    #[default]
    Off,
    /// At the start and the end of each turn.
    Turn,
    /// At the start of each turn and after each step that may have changed files.
    Step,
}

/// What the log says about recorded files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedFiles {
    /// The tree that was recorded last.
    pub tree: Option<String>,
    /// Where that is in the log.
    pub recorded: Seq,
    /// The last event after which files may have been changed by the session.
    pub touched: Seq,
    /// The start of the last turn: before it, others may have changed files.
    pub began: Seq,
    /// People know that files are not recorded.
    pub warned: bool,
    /// The tree that the store kept last.
    #[serde(default)]
    pub kept: Option<String>,
    /// The bytes of all that the store keeps.
    #[serde(default)]
    pub kept_bytes: u64,
}

impl RecordedFiles {
    /// Notes where files may have been changed, apart from calls.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events are not about files")]
    pub(crate) fn take(&mut self, event: &Event) {
        match event.body {
            EventBody::TurnStarted(_) => self.began = event.seq,
            EventBody::JobFinished(_) | EventBody::JobLost(_) | EventBody::SubagentFinished(_) => {
                self.touched = event.seq;
            }
            _ => {}
        }
    }
}

/// What this incarnation knows about recorded files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checkpoints {
    /// The head of the log when the files were last asked for.
    asked: Option<Seq>,
    /// Recorded files that are not in the log yet.
    taken: Option<WorkspaceCheckpointed>,
    /// The turn in which recording failed; the next turn tries again.
    given_up: Option<TurnId>,
}

/// Whether an effect may change the files of the working directory.
pub(crate) const fn touches(effect: EffectClass) -> bool {
    matches!(effect, EffectClass::Write | EffectClass::Exec)
}

/// Whether the files must be recorded before the next effect.
pub(crate) fn comes_first(durable: &Durable, volatile: &Volatile, config: &Config) -> bool {
    !volatile.draining
        && (volatile.questions.is_pending(&Subject::Checkpoint) || is_due(durable, volatile, config))
}

/// Whether the files that the turn changed must be recorded first: a reader who learns that it ended also finds them.
pub(crate) fn come_before_the_end(draft: &Draft<'_, '_>) -> bool {
    let files = &draft.durable().files;
    let pending = draft.seen().questions.is_pending(&Subject::Checkpoint);
    files.touched > files.recorded && (pending || may_begin(draft))
}

fn is_due(durable: &Durable, volatile: &Volatile, config: &Config) -> bool {
    if config.checkpoints == CheckpointRule::Off || durable.history.is_some() {
        return false;
    }
    let files = &durable.files;
    let asked = volatile.checkpoints.asked;
    match &durable.turn {
        Some(turn) if volatile.checkpoints.given_up == Some(turn.id) => false,
        // Many turns go on at once after a restart: the files of each can wait until its model has answered.
        Some(turn) if asked.is_none() && files.recorded >= files.began && awaits_model(turn, volatile) => {
            false
        }
        Some(_) => {
            let asked = asked.unwrap_or(0);
            asked < files.began || config.checkpoints == CheckpointRule::Step && asked < files.touched
        }
        // What an earlier incarnation left is recorded when the next turn begins.
        None => asked.is_some_and(|asked| asked < files.touched),
    }
}

/// Whether the turn has no answer of the model yet to act on.
const fn awaits_model(turn: &Turn, volatile: &Volatile) -> bool {
    volatile.answer.is_none()
        && matches!(
            turn.phase,
            Phase::Ready | Phase::Streaming(_) | Phase::BackingOff { .. }
        )
}

/// Whether it is due to record the files, and nothing is changing them.
fn may_begin(draft: &Draft<'_, '_>) -> bool {
    !draft.seen().draining
        && draft.durable().closed.is_none()
        && !draft.seen().questions.is_pending(&Subject::Checkpoint)
        && is_due(draft.durable(), draft.seen(), draft.config())
        && !is_changing(draft.durable())
        && !setup::is_missing(draft.durable(), draft.config())
}

/// Asks for the files to be recorded, if they may be.
pub(crate) fn begin(draft: &mut Draft<'_, '_>) {
    if !may_begin(draft) {
        return;
    }
    let head = draft.durable().head;
    draft.volatile().checkpoints.asked = Some(head);
    questions::ask(draft, Question::Checkpoint);
}

/// Whether a call runs that may change files.
fn is_changing(durable: &Durable) -> bool {
    durable.open_calls().any(|call| match &call.stage {
        crate::Stage::Running(started) => touches(started.effect) || delegate::is_child(durable, call),
        _ => false,
    })
}

/// The files were recorded, or not.
pub(crate) fn answered(draft: &mut Draft<'_, '_>, taken: Result<WorkspaceCheckpointed, String>) {
    match taken {
        Ok(taken) => {
            draft.volatile().checkpoints.taken = Some(taken);
            if draft.turn().is_none() {
                record(draft);
            }
        }
        Err(why) => {
            let turn = draft.turn().map(|turn| turn.id);
            draft.volatile().checkpoints.given_up = turn;
            if !draft.durable().files.warned && draft.durable().closed.is_none() {
                draft.emit(WarningRaised {
                    code: FAILED.to_owned(),
                    message: format!("undo and diff do not cover what commands do: {why}"),
                });
            }
        }
    }
    judging::go_on(draft);
}

/// Writes recorded files into the log, unless it already says so.
pub(crate) fn record(draft: &mut Draft<'_, '_>) {
    let Some(taken) = draft.volatile().checkpoints.taken.take() else {
        return;
    };
    let files = &draft.durable().files;
    let known = files.tree.as_ref() == Some(&taken.tree) && files.touched <= files.recorded;
    if !known && draft.durable().closed.is_none() {
        draft.emit(taken);
    }
}

impl Durable {
    pub(crate) fn checkpointed(&mut self, taken: &WorkspaceCheckpointed, seq: Seq) -> Result<(), Refusal> {
        self.still_open()?;
        self.files.tree = Some(taken.tree.clone());
        self.files.recorded = seq;
        self.files.warned = false;
        if let Some(kept) = &taken.kept {
            self.files.kept = Some(taken.tree.clone());
            self.files.kept_bytes = self.files.kept_bytes.saturating_add(kept.bytes);
        }
        Ok(())
    }
}
