//! Folding the facts of a turn: start, limits, notes, end.

use crate::calls::open_call::OpenCall;
use crate::durable::apply::Refusal;
use crate::durable::{Durable, LastTurn, Phase, Turn};
use crate::planning::TurnPlan;
use crate::steps::guards::Guards;
use crate::steps::limits::action;
use agentd_protocol::{LoopLimits, NoteKind, Timestamp, TurnFinished, TurnId, TurnStarted, Usage};

impl Durable {
    pub(crate) fn running_turn(&mut self) -> Result<&mut Turn, Refusal> {
        self.turn.as_mut().ok_or("no turn runs")
    }

    /// The loop's settings; the defaults until the session exists.
    #[must_use]
    pub fn limits(&self) -> LoopLimits {
        self.settings
            .as_ref()
            .map(|settings| settings.limits.clone())
            .unwrap_or_default()
    }

    pub(crate) fn turn_started(
        &mut self,
        started: &TurnStarted,
        id: Option<TurnId>,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        self.still_open()?;
        let id = id.ok_or("the envelope names no turn")?;
        let planning = self.limits().planning;
        if self.turn.is_some() {
            return Err("another turn runs");
        }
        if started.inputs.iter().any(|input| self.waiting(*input).is_none()) {
            return Err("it starts with an input that does not wait");
        }
        let mut model = None;
        for waiting in &mut self.inbox {
            if started.inputs.contains(&waiting.queued.input) {
                waiting.taken = true;
                model = waiting.model.take().or(model);
            }
        }
        self.turn = Some(Turn {
            id,
            started_at: at,
            model,
            steps: 0,
            steps_granted: 0,
            tool_calls: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
            text: String::new(),
            phase: Phase::Ready,
            calls: Vec::new(),
            denied: false,
            summarizing: false,
            stopped_at_limit: false,
            guards: Guards::default(),
            stops: 0,
            goes_on: None,
            planning: TurnPlan::of(planning.enabled && !planning.intent_gate),
            classified: None,
            unmade: None,
            compactions: 0,
            compacted: (0, 0),
        });
        Ok(())
    }

    pub(crate) fn limit_reached(&mut self, what: &str) -> Result<(), Refusal> {
        match what {
            action::WARN => self.budget_warned = true,
            action::SUMMARIZE => self.running_turn()?.summarizing = true,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn note_injected(&mut self, kind: NoteKind, at: Timestamp) -> Result<(), Refusal> {
        let limits = self.limits();
        self.told(kind, at);
        if kind == NoteKind::JobNotice {
            self.job_news.clear();
        }
        if let Some(turn) = &mut self.turn {
            match kind {
                NoteKind::IntentNudge => turn.guards.nudges = turn.guards.nudges.saturating_add(1),
                NoteKind::Guard => turn.guards.told(&limits),
                // The first plan reminder asks for a plan; every later one says that steps are still open.
                NoteKind::PlanReminder if turn.steps > 0 => turn.planning = turn.planning.reminded(),
                NoteKind::PlanReminder => {}
                NoteKind::HookContext
                | NoteKind::LimitNotice
                | NoteKind::JobNotice
                | NoteKind::HistoryNotice
                | NoteKind::ContextNotice => {}
            }
        }
        Ok(())
    }

    pub(crate) fn turn_finished(&mut self, finished: &TurnFinished, at: Timestamp) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        if turn.calls.iter().any(OpenCall::is_open) {
            return Err("a tool call is unanswered (I3)");
        }
        if matches!(turn.phase, Phase::Streaming(_)) {
            return Err("the model still answers");
        }
        if !self.approvals.is_empty() {
            return Err("an approval is open");
        }
        self.turn = None;
        if self.lineage().is_some() {
            self.last_words.clone_from(&finished.text);
        }
        self.last = Some(LastTurn {
            at,
            reason: finished.reason,
            error: finished.error.clone(),
        });
        Ok(())
    }
}
