//! Runs the model server in its own process, so that its usage does not count as the daemon's: this program starts itself.

use crate::drive;
use agentd_bench::model_server::{Manner, ModelServer, Rates};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;
use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The argument that makes this program a model server.
pub(crate) const SERVE: &str = "serve-model";
/// How long the model server may take to start or to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to ask for its figures while waiting for requests.
const LOOK: Duration = Duration::from_millis(20);

/// How the model server behaves.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct MannerArgs {
    /// Milliseconds before the first byte of an answer
    #[arg(long, global = true, default_value_t = 0)]
    first_ms: u64,
    /// Milliseconds between two chunks of an answer
    #[arg(long, global = true, default_value_t = 0)]
    gap_ms: u64,
    /// Chunks per answer; 0: all at once, or event by event with --gap-ms
    #[arg(long, global = true, default_value_t = 0)]
    pieces: usize,
    /// Share of requests that get a 429
    #[arg(long, global = true, default_value_t = 0.0)]
    rate_429: f64,
    /// Share of requests that get a 529
    #[arg(long, global = true, default_value_t = 0.0)]
    rate_529: f64,
    /// Share of requests that get a 500
    #[arg(long, global = true, default_value_t = 0.0)]
    rate_500: f64,
    /// Share of answers that end early
    #[arg(long, global = true, default_value_t = 0.0)]
    rate_cut: f64,
    /// Seed that selects these requests
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl MannerArgs {
    /// Adds these failure rates, unless the operator chose some.
    pub(crate) fn or_troubles(mut self, limited: f64, overloaded: f64, broken: f64, cut: f64) -> Self {
        let asked = self.rate_429 + self.rate_529 + self.rate_500 + self.rate_cut;
        if asked <= 0.0 {
            self.rate_429 = limited;
            self.rate_529 = overloaded;
            self.rate_500 = broken;
            self.rate_cut = cut;
        }
        self
    }

    /// The time between two chunks, unless the operator chose one.
    pub(crate) const fn or_gap(mut self, gap_ms: u64) -> Self {
        if self.gap_ms == 0 {
            self.gap_ms = gap_ms;
        }
        self
    }

    fn manner(self) -> Manner {
        Manner {
            first_ms: self.first_ms,
            gap_ms: self.gap_ms,
            pieces: self.pieces,
            rates: Rates {
                limited: self.rate_429,
                overloaded: self.rate_529,
                broken: self.rate_500,
                cut: self.rate_cut,
            },
            seed: self.seed,
        }
    }

    fn words(self) -> Vec<String> {
        vec![
            format!("--first-ms={}", self.first_ms),
            format!("--gap-ms={}", self.gap_ms),
            format!("--pieces={}", self.pieces),
            format!("--rate-429={}", self.rate_429),
            format!("--rate-529={}", self.rate_529),
            format!("--rate-500={}", self.rate_500),
            format!("--rate-cut={}", self.rate_cut),
            format!("--seed={}", self.seed),
        ]
    }
}

/// Serves until the parent process closes stdin.
pub(crate) async fn serve(manner: MannerArgs) -> Result<()> {
    let server = ModelServer::measuring(manner.manner()).await?;
    let mut out = tokio::io::stdout();
    let line = format!("{}\n", server.url());
    out.write_all(line.as_bytes()).await?;
    out.flush().await?;
    let mut nothing = [0; 1];
    while tokio::io::stdin().read(&mut nothing).await? > 0 {}
    Ok(())
}

/// A running model server; killed when dropped.
#[derive(Debug)]
pub(crate) struct ModelProcess {
    url: String,
    pid: u32,
    _child: Child,
}

/// The model server's figures.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Requests so far.
    pub(crate) requests: u64,
    /// Answers with an error status so far.
    pub(crate) failed: u64,
    /// Microseconds between an answer and the next request, by conversation and step, since the last call.
    pub(crate) gaps: HashMap<(String, u64), u64>,
}

impl ModelProcess {
    #[expect(clippy::disallowed_methods, reason = "the load tool starts its model server")]
    pub(crate) async fn start(manner: MannerArgs) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .args(manner.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the model server")?;
        let pid = child.id().context("the model server has no process id")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let Some(url) = line.context("the model server did not start in time")?? else {
            bail!("the model server ended");
        };
        Ok(Self {
            url,
            pid,
            _child: child,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has had this many requests.
    pub(crate) async fn requests(&self, wanted: u64) -> Result<()> {
        let mut ticks = tokio::time::interval(LOOK);
        let waiting = async {
            while self.served().await?.requests < wanted {
                ticks.tick().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(drive::PATIENCE, waiting)
            .await
            .context("the turns did not continue in time")?
    }

    /// Fetches the figures. Each gap is returned only once.
    pub(crate) async fn served(&self) -> Result<Served> {
        let answer = tokio::time::timeout(PATIENCE, figures(&self.url))
            .await
            .context("the model server did not answer in time")??;
        let (_, body) = answer.split_once("\r\n\r\n").context("not an HTTP response")?;
        let figures: Value = serde_json::from_str(body)?;
        let number = |key: &str| figures.get(key).and_then(Value::as_u64).unwrap_or_default();
        let gaps = figures.get("gaps").and_then(Value::as_array);
        let gap = |gap: &Value| {
            let key = gap.get(0)?.as_str()?.to_owned();
            Some(((key, gap.get(1)?.as_u64()?), gap.get(2)?.as_u64()?))
        };
        Ok(Served {
            requests: number("requests"),
            failed: number("failed"),
            gaps: gaps.into_iter().flatten().filter_map(gap).collect(),
        })
    }
}

/// HTTP 1.0, so that the body is not chunked and ends with the connection.
async fn figures(url: &str) -> Result<String> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /bench/figures HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
