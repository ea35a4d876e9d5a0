//! Questions to models outside of the turns: titles, session summaries, the intent of an input. None of this is sent
//! with the conversation. Each question is volatile, has a deadline and is charged to the session; if it fails, the
//! session continues without the answer.

pub(crate) mod answers;

use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::effect::SideCall;
use crate::input::SideEnded;
use crate::questions::{self, Question, Subject};
use crate::{attempts::launch, planning, steps::limits};
use agentd_protocol::{EventBody, Fault, SessionUpdated, SideCallFinished, SidePurpose};

/// The name that stands for the session's own model.
const OWN: &str = "session";
/// The most requests for a title, as long as none has succeeded.
const MOST_TITLES: u32 = 3;

/// The operator's settings for what models are asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SideRules {
    /// The configured name of the model; `session`: the session's own; empty: none is asked.
    pub model: String,
    /// Ask for titles of sessions without one.
    pub titles: bool,
    /// Ask for a summary of the session at the end of each turn.
    pub summaries: bool,
    /// Ask for an input's intent if its wording leaves it open.
    pub intents: bool,
    /// The confidence, in thousandths, below which the wording leaves the intent open.
    pub intent_below_permille: u32,
    /// The most tokens that an answer may have.
    pub max_output: u32,
    /// The time limit for an answer.
    pub within_ms: u64,
}

/// Whether an answer for this purpose is pending.
pub(crate) fn asks(draft: &Draft<'_, '_>, purpose: SidePurpose) -> bool {
    draft.seen().questions.is_pending(&Subject::Side(purpose))
}

/// The model to ask, if one is usable.
fn model(draft: &Draft<'_, '_>) -> Option<String> {
    let name = draft.config().side.model.as_str();
    let name = match name {
        "" => return None,
        OWN => launch::model(draft, None),
        name => name.to_owned(),
    };
    (draft.scene.models)(&name).is_ok().then_some(name)
}

/// Sends a question. False: no model can be asked now.
fn ask(draft: &mut Draft<'_, '_>, purpose: SidePurpose, words: &str) -> bool {
    if draft.held() || draft.durable().closed.is_some() || limits::spent(draft.durable(), draft.now()) {
        return false;
    }
    let Some(model) = model(draft) else { return false };
    let Ok(facts) = (draft.scene.models)(&model) else {
        return false;
    };
    let call = draft.stamp().call();
    let rules = &draft.config().side;
    let side = SideCall {
        call,
        purpose,
        words: words.to_owned(),
        credential: launch::credential(draft, &facts),
        without: draft
            .durable()
            .outer
            .taught_of(&model)
            .without
            .into_iter()
            .collect(),
        max_output: rules.max_output,
        within_ms: rules.within_ms,
        model,
    };
    questions::ask(draft, Question::Side(side));
    true
}

/// Asks for the intent of the turn's inputs if their wording leaves it open. True: the first step waits for the answer.
pub(crate) fn ask_intent(draft: &mut Draft<'_, '_>, words: &str, confidence: f64) -> bool {
    let rules = &draft.config().side;
    let open = rules.intents && confidence * 1_000.0 < f64::from(rules.intent_below_permille);
    open && ask(draft, SidePurpose::Intent, words)
}

/// Requests a title and a summary after a decision that ended a turn.
pub(crate) fn begin(draft: &mut Draft<'_, '_>) {
    let ended = |body: &EventBody| matches!(body, EventBody::TurnFinished(turn) if turn.steps > 0);
    if !draft.happened().iter().any(|event| ended(&event.body)) {
        return;
    }
    let Some(settings) = &draft.durable().settings else {
        return;
    };
    let (untitled, child) = (settings.derived_title, settings.parent.is_some());
    let (rules, titles) = (&draft.config().side, draft.seen().titles);
    let title = rules.titles && untitled && titles < MOST_TITLES && !asks(draft, SidePurpose::Title);
    let summary = rules.summaries && !child;
    if title && ask(draft, SidePurpose::Title, "") {
        draft.volatile().titles = titles.saturating_add(1);
    }
    if summary {
        // The new summary will cover this turn, too.
        questions::withdraw(draft, |subject| *subject == Subject::Side(SidePurpose::Summary));
        ask(draft, SidePurpose::Summary, "");
    }
}

/// Requests a summary of the session for a principal.
pub(crate) fn summarize(draft: &mut Draft<'_, '_>) -> Result<(), Fault> {
    if asks(draft, SidePurpose::Summary) || ask(draft, SidePurpose::Summary, "") {
        return Ok(());
    }
    let message = "no model can be asked for a summary now";
    Err(Fault::conflict("no_summary", message).hint(
        "name a model in side_calls.model, and see that the session is not paused and its budget not used up",
    ))
}

/// Handles an answer or a failure.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, ended: &SideEnded) {
    let purpose = ended.purpose;
    let answer = charge(draft, ended);
    let closed = draft.durable().closed.is_some();
    match answer {
        Ok(SideAnswer::Intent(classified)) => planning::classified(draft, Some(classified)),
        Ok(SideAnswer::Title(title)) if untitled(draft.durable()) && !closed => {
            draft.emit(update(Some(title), None));
        }
        Ok(SideAnswer::Summary(summary)) if !closed => draft.emit(update(None, Some(summary))),
        Err(_) => unanswered(draft, purpose),
        Ok(SideAnswer::Title(_) | SideAnswer::Summary(_)) => {}
    }
}

/// There is no answer: only an intent is waited for.
pub(crate) fn unanswered(draft: &mut Draft<'_, '_>, purpose: SidePurpose) {
    if purpose == SidePurpose::Intent {
        planning::classified(draft, None);
    }
}

/// Reads an answer and records its cost, whether or not anyone still waits for it.
pub(crate) fn charge(draft: &mut Draft<'_, '_>, ended: &SideEnded) -> Result<SideAnswer, String> {
    let text = ended.text.clone();
    let answer = text.and_then(|text| match ended.purpose {
        SidePurpose::Title => answers::title(&text).map(SideAnswer::Title),
        SidePurpose::Summary => answers::summary(&text).map(SideAnswer::Summary),
        SidePurpose::Intent => answers::intent(&text).map(SideAnswer::Intent),
        SidePurpose::Compaction => Err("nobody waits for it any more".to_owned()),
    });
    draft.emit(SideCallFinished {
        call: ended.call,
        purpose: ended.purpose,
        model: ended.model.clone(),
        usage: ended.usage,
        cost_usd: ended.cost_usd,
        error: answer.as_ref().err().cloned(),
    });
    answer
}

pub(crate) enum SideAnswer {
    Title(String),
    Summary(String),
    Intent(crate::planning::classify::Classified),
}

/// Whether the title is still the derived one: a person may have set another in the meantime.
fn untitled(durable: &Durable) -> bool {
    durable
        .settings
        .as_ref()
        .is_some_and(|settings| settings.derived_title)
}

const fn update(title: Option<String>, summary: Option<String>) -> SessionUpdated {
    SessionUpdated {
        title,
        model: None,
        mode: None,
        labels: None,
        budget: None,
        summary,
    }
}

/// Abandons all questions because the session closes.
pub(crate) fn stop_all(draft: &mut Draft<'_, '_>) {
    questions::withdraw(draft, |subject| matches!(subject, Subject::Side(_)));
}

impl Durable {
    /// Adds the cost to the totals, and to the running turn if it belongs to it.
    pub(crate) fn side_call_finished(&mut self, finished: &SideCallFinished) -> Result<(), Refusal> {
        let cost = finished.cost_usd.unwrap_or_default();
        self.totals.usage = self.totals.usage.plus(finished.usage);
        self.totals.cost_usd += cost;
        let of_turn = matches!(finished.purpose, SidePurpose::Intent | SidePurpose::Compaction);
        if let Some(turn) = self.turn.as_mut().filter(|_| of_turn) {
            turn.usage = turn.usage.plus(finished.usage);
            turn.cost_usd += cost;
        }
        Ok(())
    }
}
