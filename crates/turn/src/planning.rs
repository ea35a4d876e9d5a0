//! Explicit planning: a plan is made, its steps are done one by one with evidence, and it may be changed a limited
//! number of times. Completed steps never change.

pub(crate) mod classify;
pub(crate) mod intent_guard;
pub(crate) mod plan_mode;

use crate::draft::Draft;
use crate::durable::apply::Refusal;
use crate::durable::{Durable, Turn};
use crate::planning::classify::Classified;
use crate::{side, steps::limits, words};
use agentd_protocol::{
    InputId, IntentClassified, IntentSource, NoteInjected, NoteKind, PermissionMode, PlanStatus, PlanStep,
    PlanUpdated, Planning, SidePurpose, Timestamp, ToolCallId, ToolFinished, ToolOutcome, ToolStatus,
};
use serde::Serialize;

/// A call's message about the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanRequest {
    /// The steps: a new plan, or a replacement of the present one's open steps.
    Steps {
        /// Each step with the way to check it.
        steps: Vec<(String, String)>,
        /// Why the present plan is changed.
        reason: Option<String>,
    },
    /// A step is completed.
    Done {
        /// Its number, from 1.
        step: u32,
        /// The result of the check.
        evidence: String,
    },
}

/// Whether a turn starts with a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPlan {
    /// It does not.
    #[default]
    None,
    /// It does.
    Wanted,
    /// It does, and the model has been reminded of open steps.
    Reminded,
}

impl TurnPlan {
    pub(crate) const fn of(wanted: bool) -> Self {
        if wanted { Self::Wanted } else { Self::None }
    }

    pub(crate) const fn reminded(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Wanted | Self::Reminded => Self::Reminded,
        }
    }
}

/// The plan of the current work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Plan {
    /// Its steps.
    pub steps: Vec<PlanStep>,
    /// How often it has been changed.
    pub replans: u32,
}

impl Plan {
    /// The numbers of the open steps.
    pub(crate) fn open(&self) -> Vec<usize> {
        let numbered = self.steps.iter().zip(1..);
        numbered
            .filter(|(step, _)| step.status == PlanStatus::Pending)
            .map(|(_, number)| number)
            .collect()
    }

    /// The plan after a call, or why it stays unchanged.
    fn after(&self, request: PlanRequest, limits: &Planning) -> Result<(Self, Option<String>), String> {
        match request {
            PlanRequest::Done { step, evidence } => self.done(step, evidence).map(|plan| (plan, None)),
            PlanRequest::Steps { steps, reason } => {
                let (done, replans) = if self.open().is_empty() {
                    (Vec::new(), 0)
                } else {
                    self.may_change(reason.as_deref(), limits)?;
                    (self.done_steps(), self.replans.saturating_add(1))
                };
                let all = steps.len() + done.len();
                if all > usize::try_from(limits.max_steps).unwrap_or(usize::MAX) {
                    return Err(format!(
                        "The plan is not kept: it has {all} steps, at most {} are possible. Put small steps together.",
                        limits.max_steps
                    ));
                }
                let open = steps.into_iter().map(|(title, check)| PlanStep {
                    title,
                    check,
                    status: PlanStatus::Pending,
                    evidence: None,
                });
                let steps = done.into_iter().chain(open).collect();
                Ok((Self { steps, replans }, reason))
            }
        }
    }

    fn may_change(&self, reason: Option<&str>, limits: &Planning) -> Result<(), String> {
        if self.replans >= limits.max_replans {
            return Err(format!(
                "The plan stays: it was changed {} times, and more is not possible. Do its open steps, or end and say what \
                 keeps you.",
                self.replans
            ));
        }
        if reason.is_none_or(|reason| reason.trim().is_empty()) {
            return Err("The plan stays: steps are open. Say in `reason` why it has to change.".to_owned());
        }
        Ok(())
    }

    fn done_steps(&self) -> Vec<PlanStep> {
        let done = self.steps.iter().filter(|step| step.status == PlanStatus::Done);
        done.cloned().collect()
    }

    fn done(&self, number: u32, evidence: String) -> Result<Self, String> {
        let mut plan = self.clone();
        let at = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let count = plan.steps.len();
        let Some(step) = at.and_then(|at| plan.steps.get_mut(at)) else {
            return Err(format!("There is no step {number}: the plan has {count} steps."));
        };
        if step.status == PlanStatus::Done {
            return Err(format!("Step {number} is done already."));
        }
        if evidence.trim().is_empty() {
            return Err(format!(
                "Step {number} is not done yet: do its check ({}) and give the result in `evidence`.",
                step.check
            ));
        }
        step.status = PlanStatus::Done;
        step.evidence = Some(evidence);
        Ok(plan)
    }
}

/// Carries out an allowed call about the plan.
pub(crate) fn start(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, request: PlanRequest) {
    let limits = draft.durable().limits().planning;
    let outcome = match draft.durable().plan.after(request, &limits) {
        Ok((plan, reason)) => {
            let text = words::plan_kept(&plan);
            draft.emit(PlanUpdated {
                tool_call,
                steps: plan.steps,
                replans: plan.replans,
                reason,
            });
            ToolOutcome::text(ToolStatus::Ok, text)
        }
        Err(why) => ToolOutcome::text(ToolStatus::Error, why),
    };
    draft.emit(ToolFinished { tool_call, outcome });
}

/// The beginnings of the inputs that start a turn, as text.
pub(crate) fn words_of(draft: &Draft<'_, '_>, inputs: &[InputId]) -> String {
    let waiting = inputs.iter().filter_map(|input| draft.durable().waiting(*input));
    let words: Vec<&str> = waiting.map(|waiting| waiting.queued.preview.as_str()).collect();
    words.join("\n")
}

/// Decides from the intent of the inputs whether the turn starts with a plan. If their wording leaves the intent open,
/// a model is asked, if one is configured for that.
pub(crate) fn classify(draft: &mut Draft<'_, '_>, words: &str) {
    if !draft.durable().limits().planning.intent_gate {
        return;
    }
    let classified = classify::classify(words);
    if !side::ask_intent(draft, words, classified.confidence) {
        write_down(draft, classified, IntentSource::Heuristics);
    }
}

/// Records the intent that a model found; without one, the wording decides.
pub(crate) fn classified(draft: &mut Draft<'_, '_>, by_model: Option<Classified>) {
    let open = draft.turn().is_some_and(|turn| turn.classified.is_none());
    if !open {
        return;
    }
    match by_model {
        Some(classified) => write_down(draft, classified, IntentSource::Model),
        None => {
            let words = words_of_turn(draft);
            write_down(draft, classify::classify(&words), IntentSource::Heuristics);
        }
    }
}

fn write_down(draft: &mut Draft<'_, '_>, classified: Classified, source: IntentSource) {
    let enabled = draft.durable().limits().planning.enabled && draft.durable().offers(words::PLAN);
    draft.emit(IntentClassified {
        label: classified.label,
        confidence: classified.confidence,
        reason: classified.reason,
        planning: enabled && classify::plans(classified.label),
        source,
    });
}

/// The beginnings of the inputs that the running turn started with and that have not joined.
fn words_of_turn(draft: &Draft<'_, '_>) -> String {
    let taken = draft.durable().inbox.iter().filter(|waiting| waiting.taken);
    let words: Vec<&str> = taken.map(|waiting| waiting.queued.preview.as_str()).collect();
    words.join("\n")
}

/// Determines the intent of the inputs before the first step, also in an incarnation that did not ask yet. True: the
/// step has to wait.
pub(crate) fn comes_first(draft: &mut Draft<'_, '_>) -> bool {
    if side::asks(draft, SidePurpose::Intent) {
        return true;
    }
    let gate = draft.durable().limits().planning.intent_gate;
    let open = gate
        && draft
            .turn()
            .is_some_and(|turn| turn.steps == 0 && turn.classified.is_none());
    if open {
        let words = words_of_turn(draft);
        classify(draft, &words);
    }
    side::asks(draft, SidePurpose::Intent)
}

/// Tells the model to make a plan before its first call. Plan mode has its own reminder.
pub(crate) fn tell(draft: &mut Draft<'_, '_>) {
    let plans = draft
        .turn()
        .is_some_and(|turn| turn.planning == TurnPlan::Wanted && turn.steps == 0);
    let durable = draft.durable();
    if plans && durable.mode() != PermissionMode::Plan && durable.offers(words::PLAN) {
        let limits = draft.durable().limits().planning;
        draft.emit(NoteInjected {
            kind: NoteKind::PlanReminder,
            text: words::make_a_plan(&draft.durable().plan, &limits),
        });
    }
}

/// The reminder of open plan steps, once per turn. Omitted where the extra call would hit a limit.
pub(crate) fn nudge(durable: &Durable, turn: &Turn, now: Timestamp) -> Option<(NoteKind, String)> {
    let open = durable.plan.open();
    let wanted = turn.planning == TurnPlan::Wanted && !open.is_empty() && limits::has_room(durable, now);
    wanted.then(|| (NoteKind::PlanReminder, words::steps_are_open(&open)))
}

impl Durable {
    pub(crate) fn intent_classified(&mut self, classified: &IntentClassified) -> Result<(), Refusal> {
        let turn = self.running_turn()?;
        turn.planning = TurnPlan::of(classified.planning);
        turn.classified = Some(classified.source);
        Ok(())
    }

    pub(crate) fn plan_updated(&mut self, updated: &PlanUpdated) -> Result<(), Refusal> {
        self.plan = Plan {
            steps: updated.steps.clone(),
            replans: updated.replans,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Planning = Planning {
        enabled: true,
        intent_gate: false,
        max_steps: 3,
        max_replans: 2,
    };

    fn steps(titles: &[&str]) -> PlanRequest {
        PlanRequest::Steps {
            steps: titles
                .iter()
                .map(|title| ((*title).to_owned(), "run it".to_owned()))
                .collect(),
            reason: Some("it is otherwise".to_owned()),
        }
    }

    fn done(step: u32) -> PlanRequest {
        PlanRequest::Done {
            step,
            evidence: "passed".into(),
        }
    }

    fn after(talks: Vec<PlanRequest>) -> Result<Plan, String> {
        talks.into_iter().try_fold(Plan::default(), |plan, request| {
            Ok(plan.after(request, &LIMITS)?.0)
        })
    }

    fn titles(plan: &Plan) -> Vec<&str> {
        plan.steps.iter().map(|step| step.title.as_str()).collect()
    }

    #[test]
    fn steps_are_done_with_evidence_and_stay_when_the_plan_changes() {
        let plan = after(vec![steps(&["a", "b"]), done(1), steps(&["c", "d"])]).unwrap();
        assert_eq!(
            (titles(&plan), plan.replans, plan.open()),
            (vec!["a", "c", "d"], 1, vec![2, 3])
        );
        let whole = after(vec![steps(&["a"]), done(1), steps(&["b"])]).unwrap();
        assert_eq!(
            (titles(&whole), whole.replans),
            (vec!["b"], 0),
            "a finished plan makes room for a new one"
        );
    }

    #[test]
    fn what_is_not_possible_says_why() {
        let why = |talks| after(talks).unwrap_err();
        assert!(why(vec![steps(&["a", "b", "c", "d"])]).contains("at most 3"));
        assert!(why(vec![done(1)]).contains("no step 1"));
        assert!(why(vec![steps(&["a"]), done(0)]).contains("no step 0"));
        assert!(why(vec![steps(&["a", "b"]), done(1), done(1)]).contains("already"));
        let changes = vec![steps(&["a"]), steps(&["b"]), steps(&["c"])];
        assert!(after(changes.clone()).is_ok());
        assert!(why([changes, vec![steps(&["d"])]].concat()).contains("changed 2 times"));
        let silent = PlanRequest::Steps {
            steps: vec![("b".into(), "c".into())],
            reason: None,
        };
        assert!(why(vec![steps(&["a"]), silent]).contains("reason"));
        let unproven = PlanRequest::Done {
            step: 1,
            evidence: " ".into(),
        };
        assert!(why(vec![steps(&["a"]), unproven]).contains("evidence"));
    }

    proptest! {
        #[test]
        fn done_steps_never_change(talks in proptest::collection::vec((0_u32..4, 1_usize..4, any::<bool>()), 0..20)) {
            let mut plan = Plan::default();
            for (step, count, is_done) in talks {
                let before = plan.done_steps();
                let finished = plan.open().is_empty();
                let request = if is_done { done(step) } else { steps(&["x", "y", "z"][..count]) };
                if let Ok((next, _)) = plan.after(request, &LIMITS) {
                    prop_assert!(finished || next.steps.starts_with(&before) || next.done_steps().len() > before.len());
                    prop_assert!(next.steps.len() <= 3 && next.replans <= 2);
                    plan = next;
                }
            }
        }
    }
}
