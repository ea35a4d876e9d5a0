//! Handles what the person types: keys, and complete lines.

use crate::clock::now;
use crate::failure::Failure;
use crate::images;
use crate::interactive::answer::{ApprovalAnswer, HELP, Typed, read};
use crate::interactive::conversation::Conversation;
use crate::interactive::draft::{TypedLine, Typing};
use crate::interactive::manner::Held;
use crate::interactive::pages::Pages;
use crate::output::fault_text;
use crate::render::clean;
use agentd_protocol::{ApprovalId, Block, Decision, Fault, FaultClass, OpenApproval, SendParams};

impl Conversation<'_> {
    /// Takes in keys; complete lines are queued.
    pub(super) fn keys(&mut self, keys: &[u8]) {
        if keys.is_empty() && !self.console.open() {
            self.lines.push_back(None);
        }
        if let Some(footer) = &mut self.footer {
            let text = footer.hide();
            self.drawn(&text);
        }
        for typing in self.draft.typed(keys, self.prompted) {
            match typing {
                Typing::Echo(text) => self.out.status_always(&text),
                Typing::Line(line) => {
                    self.out.status_always("\n");
                    self.screen.entered();
                    self.lines.push_back(Some(line));
                }
                Typing::End => self.lines.push_back(None),
            }
        }
    }

    /// Erases the draft from the terminal before other output.
    pub(super) fn hide_draft(&mut self) {
        let text = self.draft.hide();
        self.drawn(&text);
    }

    /// Redraws the draft.
    pub(super) fn show_draft(&mut self) {
        let text = self.draft.seen();
        self.drawn(&text);
    }

    /// Erases whatever is below the news: the draft or the status line.
    pub(super) fn hide_below(&mut self) {
        if let Some(footer) = &mut self.footer {
            let text = footer.hide();
            self.drawn(&text);
        }
        self.hide_draft();
    }

    /// Redraws it. There is no status line while a question is shown or a draft exists.
    pub(super) fn show_below(&mut self) {
        self.show_draft();
        let size = self.out.terminal.canvas();
        let free = self.prompted.is_none() && self.draft.is_empty() && self.console.holds();
        let (Some(footer), Some((columns, _)), true) = (&mut self.footer, size, free) else {
            return;
        };
        if let Some(column) = self.screen.column(columns) {
            let text = footer.show(columns, column, now(), self.out.paint_stderr());
            self.drawn(&text);
        }
    }

    fn drawn(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.status_always(text);
        }
    }

    /// Executes a line.
    pub(super) async fn line(&mut self, line: TypedLine) -> Result<Option<Held>, Failure> {
        let open = line.about.and_then(|about| self.asks.waits(about)).cloned();
        let late = line.about.is_some() && open.is_none();
        let open = open.filter(|_| self.manner.answers);
        match (read(&line.text, open.as_ref(), self.manner.sends), open) {
            (Typed::Decide(_) | Typed::Send(_) | Typed::Unclear(_), _) if late => {
                let text = format!("the question is closed; discarded your input: {}", line.text);
                self.screen.say(self.out, &text)?;
            }
            (Typed::Decide(answer), Some(open)) if self.too_early(&answer, &open)? => {}
            (Typed::Nothing, Some(open)) if self.unread(&open).is_some() => self.turn_page(&open)?,
            (Typed::Decide(answer), Some(open)) => {
                let pages = self
                    .pages
                    .as_ref()
                    .filter(|pages| pages.approval == open.approval);
                let params = answer.params(&open, pages.and_then(Pages::seen));
                let decided = self.follower.client().decide(&params).await;
                self.decided(open.approval, decided.map(drop).map_err(Fault::from))?;
            }
            (Typed::Send(text), _) => self.send(text).await?,
            (Typed::Cancel, _) => {
                let cancelled = self.cancel("cancelled by /cancel").await;
                self.told(cancelled)?;
            }
            (Typed::Resume, _) => {
                let resumed = self.follower.resume().await;
                self.told(resumed)?;
            }
            (Typed::Compact, _) => {
                let asked = self.follower.compact().await;
                self.told(asked)?;
            }
            (Typed::Detach, _) => return Ok(Some(Held::Detached)),
            (Typed::Help, _) => self.screen.say(self.out, HELP)?,
            (Typed::Unclear(text), _) => self.screen.say(self.out, &text)?,
            (Typed::Nothing | Typed::Decide(_), _) => {}
        }
        Ok(None)
    }

    /// Rejects an acceptance before the end of the question was shown. A denial is possible at any time.
    fn too_early(&mut self, answer: &ApprovalAnswer, open: &OpenApproval) -> Result<bool, Failure> {
        if answer.decision == Decision::Deny {
            return Ok(false);
        }
        let shown = self
            .pages
            .as_ref()
            .filter(|pages| pages.approval == open.approval);
        let text = match shown {
            Some(pages) if pages.ended() => return Ok(false),
            Some(pages) => format!(
                "not accepted: you are on {}; Enter shows the next page, n denies",
                pages.place()
            ),
            None => "not accepted: the question could not be shown; n denies".to_owned(),
        };
        self.screen.say(self.out, &text)?;
        Ok(true)
    }

    async fn send(&mut self, text: String) -> Result<(), Failure> {
        let mut content = vec![Block::text(text.clone())];
        for (path, image) in images::pasted(&text) {
            self.screen
                .say(self.out, &format!("attached the image {}", path.display()))?;
            content.push(image);
        }
        let params = SendParams {
            session: self.follower.session().to_owned(),
            content,
            commands: true,
            ..SendParams::default()
        };
        let sent = self.follower.client().send(&params).await.map_err(Fault::from);
        if let Ok(Some(said)) = sent.as_ref().map(|sent| &sent.said) {
            if text.trim() == "/help" {
                self.screen.say(self.out, HELP)?;
            }
            self.screen.say(self.out, &clean(said))?;
        }
        for notice in sent.iter().flat_map(|sent| &sent.notices) {
            self.screen.say(self.out, &clean(notice))?;
        }
        self.told(sent.map(drop))
    }

    fn decided(&mut self, approval: ApprovalId, outcome: Result<(), Fault>) -> Result<(), Failure> {
        let Err(fault) = outcome else {
            self.asks.answered(approval);
            return Ok(());
        };
        if fault.class == FaultClass::Conflict && fault.code != "question_changed" {
            // An event reports who was first.
            self.asks.forget(approval);
            let id = approval.short();
            let text = format!("{id} was already decided elsewhere; discarded your answer");
            return self.screen.say(self.out, &text);
        }
        if fault.class == FaultClass::NotFound {
            self.asks.forget(approval);
        } else {
            // Ask again, because the answer was not delivered.
            self.prompted = None;
        }
        self.told(Err(fault))
    }

    /// Reports a fault; the conversation continues.
    pub(super) fn told(&mut self, outcome: Result<(), Fault>) -> Result<(), Failure> {
        let Err(fault) = outcome else { return Ok(()) };
        let text = fault_text(&fault, self.out.paint_stderr());
        self.screen.prompt(self.out, &text)
    }
}
