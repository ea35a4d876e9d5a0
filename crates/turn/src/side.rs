//! What models are asked beside the turns: titles, summaries of sessions, what an input wants. Nothing of it is sent with
//! the conversation. Each question is volatile, has a deadline, is charged to the session, and whatever fails, the session
//! goes on without its answer.

use crate::apply::Refusal;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::{Effect, SideCall};
use crate::input::SideEnded;
use crate::side_answer;
use crate::{launch, limits, planning};
use agentd_protocol::{CallId, EventBody, Fault, SessionUpdated, SideCallFinished, SidePurpose};

/// The name that stands for the session's own model.
const OWN: &str = "session";
/// A title is asked for so often, as long as none came of it.
const MOST_TITLES: u32 = 3;

/// What the operator wants models to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SideRules {
    /// The configured name of the model; `session`: the session's own; empty: none is asked.
    pub model: String,
    /// For titles of sessions that nobody named.
    pub titles: bool,
    /// For a summary of the session at the end of each turn.
    pub summaries: bool,
    /// For what an input wants, where its words leave that open.
    pub intents: bool,
    /// The words leave it open below this confidence, in thousandths.
    pub intent_below_permille: u32,
    /// Tokens that an answer may have.
    pub max_output: u32,
    /// A question may take so long.
    pub within_ms: u64,
}

/// Whether such an answer is waited for.
pub(crate) fn asks(draft: &Draft<'_, '_>, purpose: SidePurpose) -> bool {
    draft.seen().sides.values().any(|asked| *asked == purpose)
}

/// The model that is asked, if there is one that can be.
fn model(draft: &Draft<'_, '_>) -> Option<String> {
    let name = draft.config().side.model.as_str();
    let name = match name {
        "" => return None,
        OWN => launch::model(draft, None),
        name => name.to_owned(),
    };
    (draft.scene.models)(&name).is_ok().then_some(name)
}

/// Asks. False: nobody can be asked now.
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
    draft.volatile().sides.insert(call, purpose);
    draft.effect(Effect::StartSide(side));
    true
}

/// Asks what the inputs of the turn want, where their words leave it open. True: the first step waits for the answer.
pub(crate) fn ask_intent(draft: &mut Draft<'_, '_>, words: &str, confidence: f64) -> bool {
    let rules = &draft.config().side;
    let open = rules.intents && confidence * 1_000.0 < f64::from(rules.intent_below_permille);
    open && ask(draft, SidePurpose::Intent, words)
}

/// After a decision that ended a turn: a title, and a summary.
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
        // It is about this turn, too.
        stop(draft, SidePurpose::Summary);
        ask(draft, SidePurpose::Summary, "");
    }
}

/// A principal wants a summary of the session.
pub(crate) fn summarize(draft: &mut Draft<'_, '_>) -> Result<(), Fault> {
    if asks(draft, SidePurpose::Summary) || ask(draft, SidePurpose::Summary, "") {
        return Ok(());
    }
    let message = "no model can be asked for a summary now";
    Err(Fault::conflict("no_summary", message).hint(
        "name a model in side_calls.model, and see that the session is not paused and its budget not used up",
    ))
}

/// An answer came, or none will. What it cost is written down in any case.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, ended: SideEnded) {
    let waited_for = draft.volatile().sides.remove(&ended.call).is_some();
    let SideEnded {
        call, purpose, text, ..
    } = ended;
    let answer = text.and_then(|text| match purpose {
        SidePurpose::Title => side_answer::title(&text).map(Answer::Title),
        SidePurpose::Summary => side_answer::summary(&text).map(Answer::Summary),
        SidePurpose::Intent => side_answer::intent(&text).map(Answer::Intent),
        SidePurpose::Compaction => Err("nobody waits for it any more".to_owned()),
    });
    draft.emit(SideCallFinished {
        call,
        purpose,
        model: ended.model,
        usage: ended.usage,
        cost_usd: ended.cost_usd,
        error: answer.as_ref().err().cloned(),
    });
    let closed = draft.durable().closed.is_some();
    match answer {
        Ok(Answer::Intent(classified)) if waited_for => planning::classified(draft, Some(classified)),
        Ok(Answer::Title(title)) if waited_for && untitled(draft.durable()) && !closed => {
            draft.emit(update(Some(title), None));
        }
        Ok(Answer::Summary(summary)) if waited_for && !closed => draft.emit(update(None, Some(summary))),
        Err(_) if purpose == SidePurpose::Intent && waited_for => planning::classified(draft, None),
        Ok(_) | Err(_) => {}
    }
}

enum Answer {
    Title(String),
    Summary(String),
    Intent(crate::classify::Classified),
}

/// A person may have named it meanwhile.
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

/// The turn ends: nobody needs to know what it was about.
pub(crate) fn stop_intents(draft: &mut Draft<'_, '_>) {
    stop(draft, SidePurpose::Intent);
}

/// The session is closed, or the daemon drains.
pub(crate) fn stop_all(draft: &mut Draft<'_, '_>) {
    for purpose in [SidePurpose::Title, SidePurpose::Summary, SidePurpose::Intent] {
        stop(draft, purpose);
    }
}

fn stop(draft: &mut Draft<'_, '_>, purpose: SidePurpose) {
    let calls = draft.seen().sides.iter().filter(|(_, asked)| **asked == purpose);
    let calls: Vec<CallId> = calls.map(|(call, _)| *call).collect();
    for call in calls {
        draft.volatile().sides.remove(&call);
        draft.effect(Effect::DropSide { call });
    }
}

impl Durable {
    /// It cost something. What belongs to the running turn is its cost, too.
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
