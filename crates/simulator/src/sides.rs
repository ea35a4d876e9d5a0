//! Questions to models outside of the turns. Each has a deadline; whatever its outcome, the session continues.

use crate::hot::Hot;
use crate::messages::{Happening, Message, News};
use crate::models::Call;
use crate::options::Flaw;
use crate::workers::Work;
use crate::world::World;
use agentd_protocol::{Block, CallId, SidePurpose, Usage};
use agentd_turn::{Answer, QuestionId, SideCall, SideEnded};

/// The size of a question in tokens.
const TOKENS: u64 = 300;

/// A pending question.
#[derive(Debug)]
pub(crate) struct Side {
    id: QuestionId,
    purpose: SidePurpose,
    model: String,
    worker: u64,
}

impl World {
    pub(crate) fn start_side(&mut self, hot: &mut Hot, id: QuestionId, side: SideCall) {
        let SideCall {
            call, purpose, model, ..
        } = side;
        let facts = match self.here.models.facts(&model) {
            Ok(facts) => facts,
            Err(error) => {
                let ended = SideEnded {
                    call,
                    purpose,
                    model,
                    text: Err(error.message),
                    usage: Usage::default(),
                    cost_usd: None,
                };
                return hot.core.answer(id, Answer::Side(ended));
            }
        };
        let mut asked = Call::new((call, 1), &facts, TOKENS, (side.credential, false));
        asked.summary = true;
        let worker = self.spawn(hot.number, hot.session, Work::Model(Box::new(asked)), 5);
        hot.sides.insert(
            call,
            Side {
                id,
                purpose,
                model,
                worker,
            },
        );
        if self.disk.flaw != Flaw::LostSide {
            let overdue = Message::SideOverdue { call };
            self.post(side.within_ms, Happening::Loop(hot.number, overdue));
        }
    }

    pub(crate) fn drop_side(&mut self, hot: &mut Hot, id: QuestionId) {
        let asked = hot.sides.iter().find(|(_, side)| side.id == id);
        let call = asked.map(|(call, _)| *call);
        if let Some(side) = call.and_then(|call| hot.sides.remove(&call)) {
            self.kill(side.worker);
        }
    }

    pub(crate) fn side_news(&mut self, hot: &mut Hot, call: CallId, news: News) {
        let (text, usage, cost_usd) = match news {
            News::Waiting | News::Granted(_) | News::Text(_) => return,
            _ if self.disk.flaw == Flaw::LostSide => return,
            News::Failed(failure) => (Err(failure.message), Usage::default(), None),
            News::Answered(answer) => {
                let Some(side) = hot.sides.get(&call) else { return };
                let purpose = side.purpose;
                (
                    Ok(self.beside(purpose, &answer.content)),
                    answer.usage,
                    answer.cost_usd,
                )
            }
        };
        self.side_ends(hot, call, text, (usage, cost_usd));
    }

    pub(crate) fn side_overdue(&mut self, hot: &mut Hot, call: CallId) {
        if let Some(side) = hot.sides.get(&call) {
            let worker = side.worker;
            self.kill(worker);
            let late = Err("it took too long".to_owned());
            self.side_ends(hot, call, late, (Usage::default(), None));
        }
    }

    fn side_ends(
        &mut self,
        hot: &mut Hot,
        call: CallId,
        text: Result<String, String>,
        (usage, cost_usd): (Usage, Option<f64>),
    ) {
        let Some(Side {
            id, purpose, model, ..
        }) = hot.sides.remove(&call)
        else {
            return;
        };
        let ended = SideEnded {
            call,
            purpose,
            model,
            text,
            usage,
            cost_usd,
        };
        hot.core.answer(id, Answer::Side(ended));
        self.run_followers(hot);
    }

    /// A model's answer to such a question; sometimes it does not have the requested form.
    fn beside(&mut self, purpose: SidePurpose, content: &[Block]) -> String {
        if self.dice.percent(20) {
            return content.iter().map(|block| format!("{block:?}")).collect();
        }
        match purpose {
            SidePurpose::Title => "A better title".to_owned(),
            SidePurpose::Summary | SidePurpose::Compaction => "It was done.".to_owned(),
            SidePurpose::Intent => {
                let labels = ["CODING_TASK", "REPO_ANALYSIS", "nonsense"];
                let label = self.dice.pick(&labels).copied().unwrap_or("nonsense");
                format!(r#"{{"label": "{label}", "confidence": 0.9, "reason": "it says so"}}"#)
            }
        }
    }
}
