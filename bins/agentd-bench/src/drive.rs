//! Drives sessions over the control protocol: few connections, many sessions, and one watcher that sees how turns end.

use crate::daemon::Bench;
use agentd_client::{Client, Push, Subscription};
use agentd_protocol::{Block, CreateParams, EndReason, Event, EventBody, SendParams, SessionId, WatchParams};
use anyhow::{Context as _, Result, bail};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Concurrent requests while sessions are created.
const IN_FLIGHT: usize = 64;
/// How long a wave may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// The observations of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The ends of turns, by session.
    pub(crate) ends: HashMap<SessionId, Vec<EndReason>>,
    /// The durations of a session's tool calls in milliseconds, in order.
    pub(crate) tools: HashMap<SessionId, Vec<u64>>,
    /// Tool calls that failed.
    pub(crate) failed_tools: u64,
    /// Failed attempts of model calls.
    pub(crate) failed_models: u64,
}

/// Watches all sessions.
#[derive(Debug)]
pub(crate) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    ended: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watcher {
    /// Watches from now on, on a connection of its own, so that it delays nothing else.
    pub(crate) async fn start(bench: &Bench) -> Result<Self> {
        Self::since(bench, None).await
    }

    /// Like `start`, but from a cursor on.
    pub(crate) async fn since(bench: &Bench, after: Option<u64>) -> Result<Self> {
        let kinds = ["turn.finished", "tool.finished", "model.failed"];
        let params = WatchParams {
            kinds: kinds.map(str::to_owned).to_vec(),
            after,
            ..WatchParams::default()
        };
        let news = bench.connect().await?.watch(&params).await?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (count, ended) = watch::channel(0);
        let task = tokio::spawn(follow(news, Arc::clone(&seen), count));
        Ok(Self { seen, ended, task })
    }

    /// The number of turns that have ended.
    pub(crate) fn ended(&self) -> u64 {
        *self.ended.borrow()
    }

    /// Waits until this many turns have ended.
    pub(crate) async fn until(&mut self, turns: u64) -> Result<()> {
        let there = self.ended.wait_for(|ended| *ended >= turns);
        let there = tokio::time::timeout(PATIENCE, there)
            .await
            .map(|there| there.is_ok());
        match there {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the watcher lost the daemon"),
            Err(_) => bail!("only {} of {turns} turns have ended", self.ended()),
        }
    }

    /// Waits until each of these sessions has ended this many turns.
    pub(crate) async fn until_each(&mut self, sessions: &[SessionId], turns: usize) -> Result<()> {
        let seen = Arc::clone(&self.seen);
        let late = move || {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = |session| seen.ends.get(session).map_or(0, Vec::len);
            sessions.iter().filter(|session| ended(*session) < turns).count()
        };
        let there = self.ended.wait_for(|_| late() == 0);
        let there = tokio::time::timeout(PATIENCE, there)
            .await
            .map(|there| there.is_ok());
        match there {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the watcher lost the daemon"),
            Err(_) => bail!(
                "{} of {} sessions have not ended {turns} turns",
                late(),
                sessions.len()
            ),
        }
    }

    /// Passes the observations to a function.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fails unless every turn so far has completed.
    pub(crate) fn all_completed(&self) -> Result<()> {
        let odd = self.with(|seen| {
            let ends = seen
                .ends
                .iter()
                .flat_map(|(session, ends)| ends.iter().map(move |end| (session, *end)));
            let odd: Vec<_> = ends.filter(|(_, end)| *end != EndReason::Completed).collect();
            odd.first()
                .map(|(session, end)| format!("{}, as that of {session}: {end:?}", odd.len()))
        });
        match odd {
            None => Ok(()),
            Some(odd) => bail!("turns that did not complete: {odd}"),
        }
    }
}

async fn follow(mut news: Subscription, seen: Arc<Mutex<Seen>>, count: watch::Sender<u64>) {
    while let Some(push) = news.next().await {
        let Push::Event(stored) = push else { continue };
        let Ok(event) = serde_json::from_slice::<Event>(&stored.json) else {
            continue;
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match event.body {
            EventBody::TurnFinished(end) => {
                seen.ends.entry(event.session).or_default().push(end.reason);
                drop(seen);
                count.send_modify(|ended| *ended += 1);
            }
            EventBody::ToolFinished(finished) => {
                let outcome = finished.outcome;
                seen.failed_tools += u64::from(outcome.status != agentd_protocol::ToolStatus::Ok);
                seen.tools
                    .entry(event.session)
                    .or_default()
                    .push(outcome.duration_ms);
            }
            EventBody::ModelFailed(_) => seen.failed_models += 1,
            _ => {}
        }
    }
}

/// A session to create: its name, which is also the key of its plan, its directory and its first prompt.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) workdir: String,
    pub(crate) prompt: Option<String>,
}

impl Wanted {
    /// Sessions with this name prefix, each with its own directory and a plan of this many steps.
    pub(crate) fn fleet(bench: &Bench, prefix: &str, sessions: u32, steps: u32) -> Result<Vec<Self>> {
        (0..sessions)
            .map(|n| {
                let name = format!("{prefix}{n}");
                Ok(Self {
                    workdir: bench.place(&name)?,
                    prompt: Some(bench.args.tools.plan(&name, steps)),
                    name,
                })
            })
            .collect()
    }

    /// Creates the session.
    pub(crate) async fn create(self, client: &Client) -> Result<SessionId> {
        let params = CreateParams {
            title: Some(self.name),
            workdir: self.workdir,
            prompt: self.prompt.map(|text| vec![Block::text(text)]),
            ..CreateParams::default()
        };
        Ok(client.create(&params).await?.session)
    }
}

/// Creates sessions, several concurrently. Returns their names by id.
pub(crate) async fn create_all(
    client: &Client,
    wanted: impl IntoIterator<Item = Wanted>,
) -> Result<HashMap<SessionId, String>> {
    let mut running = JoinSet::new();
    let mut created = HashMap::new();
    for session in wanted {
        if running.len() >= IN_FLIGHT {
            let (id, name) = running.join_next().await.context("one runs")???;
            created.insert(id, name);
        }
        let client = client.clone();
        running.spawn(async move {
            let name = session.name.clone();
            anyhow::Ok((session.create(&client).await?, name))
        });
    }
    while let Some(done) = running.join_next().await {
        let (id, name) = done??;
        created.insert(id, name);
    }
    Ok(created)
}

/// Sends a text to a session.
pub(crate) async fn send(client: &Client, session: SessionId, text: &str) -> Result<()> {
    let params = SendParams {
        session: session.to_string(),
        content: vec![Block::text(text)],
        ..SendParams::default()
    };
    client.send(&params).await?;
    Ok(())
}

/// Waits until all sessions are cold.
pub(crate) async fn cold(bench: &Bench) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let waiting = async {
        loop {
            ticks.tick().await;
            if bench.client.status().await?.hot == 0 {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("sessions stay in memory")?
}
