//! The loop between a person and a session.

use crate::failure::Failure;
use crate::follow::{Follower, News};
use crate::interactive::console::{Before, Console};
use crate::interactive::draft::{Draft, TypedLine};
use crate::interactive::footer::Footer;
use crate::interactive::manner::{Held, Interrupt, Manner, Unattended};
use crate::interactive::pages::Pages;
use crate::interactive::screen::Screen;
use crate::interactive::signals::{Signals, TerminalSignal};
use crate::interactive::turn_watch::{RunResult, TurnWatch};
use crate::output::Output;
use agentd_protocol::{ApprovalId, Delta, EventBody, Fault, RunState, Status, WaitReason};
use agentd_viewer::Asks;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long a cancelled turn may take to end before this program leaves.
const CANCEL_GRACE: Duration = Duration::from_secs(15);

/// A turn that takes longer than this to end gets a message that the cancel was received.
const SLOW: Duration = Duration::from_secs(1);

/// How often the status line is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// Why the turn is being cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Interrupted,
    TimedOut,
}

enum Happened {
    News(Result<News, Failure>),
    Keys(Vec<u8>),
    Line(Option<TypedLine>),
    Signal(TerminalSignal),
    Deadline,
    /// The turn is still ending.
    Slow,
    Tick,
}

/// A conversation between a session and a person, if one is attached.
pub(crate) struct Conversation<'a> {
    pub(super) out: &'a mut Output,
    pub(super) follower: Follower,
    pub(super) screen: Screen,
    watch: Option<TurnWatch>,
    pub(super) manner: Manner,
    pub(super) asks: Asks,
    pub(super) console: Console,
    pub(super) draft: Draft,
    pub(super) footer: Option<Footer>,
    /// Complete lines not yet handled; `None` is the end of input.
    pub(super) lines: VecDeque<Option<TypedLine>>,
    /// The question currently shown to the person.
    pub(super) prompted: Option<ApprovalId>,
    /// How much of that question the person has seen.
    pub(super) pages: Option<Pages>,
    /// Whether news is live. Before that, approvals in the replay may long since have been answered.
    pub(super) caught_up: bool,
    leaving: Option<Leaving>,
    /// The message about a slow cancel, and when to show it.
    slow: Option<(Instant, &'static str)>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        out: &'a mut Output,
        follower: Follower,
        screen: Screen,
        watch: Option<TurnWatch>,
        manner: Manner,
    ) -> Self {
        let footer = manner.status.map(Footer::new);
        Self {
            out,
            follower,
            screen,
            watch,
            manner,
            asks: Asks::default(),
            console: Console::default(),
            draft: Draft::default(),
            footer,
            lines: VecDeque::new(),
            prompted: None,
            pages: None,
            caught_up: false,
            leaving: None,
            slow: None,
        }
    }

    /// Runs until the turn ends or the person leaves. `signals` listens from before the first word about Ctrl-C.
    pub(crate) async fn hold(mut self, mut signals: Signals) -> Result<Held, Failure> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.take_terminal();
        loop {
            let deadline = self.manner.deadline;
            let happened = match self.lines.pop_front() {
                Some(line) => Happened::Line(line),
                None => tokio::select! {
                    signal = signals.next() => Happened::Signal(signal),
                    _ = ticks.tick(), if self.footer.is_some() => Happened::Tick,
                    () = until(deadline) => Happened::Deadline,
                    () = until(self.slow.map(|(when, _)| when)) => Happened::Slow,
                    keys = self.console.keys(), if self.console.open() => Happened::Keys(keys),
                    news = self.follower.next() => Happened::News(news),
                },
            };
            if let Some(held) = self.happened(happened).await? {
                // Reports that a line begun here is dropped.
                self.show_question(None)?;
                self.screen.close(self.out)?;
                return Ok(held);
            }
        }
    }

    async fn happened(&mut self, happened: Happened) -> Result<Option<Held>, Failure> {
        if let Happened::Keys(keys) = happened {
            self.keys(&keys);
            return Ok(None);
        }
        self.hide_below();
        let held = match happened {
            Happened::News(news) => self.news(&news?).await?,
            Happened::Line(Some(line)) => self.line(line).await?,
            Happened::Line(None) => self.no_more_lines()?,
            Happened::Signal(TerminalSignal::Interrupt) => self.interrupted().await?,
            Happened::Deadline => self.too_late().await?,
            Happened::Slow => {
                if let Some((_, say)) = self.slow.take() {
                    self.screen.say(self.out, say)?;
                }
                None
            }
            Happened::Signal(TerminalSignal::Terminated) => Some(self.terminated()),
            Happened::Keys(_) => None,
            Happened::Signal(TerminalSignal::Continued) => {
                self.console.again();
                None
            }
            Happened::Tick => {
                self.take_terminal();
                self.footer.iter_mut().for_each(Footer::calm);
                None
            }
        };
        if held.is_none() {
            self.ask().await?;
            self.show_below();
        }
        Ok(held)
    }

    /// From here on, input is for this program, not for the shell.
    fn take_terminal(&mut self) {
        if self.manner.sends {
            self.console.take(Before::Keep);
        } else if self.manner.answers {
            self.console.take(Before::Drop);
        }
    }

    /// This program was terminated; the session continues.
    const fn terminated(&self) -> Held {
        match self.manner.interrupt {
            Interrupt::Cancel => Held::Interrupted(None),
            Interrupt::Detach => Held::Detached,
        }
    }

    /// stdin has ended: `attach` detaches; in `run`, approvals must now be answered from another terminal.
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

    async fn news(&mut self, news: &News) -> Result<Option<Held>, Failure> {
        if let Some(footer) = &mut self.footer {
            footer.observe(news);
        }
        match news {
            News::Synced(synced) => self.asks.synced(&synced.approvals),
            News::Delta(Delta::Asks { child, approvals }) => {
                for over in self.asks.of_subagent(*child, approvals) {
                    self.over(&over).await?;
                }
            }
            News::Event(..)
            | News::Delta(_)
            | News::Lagged
            | News::Retrying
            | News::Back
            | News::Ended(_) => {}
        }
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
            if let (News::Event(event, _), Some(watch)) = (news, &self.watch) {
                self.screen.foreign(event.turn != watch.turn());
            }
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
                self.show_question(None)?;
                Ok(None)
            }
            News::Delta(_) | News::Lagged | News::Back => Ok(None),
        }
    }

    fn ended(&self, result: Option<RunResult>) -> Held {
        match (self.leaving, result) {
            (Some(Leaving::Interrupted), result) => Held::Interrupted(result),
            (Some(Leaving::TimedOut), result) => Held::TimedOut(result),
            (None, Some(result)) => Held::Turn(result),
            (None, None) => Held::Detached,
        }
    }

    /// The status, if the session waits for something that cannot be answered from here.
    fn blocked(&self, status: &Status) -> Option<Held> {
        let parked = matches!(
            status.state,
            RunState::Waiting(WaitReason::Quota | WaitReason::Credentials)
        );
        // No answer from here helps a parked session, so `run` leaves it alone.
        let alone = self.manner.leaves_when == Some(Unattended::Waits) && status.state.blocked();
        let blocked = alone || (parked && self.watch.is_some());
        (blocked && self.leaving.is_none()).then(|| Held::Blocked(status.clone()))
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
            "timeout; cancelling the turn",
        )
        .await
    }

    /// Cancels the watched turn, or else the running one.
    pub(super) async fn cancel(&self, reason: &str) -> Result<(), Fault> {
        let turn = self.watch.as_ref().and_then(TurnWatch::turn);
        self.follower.cancel(turn, reason).await
    }

    async fn leave(
        &mut self,
        why: Leaving,
        reason: &str,
        say: &'static str,
    ) -> Result<Option<Held>, Failure> {
        self.leaving = Some(why);
        self.manner.deadline = Some(Instant::now() + CANCEL_GRACE);
        // While our message is queued, the running turn belongs to someone else.
        if let Some(input) = self.watch.as_ref().and_then(TurnWatch::waits)
            && self.follower.take_back(input).await.is_ok()
        {
            let text = "withdrew the message, which was still queued; the session continues";
            self.screen.say(self.out, text)?;
            return Ok(None);
        }
        self.slow = Some((Instant::now() + SLOW, say));
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
