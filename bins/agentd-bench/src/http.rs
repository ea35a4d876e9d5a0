//! HTTP compared with the socket: the time to the first text, the list of a large fleet, and viewers, idle and busy.

mod line;

pub(crate) use line::Server;

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{PATIENCE, Wanted, Watcher, cold, create_all, send};
use crate::report::{Report, Target, percentile};
use crate::viewers::{Audience, turn};
use agentd_client::{Push, Subscription};
use agentd_protocol::{AttachParams, Delta, SessionId};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use futures_util::future::try_join_all;
use memchr::memmem;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// The limits must not be what is measured.
pub(crate) const CONFIG: &str = "[http]\nlisten = \"127.0.0.1:0\"\nconnections = 100000\n\
    streams_per_token = 100000\nrequests_per_second = 1000000\n";
/// The type of the event with a whole answer.
const ANSWER: &[u8] = b"\"model.finished\"";
/// Connections that are opened at a time.
const TOGETHER: u32 = 50;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct HttpArgs {
    /// Inputs whose first text is timed, over each transport
    #[arg(long, default_value_t = 500)]
    inputs: u32,
    /// Sessions in the list
    #[arg(long, default_value_t = 100_000)]
    sessions: u32,
    /// Requests for a page of the list
    #[arg(long, default_value_t = 2_000)]
    requests: u32,
    /// Connections that send these requests
    #[arg(long, default_value_t = 4)]
    connections: u32,
    /// Idle viewers of the fleet's stream
    #[arg(long, default_value_t = 5_000)]
    idle: u32,
    /// Viewers of a busy session, over each transport
    #[arg(long, default_value_t = 200)]
    viewers: u32,
    /// Those of them that stop reading
    #[arg(long, default_value_t = 20)]
    stalled: u32,
    /// Steps per turn of the busy session
    #[arg(long, default_value_t = 100)]
    steps: u32,
    /// Turns with viewers over each transport
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

pub(crate) async fn run(bench: &Bench, args: &HttpArgs) -> Result<Report> {
    let server = Server::of(bench).await?;
    let mut report = Report::default();
    let [socket, http] = first_text(bench, &server, args.inputs, &mut report).await?;
    let busy = busy(bench, &server, args, &mut report).await?;
    checks::logs(&bench.client, [&socket, &http, &busy], &mut report).await?;
    idle(bench, &server, args.idle, &mut report).await?;
    listing(bench, &server, args, &mut report).await?;
    Ok(report)
}

/// The time from an input to its first text, in turn over the socket and over HTTP, each with a session of its own.
async fn first_text(
    bench: &Bench,
    server: &Server,
    inputs: u32,
    report: &mut Report,
) -> Result<[SessionId; 2]> {
    let (socket, http) = (silent(bench, "socket").await?, silent(bench, "http").await?);
    let attach = AttachParams {
        session: socket.to_string(),
        deltas: true,
        ..AttachParams::default()
    };
    let mut follower = bench.connect().await?.attach(&attach).await?;
    let mut stream = server
        .follow(&format!("/v1/sessions/{http}/events?deltas=true"))
        .await?;
    let mut line = server.connect().await?;
    let path = format!("/v1/sessions/{http}/inputs");
    let (mut over_socket, mut over_http) = (Vec::new(), Vec::new());
    // The first input of each only warms up.
    for n in 0..=inputs {
        let begun = Instant::now();
        send(&bench.client, socket, &plan(n)).await?;
        until(&mut follower, says).await?;
        over_socket.push(begun.elapsed().as_secs_f64() * 1_000.0);
        until(&mut follower, ends).await?;
        let begun = Instant::now();
        let body = json!({"content": plan(n)}).to_string();
        line.ask("POST", &path, &body).await?;
        stream.until(&[b"\"delta.text\"", ANSWER]).await?;
        over_http.push(begun.elapsed().as_secs_f64() * 1_000.0);
        stream.until(&[b"\"turn.finished\""]).await?;
    }
    for times in [&mut over_socket, &mut over_http] {
        times.remove(0);
    }
    report.percentiles("first_text_ms.socket", &mut over_socket, None);
    report.percentiles("first_text_ms.http", &mut over_http, None);
    let more = percentile(&over_http, 50) - percentile(&over_socket, 50);
    report.aim("first_text_ms.http_more", more, Target::AtMost(1.0));
    Ok([socket, http])
}

/// A turn without tools.
fn plan(n: u32) -> String {
    format!("plan:text{n} steps=0;")
}

async fn until(follower: &mut Subscription, wanted: impl Fn(&Push) -> bool) -> Result<()> {
    while !wanted(&follower.next().await.context("the subscription ended early")?) {}
    Ok(())
}

/// A fragment of an answer, or the whole answer: an answer that is complete when a viewer is written to supersedes its
/// fragments.
fn says(push: &Push) -> bool {
    match push {
        Push::Delta(delta) => matches!(delta, Delta::Text(_)),
        Push::Event(stored) => memmem::find(&stored.json, ANSWER).is_some(),
        _ => false,
    }
}

fn ends(push: &Push) -> bool {
    matches!(push, Push::Event(stored) if memmem::find(&stored.json, b"\"turn.finished\"").is_some())
}

/// A session that has done nothing yet.
async fn silent(bench: &Bench, name: &str) -> Result<SessionId> {
    let wanted = Wanted {
        name: name.to_owned(),
        workdir: bench.place(name)?,
        prompt: None,
    };
    wanted.create(&bench.client).await
}

/// The steps of a session with viewers over the socket, and of the same with as many over HTTP.
async fn busy(bench: &Bench, server: &Server, args: &HttpArgs, report: &mut Report) -> Result<SessionId> {
    let mut watch = Watcher::start(bench).await?;
    let session = silent(bench, "busy").await?;
    let seen = Arc::new(AtomicU64::new(0));
    let mut steps = [Vec::new(), Vec::new()];
    turn(bench, &mut watch, session, "warm", args.steps).await?;
    for round in 0..args.rounds.max(1) {
        let mut both: Vec<_> = [None, Some(server)].into_iter().zip(&mut steps).collect();
        // In each second round HTTP comes first: the conversation grows with each turn.
        both.rotate_left((round % 2) as usize);
        for (way, steps) in both {
            let counts = (args.viewers, args.stalled);
            let audience = Audience::gather(bench, counts, session, &seen, way).await?;
            let key = format!("{}{round}.", if way.is_some() { "http" } else { "socket" });
            steps.extend(turn(bench, &mut watch, session, &key, args.steps).await?);
            drop(audience);
        }
    }
    let [socket, http] = &mut steps;
    for (name, steps) in [("socket", &mut *socket), ("http", &mut *http)] {
        report.percentiles(&format!("step_ms.{name}_viewers"), steps, None);
    }
    let ratio = percentile(http, 50) / percentile(socket, 50).max(0.001);
    report.aim("step_ratio", ratio, Target::AtMost(1.05));
    watch.all_completed()?;
    Ok(session)
}

/// The memory of viewers that receive nothing.
async fn idle(bench: &Bench, server: &Server, viewers: u32, report: &mut Report) -> Result<()> {
    let mut open = Vec::new();
    // The first ones pay one-time costs, which do not count.
    open.extend(try_join_all((0..TOGETHER).map(|_| server.follow("/v1/events"))).await?);
    cold(bench).await?;
    let before = bench.usage()?.rss_mb;
    let mut left = viewers;
    while left > 0 {
        let some = left.min(TOGETHER);
        open.extend(try_join_all((0..some).map(|_| server.follow("/v1/events"))).await?);
        left -= some;
    }
    let grown = bench.usage()?.rss_mb - before;
    report.number("idle_viewers_mb", grown);
    let each = grown.max(0.0) * 1e6 / 1_024.0 / f64::from(viewers.max(1));
    report.aim("kib_per_idle_viewer", each, Target::AtMost(20.0));
    Ok(())
}

/// Pages of the list of a large fleet.
async fn listing(bench: &Bench, server: &Server, args: &HttpArgs, report: &mut Report) -> Result<()> {
    let wanted = (0..args.sessions).map(|n| Wanted {
        name: format!("listed {n}"),
        workdir: bench.workdir.clone(),
        prompt: None,
    });
    create_all(&bench.client, wanted).await?;
    cold(bench).await?;
    let each = args.requests.div_ceil(args.connections.max(1));
    let begun = Instant::now();
    let asking = (0..args.connections.max(1)).map(async |_| {
        let mut line = server.connect().await?;
        let mut times = Vec::new();
        for _ in 0..each {
            let asked = Instant::now();
            let page = line.ask("GET", "/v1/sessions?limit=100", "").await?;
            times.push(asked.elapsed().as_secs_f64() * 1_000.0);
            ensure!(
                memmem::find(&page, b"\"session\"").is_some(),
                "a page of the list is empty"
            );
        }
        anyhow::Ok(times)
    });
    let asking = tokio::time::timeout(PATIENCE, try_join_all(asking)).await;
    let mut times = asking.context("the list takes too long")??.concat();
    let per_second = times.len() as f64 / begun.elapsed().as_secs_f64();
    report.put("listed_sessions", args.sessions);
    report.number("list_per_second", per_second);
    report.percentiles("list_ms", &mut times, None);
    Ok(())
}
