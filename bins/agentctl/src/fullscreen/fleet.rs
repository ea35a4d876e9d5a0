//! A person and the fleet, full-screen. The table asks the daemon for the rows that it shows, so its cost does not grow
//! with the fleet.

use crate::clock::now;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::fullscreen::requests::{LIVELY, question};
use crate::fullscreen::snapshot::{Shown, snapshot};
use crate::fullscreen::stage::{Stage, hold, until, visit};
use crate::fullscreen::terminal::FullScreen;
use crate::fullscreen::{job, theme};
use crate::interactive::{Typed, typed};
use agentd_client::{Client, ClientError, Push, Subscription};
use agentd_protocol::{
    ApprovalId, ApprovalQuestion, CancelTurnParams, Fault, Labels, LifecycleParams, OpenApproval,
    ResumeParams, Selector, SessionId, Timestamp, WatchParams,
};
use agentd_tui::{FleetAction, FleetView, Snapshot};
use crossterm::event::Event as Typing;
use ratatui::Frame;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The pause between two requests for the table. It is at least ten times the duration of the last request.
const REFRESH: Duration = Duration::from_secs(1);

/// The pause while nothing changes. An event of any session ends it.
const REST: Duration = Duration::from_secs(5);

/// The pause between two requests for the totals.
const TOTALS: Duration = Duration::from_secs(5);

/// The outcome of a request.
enum Outcome {
    Shot(Box<Snapshot>, Client, Duration),
    Lost(String),
    Told(String),
    /// The lines of a question; or why they cannot be shown.
    Question(ApprovalId, Result<Box<ApprovalQuestion>, String>),
    /// Events of the fleet arrive here from now on.
    Watching(Subscription),
}

/// An event that the view waits for.
enum Happened {
    Outcome(Option<Outcome>),
    Refresh,
    /// An event ends the rest of the fleet.
    Stirs,
}

struct Fleet<'a> {
    ctx: &'a Ctx,
    dial: Dial,
    client: Client,
    labels: Selector,
    view: FleetView,
    outcomes: mpsc::Sender<Outcome>,
    received: mpsc::Receiver<Outcome>,
    /// When the totals were read last.
    spent: Option<Instant>,
    /// The time of the next request for the table; `None` while a request is running.
    next: Option<Instant>,
    /// When the last answer came.
    answered: Instant,
    /// The events of a fleet at rest.
    watch: Option<Subscription>,
    /// The person changed what is wanted while an answer was awaited.
    again: bool,
}

/// Shows the fleet until the person leaves.
pub(crate) async fn show(ctx: &Ctx, dial: Dial, client: Client, labels: Selector) -> Result<(), Failure> {
    let (outcomes, received) = mpsc::channel(LIVELY);
    let mut fleet = Fleet {
        ctx,
        dial,
        client,
        labels,
        view: FleetView::new(theme(&ctx.environment, ctx.global.color), now()),
        outcomes,
        received,
        spent: None,
        next: Some(Instant::now()),
        answered: Instant::now(),
        watch: None,
        again: false,
    };
    hold(&mut fleet, ctx).await
}

impl Stage for Fleet<'_> {
    type News = Happened;

    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.view.arrange(frame.area(), now());
        self.view.draw(frame);
    }

    fn next_change(&self) -> Option<Timestamp> {
        self.view.next_change()
    }

    async fn next(&mut self) -> Happened {
        tokio::select! {
            biased;
            outcome = self.received.recv() => Happened::Outcome(outcome),
            () = until(self.next) => Happened::Refresh,
            () = stirs(&mut self.watch) => Happened::Stirs,
        }
    }

    fn news(&mut self, news: Happened) -> Result<bool, Failure> {
        match news {
            Happened::Outcome(outcome) => outcome.into_iter().for_each(|outcome| self.outcome(outcome)),
            Happened::Refresh => self.refresh(),
            Happened::Stirs => {
                self.watch = None;
                if self.next.is_some() {
                    self.next = Some(self.answered + REFRESH);
                }
            }
        }
        Ok(true)
    }

    async fn typing(&mut self, screen: &mut FullScreen, typing: Typing) -> Result<bool, Failure> {
        let action = match typing {
            Typing::Key(key) => self.view.key(key, now()),
            Typing::Mouse(event) => self.view.mouse(event),
            Typing::Paste(text) => self.view.paste(&text),
            Typing::Resize(..) | Typing::FocusGained | Typing::FocusLost => None,
        };
        let goes_on = match action {
            Some(action) => self.act(screen, action).await?,
            None => true,
        };
        self.show_question();
        Ok(goes_on)
    }
}

impl Fleet<'_> {
    /// Asks for the lines of a question that has none yet.
    fn show_question(&mut self) {
        let Some(approval) = self.view.wants_question() else {
            return;
        };
        let (client, outcomes) = (self.client.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            let outcome = Outcome::Question(approval, question(&client, approval).await);
            // Fails if the view is closed.
            let _ = outcomes.send(outcome).await;
        });
    }

    fn refresh(&mut self) {
        self.next = None;
        let wanted = self.view.wanted();
        let spent = self.spent.is_none_or(|read| read.elapsed() >= TOTALS);
        if spent {
            self.spent = Some(Instant::now());
        }
        let shown = Shown {
            sort: wanted.sort,
            ascending: wanted.ascending,
            search: wanted.search.to_lowercase(),
            labels: self.labels.clone().and(selector(wanted.label)),
            rows: wanted.rows,
            spent,
        };
        let (client, dial, outcomes) = (self.client.clone(), self.dial.clone(), self.outcomes.clone());
        let lost = client.lost().is_some();
        tokio::spawn(async move {
            let began = Instant::now();
            let client = if lost {
                dial.try_connect().await
            } else {
                Ok(client)
            };
            let outcome = match client {
                Ok(client) => snapshot(&client, &shown)
                    .await
                    .map(|shot| Outcome::Shot(Box::new(shot), client, began.elapsed())),
                Err(error) => Err(error),
            };
            let outcome = outcome.unwrap_or_else(|error| Outcome::Lost(Fault::from(error).message));
            // Fails if the view is closed.
            let _ = outcomes.send(outcome).await;
        });
    }

    fn outcome(&mut self, outcome: Outcome) {
        let pause = match outcome {
            Outcome::Shot(shot, client, took) => {
                self.client = client;
                self.answered = Instant::now();
                let changed = self.view.refresh(*shot, now());
                self.pause(changed, took)
            }
            Outcome::Watching(watch) => {
                // What changed before it began is not among its events.
                self.watch = Some(watch);
                return self.soon();
            }
            Outcome::Lost(why) => {
                self.view.lost(format!("{why}; trying again"), now());
                REFRESH
            }
            Outcome::Told(text) => {
                self.view.tell(text);
                return self.soon();
            }
            Outcome::Question(approval, question) => return self.view.question(approval, question),
        };
        let pause = if std::mem::take(&mut self.again) {
            Duration::ZERO
        } else {
            pause
        };
        self.next = Some(Instant::now() + pause);
    }

    /// The pause before the next request. While nothing changes, the daemon tells when that is over.
    fn pause(&mut self, changed: bool, took: Duration) -> Duration {
        if changed {
            self.watch = None;
        } else if self.watch.is_some() {
            return REST;
        } else {
            let (client, outcomes) = (self.client.clone(), self.outcomes.clone());
            let params = WatchParams {
                labels: self.labels.clone(),
                ..WatchParams::default()
            };
            tokio::spawn(async move {
                // Without it, the table asks as often as before.
                if let Ok(watch) = client.watch(&params).await {
                    let _ = outcomes.send(Outcome::Watching(watch)).await;
                }
            });
        }
        REFRESH.max(took * 10)
    }

    /// Asks again at once, or as soon as the awaited answer is there.
    fn soon(&mut self) {
        if self.next.is_some() {
            self.next = Some(Instant::now());
        } else {
            self.again = true;
        }
    }

    /// Does what the view asks for; false if the person leaves.
    async fn act(&mut self, screen: &mut FullScreen, action: FleetAction) -> Result<bool, Failure> {
        match action {
            FleetAction::Quit => return Ok(false),
            FleetAction::Refresh => {}
            FleetAction::Suspend => screen.suspend()?,
            FleetAction::Redraw => screen.clear()?,
            FleetAction::Attach(session) => {
                if let Some(why) = visit(screen, self.ctx, &self.dial, &self.client, session).await? {
                    self.view.tell(why);
                }
            }
            FleetAction::Inbox => {
                let labels = self.labels.to_string();
                let mut words = vec!["approvals", "-w"];
                if !labels.is_empty() {
                    words.extend(["-l", &labels]);
                }
                job::verb(screen, self.ctx, &self.dial, &words, false).await?;
            }
            FleetAction::Verb(words, waits) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                job::verb(screen, self.ctx, &self.dial, &words, waits).await?;
            }
            FleetAction::Command(line) => {
                let words: Vec<&str> = line.split_whitespace().collect();
                job::verb(screen, self.ctx, &self.dial, &words, true).await?;
            }
            FleetAction::Answer {
                approval,
                line,
                shown,
            } => self.answer(&approval, &line, shown.as_deref()),
            FleetAction::Cancel(sessions) => self.each(sessions, "cancelled", |client, session| async move {
                let params = CancelTurnParams {
                    session,
                    expect_turn: None,
                    reason: Some("cancelled in top".to_owned()),
                    kill: false,
                };
                client.cancel_turn(&params).await.map(drop)
            }),
            FleetAction::Pause(sessions) => self.each(sessions, "paused", |client, session| async move {
                client.pause(&lifecycle(session, "paused in top")).await.map(drop)
            }),
            FleetAction::Resume(sessions) => self.each(sessions, "resumed", |client, session| async move {
                client
                    .resume(&ResumeParams {
                        session,
                        reason: Some("resumed in top".to_owned()),
                        ..ResumeParams::default()
                    })
                    .await
                    .map(drop)
            }),
        }
        self.soon();
        Ok(true)
    }

    fn answer(&mut self, open: &OpenApproval, line: &str, shown: Option<&str>) {
        match typed(line, Some(open), false) {
            Typed::Decide(answer) => {
                let params = answer.params(open, shown);
                let (client, outcomes) = (self.client.clone(), self.outcomes.clone());
                tokio::spawn(async move {
                    let told = match client.decide(&params).await {
                        Ok(_) => "answered".to_owned(),
                        Err(error) => Fault::from(error).message,
                    };
                    let _ = outcomes.send(Outcome::Told(told)).await;
                });
            }
            Typed::Unclear(text) => self.view.tell(text),
            _ => {}
        }
    }

    /// Does the same with several sessions, and tells what came of it.
    fn each<F>(
        &self,
        sessions: Vec<SessionId>,
        done: &'static str,
        work: impl Fn(Client, String) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), ClientError>> + Send,
    {
        let (client, outcomes) = (self.client.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            let (mut good, mut bad) = (0, None);
            for session in sessions {
                match work(client.clone(), session.to_string()).await {
                    Ok(()) => good += 1,
                    Err(error) => bad = Some(Fault::from(error).message),
                }
            }
            let failed = bad.map(|why| format!("; {why}")).unwrap_or_default();
            let _ = outcomes
                .send(Outcome::Told(format!("{good} {done}{failed}")))
                .await;
        });
    }
}

/// Waits for an event. The end of a subscription counts as one: the next request finds out why. Cancel-safe.
async fn stirs(watch: &mut Option<Subscription>) {
    let Some(watch) = watch else {
        return std::future::pending().await;
    };
    while let Some(Push::CaughtUp(_) | Push::Unknown) = watch.next().await {}
}

/// The sessions with this value of a label, or without the label.
fn selector(label: Option<(&str, Option<&str>)>) -> Selector {
    match label {
        Some((key, Some(value))) => Labels::from([(key.to_owned(), value.to_owned())]).into(),
        Some((key, None)) => format!("!{key}").parse().unwrap_or_default(),
        None => Selector::default(),
    }
}

fn lifecycle(session: String, reason: &str) -> LifecycleParams {
    LifecycleParams {
        session,
        reason: Some(reason.to_owned()),
        force: false,
    }
}
