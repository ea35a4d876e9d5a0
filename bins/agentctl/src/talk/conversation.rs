//! The loop between a person and a session.

use crate::failure::Failure;
use crate::follow::{Follower, News};
use crate::output::{Output, fault_text};
use crate::render::{approval_lines, choices_line, clean, decided_by, word};
use crate::talk::answer::{HELP, Typed, read};
use crate::talk::asks::Asks;
use crate::talk::console::Console;
use crate::talk::manner::{Held, Interrupt, Manner, Unattended};
use crate::talk::screen::Screen;
use crate::talk::turn_watch::{RunResult, TurnWatch};
use agentd_protocol::{
    ApprovalId, Block, CancelInputParams, CancelTurnParams, Delta, Event, EventBody, Fault, FaultClass,
    InputId, LifecycleParams, RunState, SendParams, Status, WaitReason,
};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long a cancelled turn may take to end before we leave it.
const CANCEL_GRACE: Duration = Duration::from_secs(15);

/// Why the turn is being cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Interrupted,
    TimedOut,
}

enum Happened {
    News(Result<News, Failure>),
    Line(Option<String>),
    Interrupt,
    Deadline,
}

/// A person (or nobody) and a session.
pub(crate) struct Conversation<'a> {
    out: &'a mut Output,
    follower: Follower,
    screen: Screen,
    watch: Option<TurnWatch>,
    manner: Manner,
    asks: Asks,
    console: Console,
    prompted: Option<ApprovalId>,
    /// What comes is live. Before that, approvals of the replay may be long answered.
    caught_up: bool,
    leaving: Option<Leaving>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        out: &'a mut Output,
        follower: Follower,
        screen: Screen,
        watch: Option<TurnWatch>,
        manner: Manner,
    ) -> Self {
        Self {
            out,
            follower,
            screen,
            watch,
            manner,
            asks: Asks::default(),
            console: Console::default(),
            prompted: None,
            caught_up: false,
            leaving: None,
        }
    }

    /// Goes on until the turn ends or the person leaves.
    pub(crate) async fn hold(mut self) -> Result<Held, Failure> {
        let mut interrupts = signal(SignalKind::interrupt()).map_err(Failure::Output)?;
        loop {
            let wants_line = self.console.open() && (self.manner.sends || self.asking());
            let deadline = self.manner.deadline;
            let happened = tokio::select! {
                _ = interrupts.recv() => Happened::Interrupt,
                () = until(deadline) => Happened::Deadline,
                news = self.follower.next() => Happened::News(news),
                line = self.console.line(), if wants_line => Happened::Line(line),
            };
            let held = match happened {
                Happened::News(news) => self.news(&news?)?,
                Happened::Line(Some(line)) => self.typed(&line).await?,
                Happened::Line(None) => self.no_more_lines()?,
                Happened::Interrupt => self.interrupted().await?,
                Happened::Deadline => self.too_late().await?,
            };
            if let Some(held) = held {
                self.screen.close(self.out)?;
                return Ok(held);
            }
            self.ask()?;
        }
    }

    fn asking(&self) -> bool {
        self.manner.answers && self.caught_up && self.asks.front().is_some()
    }

    /// stdin has ended: in `attach` that means to leave; in `run` somebody else must answer now.
    fn no_more_lines(&mut self) -> Result<Option<Held>, Failure> {
        if self.manner.sends {
            return Ok(Some(Held::Detached));
        }
        self.screen.say(
            self.out,
            "stdin is closed; answer from another terminal: agentctl approvals",
        )?;
        Ok(None)
    }

    fn news(&mut self, news: &News) -> Result<Option<Held>, Failure> {
        self.asks.heard(news);
        let told = if let News::Event(event, _) = news {
            self.observe(event)?
        } else {
            false
        };
        if self.manner.exact {
            if let News::Event(_, line) = news {
                self.out.json_line(line)?;
            }
        } else if !told {
            self.screen.show(self.out, news)?;
        }
        match news {
            News::Event(event, _) => {
                let ended = self.watch.as_mut().and_then(|watch| watch.observe(event));
                if let Some(result) = ended {
                    return Ok(Some(self.ended(Some(result))));
                }
                let closed = matches!(event.body, EventBody::SessionClosed(_));
                Ok((closed && self.watch.is_none()).then_some(Held::Detached))
            }
            News::Delta(Delta::Status(status)) => Ok(self.blocked(status)),
            News::Synced(synced) => {
                self.caught_up = true;
                if self.manner.answers {
                    self.screen.prompts();
                }
                Ok(self.blocked(&synced.status))
            }
            News::Ended(_) => Ok(Some(self.ended(None))),
            News::Retrying => {
                self.caught_up = false;
                self.prompted = None;
                Ok(None)
            }
            News::Delta(_) | News::Lagged | News::Back => Ok(None),
        }
    }

    /// Keeps the open approvals, and says when somebody else answered one; whether it said so.
    fn observe(&mut self, event: &Event) -> Result<bool, Failure> {
        let tool = if let EventBody::ApprovalAsked(ask) = &event.body {
            ask.tool_call
                .and_then(|call| self.screen.tool(call))
                .map(str::to_owned)
        } else {
            None
        };
        let Some(other) = self
            .asks
            .observe(event, tool.as_deref())
            .filter(|_| self.manner.answers && self.caught_up)
        else {
            return Ok(false);
        };
        let text = format!(
            "answered elsewhere ({}): {} {}",
            other.title,
            word(&other.decided.decision),
            decided_by(&other.decided, &other.by)
        );
        self.screen.say(self.out, &text)?;
        Ok(true)
    }

    fn ended(&self, result: Option<RunResult>) -> Held {
        match (self.leaving, result) {
            (Some(Leaving::Interrupted), result) => Held::Interrupted(result),
            (Some(Leaving::TimedOut), result) => Held::TimedOut(result),
            (None, Some(result)) => Held::Turn(result),
            (None, None) => Held::Detached,
        }
    }

    /// Whether only a person can help, and not from here.
    fn blocked(&self, status: &Status) -> Option<Held> {
        let parked = matches!(
            status.state,
            RunState::Waiting(WaitReason::Quota | WaitReason::Credentials | WaitReason::Workspace)
        );
        // No answer that could be given here helps a parked session, so `run` leaves it to itself.
        let alone = self.manner.leaves_when == Some(Unattended::Waits) && status.state.blocked();
        let blocked = alone || (parked && self.watch.is_some());
        (blocked && self.leaving.is_none()).then(|| Held::Blocked(status.clone()))
    }

    /// Shows the approval that is next, once.
    fn ask(&mut self) -> Result<(), Failure> {
        let Some(open) = self.asks.front().filter(|_| self.asking() && self.console.open()) else {
            return Ok(());
        };
        if self.prompted == Some(open.approval) {
            return Ok(());
        }
        self.prompted = Some(open.approval);
        let paint = self.out.paint_talk();
        let mut text = format!("{} ", paint.warn("approval"));
        text.push_str(&approval_lines(open).join("\n"));
        text.push_str(&format!(
            "\n  {} ",
            paint.bold(&format!("{}:", choices_line(open)))
        ));
        if self.manner.sends {
            text.push('\n');
        }
        self.screen.prompt(self.out, &text)
    }

    async fn typed(&mut self, line: &str) -> Result<Option<Held>, Failure> {
        self.screen.entered();
        let open = self.asks.front().filter(|_| self.manner.answers).cloned();
        match (read(line, open.as_ref(), self.manner.sends), open) {
            (Typed::Decide(answer), Some(open)) => {
                let decided = self
                    .follower
                    .client()
                    .decide(&answer.params(&open))
                    .await
                    .map_err(Fault::from);
                self.decided(open.approval, decided.map(drop))?;
            }
            (Typed::Send(text), _) => {
                let params = SendParams {
                    session: self.follower.session().to_owned(),
                    content: vec![Block::text(text.clone())],
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
                self.told(sent.map(drop))?;
            }
            (Typed::Cancel, _) => {
                let cancelled = self.cancel("cancelled by /cancel").await;
                self.told(cancelled)?;
            }
            (Typed::Resume, _) => {
                let resumed = self.resume().await;
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

    fn decided(&mut self, approval: ApprovalId, outcome: Result<(), Fault>) -> Result<(), Failure> {
        match outcome {
            Ok(()) => self.asks.answered(approval),
            Err(fault) => {
                if matches!(fault.class, FaultClass::Conflict | FaultClass::NotFound) {
                    self.asks.forget(approval);
                } else {
                    // Ask again: the answer did not get through.
                    self.prompted = None;
                }
                self.told(Err(fault))?;
            }
        }
        Ok(())
    }

    /// A fault while talking is told; the conversation goes on.
    fn told(&mut self, outcome: Result<(), Fault>) -> Result<(), Failure> {
        let Err(fault) = outcome else { return Ok(()) };
        let text = fault_text(&fault, self.out.paint_talk());
        self.screen.prompt(self.out, &text)
    }

    async fn cancel(&self, reason: &str) -> Result<(), Fault> {
        let params = CancelTurnParams {
            session: self.follower.session().to_owned(),
            expect_turn: self.watch.as_ref().and_then(TurnWatch::turn),
            reason: Some(reason.to_owned()),
            kill: false,
        };
        self.follower
            .client()
            .cancel_turn(&params)
            .await
            .map(drop)
            .map_err(Fault::from)
    }

    async fn resume(&self) -> Result<(), Fault> {
        let params = LifecycleParams {
            session: self.follower.session().to_owned(),
            reason: Some("resumed by /resume".to_owned()),
            force: false,
        };
        self.follower
            .client()
            .resume(&params)
            .await
            .map(drop)
            .map_err(Fault::from)
    }

    /// Takes an input back that no turn has taken; a conflict when one has.
    async fn take_back(&self, input: InputId) -> Result<(), Fault> {
        let params = CancelInputParams {
            session: self.follower.session().to_owned(),
            input: Some(input),
        };
        self.follower
            .client()
            .cancel_input(&params)
            .await
            .map(drop)
            .map_err(Fault::from)
    }

    async fn interrupted(&mut self) -> Result<Option<Held>, Failure> {
        if self.manner.interrupt == Interrupt::Detach {
            return Ok(Some(Held::Detached));
        }
        if self.leaving.is_some() {
            return Ok(Some(Held::Interrupted(None)));
        }
        self.leave(
            Leaving::Interrupted,
            "cancelled by Ctrl-C",
            "cancelling the turn; Ctrl-C again detaches",
        )
        .await
    }

    async fn too_late(&mut self) -> Result<Option<Held>, Failure> {
        if self.leaving.is_some() {
            return Ok(Some(self.ended(None)));
        }
        self.leave(
            Leaving::TimedOut,
            "cancelled by --timeout",
            "time is up; cancelling the turn",
        )
        .await
    }

    async fn leave(&mut self, why: Leaving, reason: &str, say: &str) -> Result<Option<Held>, Failure> {
        self.leaving = Some(why);
        self.manner.deadline = Some(Instant::now() + CANCEL_GRACE);
        // The turn that runs while our message only waits is somebody else's business.
        if let Some(input) = self.watch.as_ref().and_then(TurnWatch::waits)
            && self.take_back(input).await.is_ok()
        {
            let text = "the message was still waiting; it is taken back, and the session goes on";
            self.screen.say(self.out, text)?;
            return Ok(None);
        }
        self.screen.say(self.out, say)?;
        match self.cancel(reason).await {
            Ok(()) => Ok(None),
            Err(fault) => {
                self.told(Err(fault))?;
                Ok(Some(self.ended(None)))
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
