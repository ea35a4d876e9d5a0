//! A fleet that changes as fast as wanted. It answers a client as the daemon does for a list of sessions, their numbers
//! and their events, and passes all other requests on to the daemon. The daemon's own work for these changes would take
//! processor time away from the measured program.

use agentd_client::Client;
use agentd_protocol::{
    FleetCounts, FleetHistory, ListParams, Listed, RunState, Stamp, Status, Subscribed, Summary, Timestamp,
    Usage, UsageRow,
};
use agentd_wire::{
    ClientFrame, Decoder, FrameLimits, Push, Request, ServerFrame, StoredEvent, decode_client, encode,
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// Rounds of changes in a second.
const ROUNDS: u32 = 50;
/// Events that a slow watcher may be behind.
const BEHIND: usize = 100_000;

/// The fleet; it ends when dropped.
#[derive(Debug)]
pub(crate) struct PlayedFleet {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    daemon: Client,
    rows: Mutex<Vec<Summary>>,
    events: broadcast::Sender<StoredEvent>,
    changes: AtomicBool,
    changed: AtomicU64,
    asked: AtomicU64,
}

impl Drop for PlayedFleet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark stands in for a daemon, whose rows have ages"
)]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(0))
}

fn row(n: u32) -> Summary {
    let state = match n % 10 {
        0 => RunState::RunningTool,
        1..=3 => RunState::RunningModel,
        _ => RunState::Idle,
    };
    let team = ["infra", "web", "data"].into_iter().cycle().nth(n as usize);
    Summary {
        name: format!("session {n}"),
        model: "claude".to_owned(),
        workdir: format!("/home/ana/projects/project-{n}"),
        labels: [("team".to_owned(), team.unwrap_or_default().to_owned())].into(),
        ..Summary::new(
            Stamp::new(now(), n.into()).session(),
            Status::new(state, "step 1: claude answers", now()),
        )
    }
}

impl PlayedFleet {
    /// Plays a fleet with this number of sessions on a socket.
    pub(crate) fn start(socket: &Path, daemon: Client, sessions: u32, changes: u32) -> Result<Self> {
        let listener = UnixListener::bind(socket).context("the played fleet needs its socket")?;
        let shared = Arc::new(Shared {
            daemon,
            rows: Mutex::new((0..sessions).map(row).collect()),
            events: broadcast::channel(BEHIND).0,
            changes: AtomicBool::new(false),
            changed: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        });
        let tasks = vec![
            tokio::spawn(accept(listener, Arc::clone(&shared))),
            tokio::spawn(change(Arc::clone(&shared), changes)),
        ];
        Ok(Self { shared, tasks })
    }

    /// Whether sessions change.
    pub(crate) fn lively(&self, lively: bool) {
        self.shared.changes.store(lively, Ordering::Relaxed);
    }

    /// The number of changes so far, and of requests for the list.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.changed), count(&self.shared.asked))
    }
}

/// Changes other sessions in each round.
async fn change(shared: Arc<Shared>, changes: u32) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / ROUNDS);
    let mut next = 0_usize;
    loop {
        ticks.tick().await;
        if !shared.changes.load(Ordering::Relaxed) {
            continue;
        }
        let mut rows = shared.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rows.len();
        for _ in 0..changes / ROUNDS {
            // A step that shares no factor with the number of sessions comes to all of them.
            next = (next + 7_919) % count.max(1);
            let cursor = shared.changed.fetch_add(1, Ordering::Relaxed) + 1;
            let Some(row) = rows.get_mut(next) else { return };
            progress(row);
            let json = json!({
                "v": 1, "session": row.session, "seq": row.seq, "at": row.updated_at, "by": "daemon",
                "type": "session.updated", "title": row.name,
            });
            let event = StoredEvent {
                json: json.to_string().into_bytes().into(),
                cursor: Some(cursor),
            };
            // It fails while no client watches.
            let _ = shared.events.send(event);
        }
    }
}

/// A step of a session.
fn progress(row: &mut Summary) {
    row.steps += 1;
    row.seq += 5;
    row.usage.input += 1_900;
    row.usage.output += 120;
    row.cost_usd += 0.0123;
    row.updated_at = now();
    let (state, what) = if row.steps.is_multiple_of(2) {
        (RunState::RunningModel, "claude answers")
    } else {
        (RunState::RunningTool, "Bash cargo test")
    };
    row.status = Status::new(state, format!("step {}: {what}", row.steps), row.updated_at);
}

#[expect(clippy::print_stderr, reason = "where a person sees it")]
async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &shared).await {
                eprintln!("the played fleet lost a client: {error:#}");
            }
        });
    }
}

async fn serve(stream: UnixStream, shared: &Arc<Shared>) -> Result<()> {
    let most = usize::try_from(shared.daemon.welcome().limits.max_frame_bytes)?;
    let limits = FrameLimits::of_requests(most);
    let (mut reader, mut writer) = stream.into_split();
    let (mut decoder, mut piece) = (Decoder::new(limits), vec![0; 16 << 10]);
    let mut watched: Option<(u64, broadcast::Receiver<StoredEvent>)> = None;
    loop {
        while let Some(body) = decoder.next_frame()? {
            let frame = match decode_client(&body, limits)? {
                ClientFrame::Hello(_) => ServerFrame::Welcome(shared.daemon.welcome().clone()),
                ClientFrame::Request(Request { id, method, params }) => {
                    match method.as_str() {
                        "fleet.watch" => watched = Some((id, shared.events.subscribe())),
                        "session.detach" => watched = None,
                        _ => {}
                    }
                    let ok = answer(shared, id, &method, params).await?;
                    ServerFrame::Ok { id, ok }
                }
            };
            writer.write_all(&encode(&frame, most)?).await?;
        }
        let event = async {
            match &mut watched {
                Some((sub, events)) => (*sub, events.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = reader.read(&mut piece) => match read? {
                0 => return Ok(()),
                length => decoder.feed(piece.get(..length).unwrap_or_default()),
            },
            (sub, event) = event => match event {
                Ok(event) => {
                    let push = Push::Event(event);
                    writer.write_all(&encode(&ServerFrame::Push { sub, push }, most)?).await?;
                }
                Err(error) => bail!("the watcher is too slow: {error}"),
            },
        }
    }
}

async fn answer(shared: &Shared, id: u64, method: &str, params: Value) -> Result<Value> {
    match method {
        "session.list" => list(shared, &serde_json::from_value(params)?),
        "fleet.history" => history(shared),
        "usage.query" => usage(shared),
        "fleet.watch" => Ok(serde_json::to_value(Subscribed {
            sub: id,
            head: shared.changed.load(Ordering::Relaxed),
        })?),
        "session.detach" => Ok(json!({})),
        _ => Ok(shared
            .daemon
            .call(method, &params, Duration::from_secs(10))
            .await?),
    }
}

/// The first rows in the wanted order.
fn list(shared: &Shared, params: &ListParams) -> Result<Value> {
    shared.asked.fetch_add(1, Ordering::Relaxed);
    if params.after.is_some() {
        return Ok(json!([]));
    }
    let rows = shared.rows.lock().unwrap_or_else(PoisonError::into_inner);
    let mut order: Vec<_> = rows
        .iter()
        .map(|row| (Listed::from(row).key(params.sort), row))
        .collect();
    order.sort_by(|(one, _), (other, _)| {
        let order = one.compare(other);
        if params.ascending { order } else { order.reverse() }
    });
    let most = usize::try_from(params.limit)?.max(1);
    let first: Vec<&Summary> = order.into_iter().take(most).map(|(_, row)| row).collect();
    Ok(serde_json::to_value(first)?)
}

fn history(shared: &Shared) -> Result<Value> {
    let rows = shared.rows.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut totals, mut states) = (FleetCounts::default(), BTreeMap::new());
    for row in rows.iter() {
        totals.add(row.status.state, 1);
        *states.entry(row.status.state.to_string()).or_default() += 1;
    }
    Ok(serde_json::to_value(FleetHistory {
        at: now(),
        states,
        totals,
        minutes: vec![totals; 60],
    })?)
}

fn usage(shared: &Shared) -> Result<Value> {
    let rows = shared.rows.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = UsageRow {
        group: String::new(),
        sessions: u64::try_from(rows.len())?,
        steps: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
    };
    for row in rows.iter() {
        all.steps += row.steps;
        all.cost_usd += row.cost_usd;
    }
    Ok(serde_json::to_value([all])?)
}
