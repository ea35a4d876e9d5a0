//! A person and one session, full-screen.

use crate::clock::now;
use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::follow::{Follower, News};
use crate::fullscreen::history::History;
use crate::fullscreen::requests::{LIVELY, Outcome, Requests, until};
use crate::fullscreen::terminal::FullScreen;
use crate::fullscreen::{job, theme};
use crate::interactive::{RunResult, Signals, TerminalSignal, TurnWatch, Typed, typed};
use agentd_client::Client;
use agentd_protocol::{EventBody, FaultClass, Summary, Timestamp};
use agentd_tui::{Action, Proposal, SessionView, Setup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::Event as Typing;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The most that is put on the clipboard; terminals refuse more.
const MOST_COPIED: usize = 70_000;

/// The commands that every session has; the daemon knows more.
const COMMANDS: [(&str, &str); 9] = [
    ("/cancel", "cancel the turn"),
    (
        "/compact",
        "replace the beginning of the conversation with a summary",
    ),
    ("/detach", "leave; the session continues"),
    ("/help", "the keys"),
    ("/mode", "show or change the permission mode: /mode plan"),
    ("/model", "show or change the model: /model NAME"),
    ("/plan", "make a plan first: /plan TASK"),
    ("/resume", "resume after a pause, or retry a parked call now"),
    ("/todo", "show or change the list of things to do"),
];

/// How the person left.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The watched turn, if it ended.
    pub(crate) result: Option<RunResult>,
    /// The model's last words.
    pub(crate) words: Option<String>,
}

/// News of the session, from a task that keeps the connection.
enum Told {
    News(News),
    Connection(Client),
    Over(Failure),
}

/// Ends the task with the view.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn keep(mut follower: Follower) -> (mpsc::Receiver<Told>, Task) {
    let (send, receive) = mpsc::channel(LIVELY);
    let task = tokio::spawn(async move {
        loop {
            let told = match follower.next().await {
                Ok(News::Back) => {
                    if send.send(Told::Connection(follower.client())).await.is_err() {
                        return;
                    }
                    Told::News(News::Back)
                }
                Ok(news) => Told::News(news),
                Err(failure) => Told::Over(failure),
            };
            let over = matches!(told, Told::Over(_) | Told::News(News::Ended(_)));
            if send.send(told).await.is_err() || over {
                return;
            }
        }
    });
    (receive, Task(task))
}

enum Happened {
    Typed(Option<Typing>),
    Told(Option<Told>),
    Outcome(Option<Outcome>),
    Signal(TerminalSignal),
    Time,
}

struct Session<'a> {
    ctx: &'a Ctx,
    dial: Dial,
    view: SessionView,
    requests: Requests,
    history: History,
    watch: Option<TurnWatch>,
    result: Option<RunResult>,
    workdir: String,
}

/// Shows a session until the person leaves or the session ends.
pub(crate) async fn follow(
    ctx: &Ctx,
    dial: Dial,
    follower: Follower,
    row: &Summary,
    watch: Option<TurnWatch>,
    (writes, open): (bool, bool),
) -> Result<Followed, Failure> {
    let history = History::of(&ctx.environment);
    let client = follower.client();
    let models = client.models().await.unwrap_or_default();
    let windows = models.into_iter().map(|model| (model.name, model.context_window));
    let commands = COMMANDS.map(|(text, help)| Proposal {
        text: text.to_owned(),
        help: help.to_owned(),
    });
    let setup = Setup {
        theme: theme(&ctx.environment, ctx.global.color),
        writes,
        history: history.read(),
        commands: commands.into(),
        windows: windows.collect(),
        detach: detach_keys(ctx.environment.get("AGENTCTL_DETACH_KEYS")),
        open,
    };
    let (outcomes, received) = mpsc::channel(LIVELY);
    let session = Session {
        ctx,
        dial,
        view: SessionView::new(row, setup, now()),
        requests: Requests {
            client,
            session: row.session.to_string(),
            outcomes,
        },
        history,
        watch,
        result: None,
        workdir: row.workdir.clone(),
    };
    session.hold(follower, received).await
}

/// The two letters of `ctrl-p,ctrl-q`; these two if the setting is unusable.
fn detach_keys(setting: Option<&str>) -> (char, char) {
    let letter = |key: &str| {
        let name = key.trim().strip_prefix("ctrl-")?;
        let mut letters = name.chars();
        letters
            .next()
            .filter(|c| c.is_ascii_lowercase() && letters.next().is_none())
    };
    let keys = setting.and_then(|setting| setting.split_once(','));
    keys.and_then(|(first, second)| Some((letter(first)?, letter(second)?)))
        .unwrap_or(('p', 'q'))
}

impl Session<'_> {
    async fn hold(
        mut self,
        follower: Follower,
        mut outcomes: mpsc::Receiver<Outcome>,
    ) -> Result<Followed, Failure> {
        let (mut news, _task) = keep(follower);
        let mut screen = FullScreen::take()?;
        let mut signals = Signals::listen().map_err(Failure::Output)?;
        loop {
            let view = &mut self.view;
            screen.draw(|frame| {
                view.arrange(frame.area(), now());
                view.draw(frame);
            })?;
            let wake = screen.due().or_else(|| self.view.next_change().map(at));
            let happened = tokio::select! {
                biased;
                signal = signals.next() => Happened::Signal(signal),
                typing = screen.next() => Happened::Typed(typing),
                () = until(wake) => Happened::Time,
                outcome = outcomes.recv() => Happened::Outcome(outcome),
                told = news.recv() => Happened::Told(told),
            };
            screen.touch();
            let goes_on = match happened {
                Happened::Typed(None) | Happened::Told(None) => false,
                Happened::Typed(Some(typing)) => self.typing(&mut screen, typing).await?,
                Happened::Told(Some(told)) => self.told(told)?,
                Happened::Outcome(outcome) => {
                    outcome.into_iter().for_each(|outcome| self.outcome(outcome));
                    true
                }
                Happened::Signal(TerminalSignal::Continued) => {
                    screen.clear()?;
                    true
                }
                Happened::Signal(TerminalSignal::Interrupt | TerminalSignal::Terminated) => false,
                Happened::Time => true,
            };
            if !goes_on {
                return Ok(Followed {
                    words: self.view.last_words(),
                    result: self.result,
                });
            }
        }
    }

    /// Handles news; false if they are the last.
    fn told(&mut self, told: Told) -> Result<bool, Failure> {
        let news = match told {
            Told::Over(failure) => return Err(failure),
            Told::Connection(client) => {
                self.requests.client = client;
                return Ok(true);
            }
            Told::News(news) => news,
        };
        match &news {
            News::Event(event, _) => {
                self.view.event(event);
                if let Some(result) = self.watch.as_mut().and_then(|watch| watch.observe(event)) {
                    self.result = Some(result);
                    self.watch = None;
                }
                if let EventBody::SessionClosed(closed) = &event.body {
                    self.view
                        .tell(format!("the session is closed: {}", closed.reason));
                }
            }
            News::Delta(delta) => self.view.delta(delta),
            News::Synced(synced) => self.view.synced(synced),
            News::Lagged => self.view.lagged(),
            News::Retrying => self.view.connected(false),
            News::Back => self.view.connected(true),
            News::Ended(ended) => self.view.tell(ended.message.clone()),
        }
        Ok(!matches!(news, News::Ended(_)))
    }

    fn outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Told(text) => self.view.tell(text),
            Outcome::Failed(text) => self.view.failed(text),
            Outcome::Page(wanted, events, head) => self.view.page(&wanted, &events, head),
            Outcome::Files(of, found) => self.view.files(&of, found),
            Outcome::Refused(approval, fault) => {
                let over = matches!(fault.class, FaultClass::Conflict | FaultClass::NotFound);
                self.view.refused(approval, over);
                self.view.failed(fault.message);
            }
        }
    }

    async fn typing(&mut self, screen: &mut FullScreen, typing: Typing) -> Result<bool, Failure> {
        let action = match typing {
            Typing::Key(key) => self.view.key(key, now()),
            Typing::Paste(text) => {
                self.view.paste(&text);
                None
            }
            Typing::Resize(..) | Typing::FocusGained | Typing::FocusLost | Typing::Mouse(_) => None,
        };
        match action {
            Some(action) => self.act(screen, action).await,
            None => Ok(true),
        }
    }

    /// Does what the view asks for; false if the person leaves.
    async fn act(&mut self, screen: &mut FullScreen, action: Action) -> Result<bool, Failure> {
        match action {
            Action::Send { text, delivery } => return Ok(self.send(&text, delivery)),
            Action::Answer { approval, line } => match typed(&line, Some(&approval), false) {
                Typed::Decide(answer) => self.requests.decide(approval.approval, answer.params(&approval)),
                Typed::Unclear(text) => {
                    self.view.refused(approval.approval, false);
                    self.view.tell(text);
                }
                _ => self.view.refused(approval.approval, false),
            },
            Action::Cancel => self.requests.cancel(self.view.turn()),
            Action::Mode(mode) => self.requests.mode(mode),
            Action::Withdraw(input) => self.requests.withdraw(input),
            page @ (Action::Older(_) | Action::Newer(_) | Action::Tail) => {
                self.requests.page(page, self.view.head());
            }
            Action::Copy(text) => {
                let end = text.floor_char_boundary(MOST_COPIED);
                let copied = text.get(..end).unwrap_or_default();
                screen.copy(&STANDARD.encode(copied))?;
                self.view
                    .tell(format!("copied {} characters", copied.chars().count()));
            }
            Action::Pager => {
                let session = self.requests.session.clone();
                job::verb(screen, self.ctx, &self.dial, &["logs", &session], false).await?;
            }
            Action::Editor(text) => match job::editor(screen, self.ctx, &text).await {
                Ok(Some(text)) => self.view.edited(&text),
                Ok(None) => self
                    .view
                    .tell("the editor failed; the message is unchanged".to_owned()),
                Err(failure) => self.view.tell(failure.fault().message),
            },
            Action::Files(of) => {
                if matches!(self.dial.address, Address::Socket { .. }) {
                    self.requests.files(&self.workdir, of);
                }
            }
            Action::Suspend => screen.suspend()?,
            Action::Redraw => screen.clear()?,
            Action::Detach => return Ok(false),
        }
        Ok(true)
    }

    fn send(&mut self, text: &str, delivery: Option<agentd_protocol::Delivery>) -> bool {
        self.history.add(text);
        match typed(text, None, true) {
            Typed::Send(text) => self.requests.send(text, delivery),
            Typed::Cancel => self.requests.cancel(self.view.turn()),
            Typed::Resume => self.requests.resume(),
            Typed::Compact => self.requests.compact(),
            Typed::Detach => return false,
            Typed::Unclear(text) => self.view.tell(text),
            Typed::Decide(_) | Typed::Help | Typed::Nothing => {}
        }
        true
    }
}

/// The moment on the clock that waits use.
pub(super) fn at(moment: Timestamp) -> Instant {
    Instant::now() + Duration::from_millis(moment.since_ms(now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_detach_can_be_chosen() {
        assert_eq!(detach_keys(None), ('p', 'q'));
        assert_eq!(detach_keys(Some("ctrl-a, ctrl-d")), ('a', 'd'));
        assert_eq!(detach_keys(Some("alt-a,d")), ('p', 'q'));
    }
}
