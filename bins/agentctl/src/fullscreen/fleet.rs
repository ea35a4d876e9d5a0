//! A person and the fleet, full-screen. The table asks the daemon for the rows that it shows, so its cost does not grow
//! with the fleet.

use crate::clock::now;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::follow::{Follower, Wanted};
use crate::fullscreen::requests::{LIVELY, until};
use crate::fullscreen::terminal::FullScreen;
use crate::fullscreen::{TAIL, job, session, theme};
use crate::interactive::{Signals, TerminalSignal, Typed, typed};
use agentd_client::{Client, ClientError};
use agentd_protocol::{
    ApprovalListParams, CancelTurnParams, Fault, LifecycleParams, ListParams, OpenApproval, Selector,
    SessionId, SortBy, UsageParams,
};
use agentd_tui::{FleetAction, FleetView, Snapshot};
use crossterm::event::Event as Typing;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The pause between two requests for the table. It is at least ten times the duration of the last request.
const REFRESH: Duration = Duration::from_secs(1);

/// The rows that a table shows.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) sort: SortBy,
    pub(crate) ascending: bool,
    pub(crate) search: String,
    pub(crate) labels: Selector,
    pub(crate) rows: usize,
}

/// Asks the daemon for the state of the fleet.
pub(crate) async fn snapshot(client: &Client, shown: &Shown) -> Result<Snapshot, ClientError> {
    let list = ListParams {
        sort: shown.sort,
        ascending: shown.ascending,
        search: shown.search.clone(),
        labels: shown.labels.clone(),
        limit: u32::try_from(shown.rows).unwrap_or(u32::MAX),
        ..ListParams::default()
    };
    let inbox = ApprovalListParams {
        labels: shown.labels.clone(),
        ..ApprovalListParams::default()
    };
    let usage = UsageParams {
        labels: shown.labels.clone(),
        by: None,
    };
    let (status, rows, history, models, approvals, usage) = tokio::try_join!(
        client.status(),
        client.list(&list),
        client.fleet_history(),
        client.models(),
        client.approvals(&inbox),
        client.usage(&usage),
    )?;
    Ok(Snapshot {
        node: format!("agentd on {}", status.node),
        rows,
        counts: history.totals,
        models,
        approvals: approvals.len(),
        steps: usage.iter().map(|row| row.steps).sum(),
        cost_usd: usage.iter().map(|row| row.cost_usd).sum(),
    })
}

/// The outcome of a request.
enum Outcome {
    Shot(Box<Snapshot>, Client, Duration),
    Lost(String),
    Told(String),
}

enum Happened {
    Typed(Option<Typing>),
    Outcome(Option<Outcome>),
    Signal(TerminalSignal),
    Refresh,
    Time,
}

struct Fleet<'a> {
    ctx: &'a Ctx,
    dial: Dial,
    client: Client,
    labels: Selector,
    view: FleetView,
    outcomes: mpsc::Sender<Outcome>,
    /// The time of the next request for the table; `None` while a request is running.
    next: Option<Instant>,
    /// The person changed what is wanted while an answer was awaited.
    again: bool,
}

/// Shows the fleet until the person leaves.
pub(crate) async fn show(ctx: &Ctx, dial: Dial, client: Client, labels: Selector) -> Result<(), Failure> {
    let (outcomes, received) = mpsc::channel(LIVELY);
    let fleet = Fleet {
        ctx,
        dial,
        client,
        labels,
        view: FleetView::new(theme(&ctx.environment, ctx.global.color), now()),
        outcomes,
        next: Some(Instant::now()),
        again: false,
    };
    fleet.hold(received).await
}

impl Fleet<'_> {
    async fn hold(mut self, mut outcomes: mpsc::Receiver<Outcome>) -> Result<(), Failure> {
        let mut screen = FullScreen::take()?;
        let mut signals = Signals::listen().map_err(Failure::Output)?;
        loop {
            let view = &mut self.view;
            screen.draw(|frame| {
                view.arrange(frame.area(), now());
                view.draw(frame);
            })?;
            let wake = screen.due().or_else(|| self.view.next_change().map(session::at));
            let happened = tokio::select! {
                biased;
                signal = signals.next() => Happened::Signal(signal),
                typing = screen.next() => Happened::Typed(typing),
                () = until(wake) => Happened::Time,
                outcome = outcomes.recv() => Happened::Outcome(outcome),
                () = until(self.next) => Happened::Refresh,
            };
            match happened {
                Happened::Typed(None)
                | Happened::Signal(TerminalSignal::Interrupt | TerminalSignal::Terminated) => return Ok(()),
                Happened::Signal(TerminalSignal::Continued) => screen.clear()?,
                Happened::Typed(Some(typing)) => {
                    screen.touch();
                    if !self.typing(&mut screen, &typing).await? {
                        return Ok(());
                    }
                }
                Happened::Outcome(outcome) => {
                    screen.touch();
                    outcome.into_iter().for_each(|outcome| self.outcome(outcome));
                }
                Happened::Refresh => self.refresh(),
                Happened::Time => screen.touch(),
            }
        }
    }

    fn refresh(&mut self) {
        self.next = None;
        let (sort, ascending, search, rows) = self.view.wanted();
        let shown = Shown {
            sort,
            ascending,
            search: search.to_lowercase(),
            labels: self.labels.clone(),
            rows,
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
                self.view.refresh(*shot, now());
                REFRESH.max(took * 10)
            }
            Outcome::Lost(why) => {
                self.view.lost(format!("{why}; trying again"), now());
                REFRESH
            }
            Outcome::Told(text) => {
                self.view.tell(text);
                return self.soon();
            }
        };
        let pause = if std::mem::take(&mut self.again) {
            Duration::ZERO
        } else {
            pause
        };
        self.next = Some(Instant::now() + pause);
    }

    /// Asks again at once, or as soon as the awaited answer is there.
    fn soon(&mut self) {
        if self.next.is_some() {
            self.next = Some(Instant::now());
        } else {
            self.again = true;
        }
    }

    async fn typing(&mut self, screen: &mut FullScreen, typing: &Typing) -> Result<bool, Failure> {
        let Typing::Key(key) = typing else { return Ok(true) };
        match self.view.key(*key, now()) {
            Some(action) => self.act(screen, action).await,
            None => Ok(true),
        }
    }

    /// Does what the view asks for; false if the person leaves.
    async fn act(&mut self, screen: &mut FullScreen, action: FleetAction) -> Result<bool, Failure> {
        match action {
            FleetAction::Quit => return Ok(false),
            FleetAction::Refresh => {}
            FleetAction::Suspend => screen.suspend()?,
            FleetAction::Redraw => screen.clear()?,
            FleetAction::Attach(session) => self.attach(screen, session).await?,
            FleetAction::Verb(words, waits) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                job::verb(screen, self.ctx, &self.dial, &words, waits).await?;
            }
            FleetAction::Command(line) => {
                let words: Vec<&str> = line.split_whitespace().collect();
                job::verb(screen, self.ctx, &self.dial, &words, true).await?;
            }
            FleetAction::Answer { approval, line } => self.answer(&approval, &line),
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
                    .resume(&lifecycle(session, "resumed in top"))
                    .await
                    .map(drop)
            }),
        }
        self.soon();
        Ok(true)
    }

    /// Shows one session; the fleet comes back when the person leaves it.
    async fn attach(&mut self, screen: &mut FullScreen, session: SessionId) -> Result<(), Failure> {
        let wanted = Wanted {
            session: session.to_string(),
            after: 0,
            tail: Some(TAIL),
            deltas: true,
            decides: true,
        };
        let shown = async {
            let row = self.client.get(&wanted.session).await?;
            let follower = Follower::attach(self.dial.clone(), self.client.clone(), wanted).await?;
            screen.leave();
            session::follow(self.ctx, self.dial.clone(), follower, &row, None, (true, false)).await
        };
        if let Err(failure) = shown.await {
            self.view.tell(failure.fault().message);
        }
        screen.back()
    }

    fn answer(&mut self, open: &OpenApproval, line: &str) {
        match typed(line, Some(open), false) {
            Typed::Decide(answer) => {
                let params = answer.params(open);
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

fn lifecycle(session: String, reason: &str) -> LifecycleParams {
    LifecycleParams {
        session,
        reason: Some(reason.to_owned()),
        force: false,
    }
}
