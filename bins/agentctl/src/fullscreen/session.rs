//! A person and one session, full-screen.

use crate::clock::now;
use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::follow::{Follower, News};
use crate::fullscreen::history::History;
use crate::fullscreen::requests::{LIVELY, Outcome, Requests};
use crate::fullscreen::stage::{Stage, hold, until, visit};
use crate::fullscreen::terminal::FullScreen;
use crate::fullscreen::{detach_keys, job, picture, theme};
use crate::interactive::{RunResult, TurnWatch, Typed, typed};
use agentd_client::Client;
use agentd_protocol::{CommandRow, EventBody, FaultClass, OpenApproval, SessionParams, Summary, Timestamp};
use agentd_tui::{Action, Proposal, SessionView, Setup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::Event as Typing;
use ratatui::Frame;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The most that is put on the clipboard; terminals refuse more.
const MOST_COPIED: usize = 70_000;

/// The pause between two requests for the sub-agents.
const LOOK: Duration = Duration::from_secs(1);

/// The commands of this program; the daemon tells its own.
const COMMANDS: [(&str, &str); 4] = [
    ("/cancel", "cancel the turn"),
    ("/detach", "leave; the session continues"),
    ("/help", "the keys"),
    ("/resume", "resume after a pause, or retry a parked call now"),
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

/// What a session's view waits for.
enum Happened {
    Told(Option<Told>),
    Outcome(Option<Outcome>),
    Look,
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
    news: mpsc::Receiver<Told>,
    received: mpsc::Receiver<Outcome>,
    /// When to ask for the sub-agents again; absent: an answer is awaited.
    look: Option<Instant>,
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
    let params = SessionParams {
        session: row.session.to_string(),
    };
    let (models, commands) = tokio::join!(client.models(), client.commands(&params));
    let windows = models.unwrap_or_default().into_iter();
    let windows = windows.map(|model| (model.name, model.context_window));
    let setup = Setup {
        theme: theme(&ctx.environment, ctx.global.color),
        writes,
        history: history.read(),
        commands: proposals(commands.unwrap_or_default()),
        windows: windows.collect(),
        detach: detach_keys(ctx.environment.get("AGENTCTL_DETACH_KEYS")),
        open,
    };
    let (outcomes, received) = mpsc::channel(LIVELY);
    let (news, _task) = keep(follower);
    let mut session = Session {
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
        news,
        received,
        look: Some(Instant::now()),
    };
    hold(&mut session, ctx).await?;
    Ok(Followed {
        words: session.view.last_words(),
        result: session.result,
    })
}

/// The commands of this program and of the daemon, by name.
fn proposals(of_daemon: Vec<CommandRow>) -> Vec<Proposal> {
    let ours = COMMANDS.map(|(text, help)| Proposal {
        text: text.to_owned(),
        help: help.to_owned(),
    });
    let theirs = of_daemon.into_iter().map(|row| {
        // The help of a built-in command begins with its arguments.
        let help = row
            .help
            .split_once("  ")
            .map_or(row.help.as_str(), |(_, help)| help);
        Proposal {
            text: format!("/{}", row.name),
            help: help.to_owned(),
        }
    });
    let known = |text: &str| COMMANDS.iter().any(|(ours, _)| *ours == text);
    let mut all: Vec<Proposal> = theirs.filter(|one| !known(&one.text)).chain(ours).collect();
    all.sort_by(|one, other| one.text.cmp(&other.text));
    all
}

impl Stage for Session<'_> {
    type News = Happened;

    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.view.arrange(frame.area(), now());
        self.view.draw(frame);
    }

    fn next_change(&self) -> Option<Timestamp> {
        self.view.next_change()
    }

    async fn next(&mut self) -> Happened {
        let look = self.look.filter(|_| self.view.wants_family());
        tokio::select! {
            biased;
            outcome = self.received.recv() => Happened::Outcome(outcome),
            () = until(look) => Happened::Look,
            told = self.news.recv() => Happened::Told(told),
        }
    }

    fn news(&mut self, news: Happened) -> Result<bool, Failure> {
        let goes_on = self.heard(news)?;
        self.show_question();
        Ok(goes_on)
    }

    async fn typing(&mut self, screen: &mut FullScreen, typing: Typing) -> Result<bool, Failure> {
        let action = match typing {
            Typing::Key(key) => self.view.key(key, now()),
            Typing::Mouse(event) => self.view.mouse(event),
            Typing::Paste(text) => {
                self.view.paste(&text);
                None
            }
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

impl Session<'_> {
    /// Asks for the lines of a question that has none yet.
    fn show_question(&mut self) {
        if let Some(approval) = self.view.wants_question() {
            self.requests.question(approval);
        }
    }

    /// Handles what happened; false if it is the last.
    fn heard(&mut self, news: Happened) -> Result<bool, Failure> {
        // The view may have been idle since it was drawn.
        self.view.at(now());
        match news {
            Happened::Told(None) => return Ok(false),
            Happened::Told(Some(told)) => return self.told(told),
            Happened::Outcome(outcome) => outcome.into_iter().for_each(|outcome| self.outcome(outcome)),
            Happened::Look => {
                self.look = None;
                self.requests.family();
            }
        }
        Ok(true)
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
            Outcome::Family(rows) => {
                self.look = Some(Instant::now() + LOOK);
                if !rows.is_empty() {
                    self.view.family(rows);
                }
            }
            Outcome::Files(of, found) => self.view.files(&of, found),
            Outcome::Question(approval, question) => self.view.question(approval, question),
            Outcome::Refused(approval, fault) => {
                let over = fault.code != "question_changed"
                    && matches!(fault.class, FaultClass::Conflict | FaultClass::NotFound);
                self.view.refused(approval, over);
                self.view.failed(fault.message);
            }
        }
    }

    fn answer(&mut self, open: &OpenApproval, line: &str, shown: Option<&str>) {
        match typed(line, Some(open), false) {
            Typed::Decide(answer) => {
                let params = answer.params(open, shown);
                self.requests.decide(open.approval, params);
            }
            Typed::Unclear(text) => {
                self.view.refused(open.approval, false);
                self.view.tell(text);
            }
            _ => self.view.refused(open.approval, false),
        }
    }

    /// Does what the view asks for; false if the person leaves.
    async fn act(&mut self, screen: &mut FullScreen, action: Action) -> Result<bool, Failure> {
        match action {
            Action::Send { text, delivery } => return Ok(self.send(&text, delivery)),
            Action::Answer {
                approval,
                line,
                shown,
            } => self.answer(&approval, &line, shown.as_deref()),
            Action::Cancel => self.requests.cancel(self.view.turn()),
            Action::Mode(mode) => self.requests.mode(mode),
            Action::Withdraw(input) => self.requests.withdraw(input),
            page @ (Action::Older(_) | Action::Newer(_) | Action::Tail) => {
                self.requests.page(page, self.view.head());
            }
            Action::Open(session) => {
                let client = self.requests.client.clone();
                if let Some(why) = visit(screen, self.ctx, &self.dial, &client, session).await? {
                    self.view.tell(why);
                }
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
                job::verb(screen, self.ctx, &self.dial, &["logs", &session], true).await?;
            }
            Action::Images(seq) => {
                let images = self.requests.images(seq).await;
                if let Some(why) = picture::show(screen, &self.ctx.environment, images).await? {
                    self.view.tell(why);
                }
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
