//! The running attempt of the step's model call. Events of any other attempt are outdated, and ignored.

use crate::machine::{Machine, Mutant};
use crate::work::{ModelRun, Task};
use agentd_actor_kit::QueuePosition;
use agentd_protocol::{CallId, FailureClass};
use agentd_turn::{Input, ModelAnswer, ModelFailure, Phase};

impl Machine {
    /// The attempt's worker was started.
    pub const fn model_started(&mut self, (call, attempt): (CallId, u32)) {
        self.model = Some(ModelRun {
            call,
            attempt,
            waits: None,
        });
    }

    /// The running attempt.
    #[must_use]
    pub(crate) const fn model(&self) -> Option<ModelRun> {
        self.model
    }

    fn running(&mut self, (call, attempt): (CallId, u32)) -> Option<&mut ModelRun> {
        let run = self.model.as_mut();
        run.filter(|run| run.call == call && run.attempt == attempt)
    }

    /// Whether this attempt is the running one.
    pub fn is_running(&mut self, id: (CallId, u32)) -> bool {
        self.running(id).is_some()
    }

    /// The attempt waits for a permit.
    pub fn model_waits(&mut self, id: (CallId, u32), place: Option<QueuePosition>) {
        if let Some(run) = self.running(id) {
            run.waits = Some(place);
        }
    }

    /// The attempt has its permit. The model's server may have a smaller window than the configuration says: the next call
    /// is prepared for that window.
    pub fn model_granted(&mut self, id: (CallId, u32), window: Option<u64>) {
        let Some(run) = self.running(id) else { return };
        run.waits = None;
        let turn = self.agent.durable().turn.as_ref();
        if let Some(window) = window
            && let Some(Phase::Streaming(attempt)) = turn.map(|turn| &turn.phase)
        {
            self.windows.insert(attempt.model.clone(), window);
        }
    }

    /// A fragment of the answer.
    pub fn model_text(&mut self, (call, attempt): (CallId, u32), text: String) {
        if self.is_running((call, attempt)) {
            self.push(Task::of(Input::ModelText { call, attempt, text }));
        }
    }

    /// The answer.
    pub fn model_answered(&mut self, (call, attempt): (CallId, u32), answer: ModelAnswer) {
        if self.drop_model((call, attempt)) {
            self.push(Task::of(Input::ModelAnswered {
                call,
                attempt,
                answer,
            }));
        }
    }

    /// The attempt failed, or its worker went down.
    pub fn model_failed(&mut self, (call, attempt): (CallId, u32), failure: ModelFailure) {
        if self.drop_model((call, attempt)) && !self.has(Mutant::LostDown) {
            self.could_not_start((call, attempt), failure);
        }
    }

    /// The attempt has no worker.
    pub fn could_not_start(&mut self, (call, attempt): (CallId, u32), failure: ModelFailure) {
        self.push(Task::of(Input::ModelFailed {
            call,
            attempt,
            failure,
        }));
    }

    /// Forgets the attempt; true when it was the running one.
    pub fn drop_model(&mut self, id: (CallId, u32)) -> bool {
        let current = self.is_running(id);
        if current {
            self.model = None;
        }
        current
    }

    /// The daemon drains. A call without a permit has sent nothing: it does not delay the drain, and continues after the
    /// restart. Returns it; its worker is to be killed.
    pub fn leave_line(&mut self) -> Option<(CallId, u32)> {
        let run = self.model.take_if(|run| run.waits.is_some())?;
        let failure = ModelFailure {
            retry_after_ms: Some(1),
            refused: true,
            ..ModelFailure::new(
                FailureClass::Transient,
                "not sent: the daemon stopped before its turn came",
            )
        };
        self.could_not_start((run.call, run.attempt), failure);
        Some((run.call, run.attempt))
    }
}
