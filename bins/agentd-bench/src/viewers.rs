//! Many viewers of one busy session, some of which stop reading: measures their cost for the session and the daemon.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all, send};
use crate::http::Server;
use crate::report::{Report, Target, percentile};
use agentd_protocol::{AttachParams, SessionId};
use agentd_wire::{
    ClientFrame, Decoder, FrameLimits, Hello, Push, Request, ServerFrame, VersionRange, decode, encode,
};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// The maximum size of a viewer's read.
const CHUNK: usize = 16 << 10;

/// How many.
#[derive(Debug, Clone, Args)]
pub(crate) struct ViewersArgs {
    /// Viewers, each with its own connection
    #[arg(long, default_value_t = 200)]
    viewers: u32,
    /// Viewers that stop reading
    #[arg(long, default_value_t = 20)]
    stalled: u32,
    /// Steps per turn
    #[arg(long, default_value_t = 100)]
    steps: u32,
    /// Turns with viewers; a turn without viewers precedes each
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

pub(crate) async fn run(bench: &Bench, args: &ViewersArgs) -> Result<Report> {
    let mut watch = Watcher::start(bench).await?;
    let wanted = Wanted {
        name: "busy".to_owned(),
        workdir: bench.place("busy")?,
        prompt: None,
    };
    let created = create_all(&bench.client, [wanted]).await?;
    let session = *created.keys().next().context("one was created")?;
    let (mut calm, mut busy, mut grown) = (Vec::new(), Vec::new(), 0.0_f64);
    let seen = Arc::new(AtomicU64::new(0));
    turn(bench, &mut watch, session, "warm", args.steps).await?;
    for round in 0..args.rounds.max(1) {
        calm.extend(turn(bench, &mut watch, session, &format!("calm{round}."), args.steps).await?);
        let before = bench.usage()?.rss_mb;
        let counts = (args.viewers, args.stalled);
        let audience = Audience::gather(bench, counts, session, &seen, None).await?;
        busy.extend(turn(bench, &mut watch, session, &format!("busy{round}."), args.steps).await?);
        grown = grown.max(bench.usage()?.rss_mb - before);
        drop(audience);
    }
    let mut report = Report::default();
    calm.sort_by(f64::total_cmp);
    busy.sort_by(f64::total_cmp);
    for percent in [50, 95, 99] {
        report.number(format!("step_ms.alone.p{percent}"), percentile(&calm, percent));
        report.number(format!("step_ms.watched.p{percent}"), percentile(&busy, percent));
    }
    let ratio = percentile(&busy, 50) / percentile(&calm, 50).max(0.001);
    report.aim("step_ratio", ratio, Target::AtMost(1.1));
    let each = grown.max(0.0) * 1e6 / 1_024.0 / f64::from(args.viewers.max(1));
    report.aim("kib_per_viewer", each, Target::AtMost(64.0));
    report.put("frames_seen", seen.load(Ordering::Relaxed));
    watch.all_completed()?;
    checks::logs(&bench.client, [&session], &mut report).await?;
    Ok(report)
}

/// Runs a turn. Returns the milliseconds of its steps.
pub(crate) async fn turn(
    bench: &Bench,
    watch: &mut Watcher,
    session: SessionId,
    key: &str,
    steps: u32,
) -> Result<Vec<f64>> {
    let ended = watch.ended();
    send(&bench.client, session, &bench.args.tools.plan(key, steps)).await?;
    watch.until(ended + 1).await?;
    let Some(model) = &bench.model else {
        return Ok(Vec::new());
    };
    let gaps = model.served().await?.gaps;
    Ok(gaps.into_values().map(|micros| micros as f64 / 1_000.0).collect())
}

/// The viewers: some read, others only hold their connection.
pub(crate) struct Audience {
    reading: Vec<JoinHandle<()>>,
    standing: Vec<Box<dyn Send>>,
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.reading.iter().for_each(JoinHandle::abort);
    }
}

impl Audience {
    /// Gathers viewers, and among them those that stop reading, over HTTP if there is a server, else over the socket.
    pub(crate) async fn gather(
        bench: &Bench,
        (viewers, stalled): (u32, u32),
        session: SessionId,
        seen: &Arc<AtomicU64>,
        http: Option<&Server>,
    ) -> Result<Self> {
        let mut audience = Self {
            reading: Vec::new(),
            standing: Vec::new(),
        };
        let path = format!("/v1/sessions/{session}/events?tail=1&deltas=true");
        for n in 0..viewers {
            let seen = Arc::clone(seen);
            match (http, n < stalled) {
                (None, true) => audience.standing.push(Box::new(stall(bench, session).await?)),
                (None, false) => {
                    let viewer = Viewer::attach(bench, session).await?;
                    audience.reading.push(tokio::spawn(viewer.count(seen)));
                }
                (Some(server), true) => audience.standing.push(Box::new(server.follow(&path).await?)),
                (Some(server), false) => {
                    let viewer = server.follow(&path).await?;
                    audience.reading.push(tokio::spawn(viewer.count(seen)));
                }
            }
        }
        Ok(audience)
    }
}

fn params(session: SessionId) -> AttachParams {
    AttachParams {
        session: session.to_string(),
        tail: Some(1),
        deltas: true,
        ..AttachParams::default()
    }
}

/// A viewer that has caught up with the session.
struct Viewer {
    stream: UnixStream,
    decoder: Decoder,
}

impl Viewer {
    async fn attach(bench: &Bench, session: SessionId) -> Result<Self> {
        let limits = FrameLimits::of_answers();
        let mut stream = UnixStream::connect(bench.socket()).await?;
        let hello = ClientFrame::Hello(Hello {
            protocol: VersionRange::OURS,
            client: "agentd-bench/viewer".to_owned(),
            token: None,
        });
        stream.write_all(&encode(&hello, limits.max_frame_bytes)?).await?;
        let attach = ClientFrame::Request(Request {
            id: 1,
            method: "session.attach".to_owned(),
            params: serde_json::to_value(params(session))?,
        });
        stream
            .write_all(&encode(&attach, limits.max_frame_bytes)?)
            .await?;
        let decoder = Decoder::new(limits);
        let mut viewer = Self { stream, decoder };
        loop {
            let frame = decode::<ServerFrame>(&viewer.frame().await?, limits)?;
            match frame {
                ServerFrame::Push {
                    push: Push::Synced(_),
                    ..
                } => return Ok(viewer),
                ServerFrame::Fault { fault, .. } => bail!("a viewer could not attach: {fault}"),
                _ => {}
            }
        }
    }

    /// The next undecoded frame.
    async fn frame(&mut self) -> Result<Vec<u8>> {
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            let length = self.stream.read(&mut chunk).await?;
            ensure!(length > 0, "the daemon closed a viewer's connection");
            self.decoder.feed(chunk.get(..length).unwrap_or_default());
        }
    }

    /// Counts frames without decoding them: a real viewer would run on another machine, but this one also runs the
    /// daemon under measurement.
    async fn count(mut self, seen: Arc<AtomicU64>) {
        while self.frame().await.is_ok() {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A viewer that has caught up and then stops reading.
pub(crate) async fn stall(bench: &Bench, session: SessionId) -> Result<UnixStream> {
    Ok(Viewer::attach(bench, session).await?.stream)
}
