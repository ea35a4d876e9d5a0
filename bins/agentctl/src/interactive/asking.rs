//! Questions to the person: which one is shown, and what happens to typed text when its question is over.

use crate::failure::Failure;
use crate::interactive::console::Before;
use crate::interactive::conversation::Conversation;
use crate::interactive::pages::Pages;
use crate::render::{choices_line, decided_by, decided_how};
use agentd_protocol::{
    ApprovalId, ApprovalQuestion, ApprovalQuestionParams, Decision, Event, EventBody, Fault, OpenApproval,
};
use agentd_viewer::Elsewhere;

impl Conversation<'_> {
    fn asking(&self) -> bool {
        self.manner.answers && self.caught_up && self.console.open()
    }

    /// Shows the next question, once.
    pub(super) async fn ask(&mut self) -> Result<(), Failure> {
        let next = self.asks.front().filter(|_| self.asking()).cloned();
        let id = next.as_ref().map(|open| open.approval);
        if self.prompted == id {
            return Ok(());
        }
        let question = match &next {
            Some(open) => Some(self.question(open.approval).await),
            None => None,
        };
        self.show_question(id)?;
        self.pages = None;
        let Some(open) = next.filter(|_| self.console.open()) else {
            return Ok(());
        };
        match question {
            Some(Ok(question)) => {
                let size = self.out.terminal.person();
                self.pages = Some(Pages::new(&question, size, self.out.paint_stderr()));
                self.turn_page(&open)?;
            }
            Some(Err(fault)) => self.told(Err(fault))?,
            None => {}
        }
        if self.manner.sends && !self.draft.is_empty() {
            self.screen
                .say(self.out, "you are still typing a message; Ctrl-U discards it")?;
        }
        Ok(())
    }

    /// The lines of a question, as the daemon renders them for every face.
    async fn question(&self, approval: ApprovalId) -> Result<ApprovalQuestion, Fault> {
        let approval = approval.to_string();
        let params = ApprovalQuestionParams { approval };
        let question = self.follower.client().approval_question(&params).await;
        question.map_err(Fault::from)
    }

    /// The pages of a question, if the person has not seen all of them yet.
    pub(super) fn unread(&self, open: &OpenApproval) -> Option<&Pages> {
        let pages = self.pages.as_ref()?;
        (pages.approval == open.approval && !pages.ended()).then_some(pages)
    }

    /// Shows the next page of a question. The last page is followed by the ways to answer.
    pub(super) fn turn_page(&mut self, open: &OpenApproval) -> Result<(), Failure> {
        let Some(pages) = &mut self.pages else {
            return Ok(());
        };
        let mut text = pages.turn();
        let (ended, place) = (pages.ended(), pages.place());
        let paint = self.out.paint_stderr();
        let behind = self.asks.behind();
        if ended && behind > 0 {
            text.push_str(&format!("\n{behind} more waiting"));
        }
        let prompt = if ended {
            format!("{}:", choices_line(open))
        } else {
            format!("{place}. Enter shows the next page, n [reason] denies:")
        };
        text.push_str(&format!("\n{}", paint.bold(&prompt)));
        text.push(if self.manner.sends { '\n' } else { ' ' });
        self.screen.prompt(self.out, &text)
    }

    /// Switches to this question: lines begun from now on answer it. Drops a draft whose question is over, so that it
    /// cannot answer another one.
    pub(super) fn show_question(&mut self, next: Option<ApprovalId>) -> Result<(), Failure> {
        if next.is_some() {
            self.console.take(Before::Drop);
        }
        // Typed while something else was going on, so it belongs to what was shown until now.
        let typed = self.console.waiting();
        if !typed.is_empty() {
            self.show_draft();
            self.keys(&typed);
            self.hide_draft();
        }
        self.prompted = next;
        let over = match self.draft.about() {
            Some(about) => self.caught_up && self.asks.waits(about).is_none(),
            // This viewer sends no messages, so a line without a question is of no use.
            None => !self.manner.sends,
        };
        if over && !self.draft.is_empty() {
            let text = format!("discarded your unfinished input: {}", self.draft.take());
            self.screen.say(self.out, &text)?;
        }
        Ok(())
    }

    /// Updates the open approvals and reports one answered elsewhere. Returns whether it did.
    pub(super) fn observe(&mut self, event: &Event) -> Result<bool, Failure> {
        let tool = if let EventBody::ApprovalAsked(ask) = &event.body {
            ask.tool_call
                .and_then(|call| self.screen.tool(call))
                .map(str::to_owned)
        } else {
            None
        };
        let other = self.asks.observe(event, tool.as_deref());
        let Some(other) = other.filter(|_| self.manner.answers && self.caught_up) else {
            return Ok(false);
        };
        self.screen.say(self.out, &elsewhere(&other))?;
        Ok(true)
    }

    /// Reports that a sub-agent's question is over without an answer from here.
    pub(super) async fn over(&mut self, asked: &OpenApproval) -> Result<(), Failure> {
        if !(self.manner.answers && self.caught_up) {
            return Ok(());
        }
        let text = match self.follower.answer_of(asked).await {
            Some((decided, by)) => elsewhere(&Elsewhere {
                asked: asked.clone(),
                decided,
                by,
            }),
            None => format!("closed: {}", named(asked)),
        };
        self.screen.say(self.out, &text)
    }
}

fn elsewhere(other: &Elsewhere) -> String {
    let how = decided_how(other.decided.decision);
    let answered = matches!(
        other.decided.decision,
        Decision::Allow | Decision::Deny | Decision::Answer
    );
    let place = if answered { "decided elsewhere: " } else { "" };
    let by = decided_by(&other.decided, &other.by);
    format!("{place}{how} {by}  {}", named(&other.asked))
}

fn named(asked: &OpenApproval) -> String {
    format!("[approval {} {}]", asked.approval.short(), asked.title)
}
