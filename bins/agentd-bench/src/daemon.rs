//! The daemon under load.

use crate::config::{DaemonArgs, KEY};
use crate::model_process::{MannerArgs, ModelProcess};
use crate::tree::Usage;
use agentd_client::{Client, ConnectOptions};
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Blocking, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long the daemon may take to start.
const START: Duration = Duration::from_secs(60);
/// The pause between attempts to start while another daemon holds the data directory.
const RETRY: Duration = Duration::from_millis(100);
/// Lines of the file that steps read.
const FILE_LINES: usize = 1_000;

/// A daemon with a model server, in a directory of its own.
#[derive(Debug)]
pub(crate) struct Bench {
    /// A connection to it.
    pub(crate) client: Client,
    /// Its process id.
    pub(crate) pid: u32,
    /// A working directory for sessions.
    pub(crate) workdir: String,
    /// Its settings.
    pub(crate) args: DaemonArgs,
    /// Its model server, unless `--model-url` names another.
    pub(crate) model: Option<ModelProcess>,
    agentd: PathBuf,
    daemon: Child,
    dir: TempDir,
}

impl Bench {
    pub(crate) async fn start(args: &DaemonArgs, manner: MannerArgs) -> Result<Self> {
        let agentd = match &args.agentd {
            Some(path) => path.clone(),
            None => beside().map_or_else(build, Ok)?,
        };
        let _ = writeln!(std::io::stderr(), "measuring {}", agentd.display());
        let model = match args.model_url {
            Some(_) => None,
            None => Some(ModelProcess::start(manner).await?),
        };
        let url = model.as_ref().map(|model| model.url().to_owned());
        let url = args.model_url.clone().or(url).unwrap_or_default();
        let dir = tempfile::Builder::new().prefix("agentd-bench-").tempdir()?;
        std::fs::write(dir.path().join("config.toml"), args.text(&url))?;
        let workdir = dir.path().join("work");
        fill(&workdir)?;
        let (daemon, pid, client) = launch(&agentd, dir.path()).await?;
        Ok(Self {
            client,
            pid,
            workdir: workdir.to_string_lossy().into_owned(),
            args: args.clone(),
            model,
            agentd,
            daemon,
            dir,
        })
    }

    /// Creates a directory for the session of this name, with the file that steps read.
    pub(crate) fn place(&self, name: &str) -> Result<String> {
        let place = self.dir.path().join("sessions").join(name);
        fill(&place)?;
        Ok(place.to_string_lossy().into_owned())
    }

    /// Opens another connection.
    pub(crate) async fn connect(&self) -> Result<Client> {
        Ok(Client::connect(&self.socket(), &ConnectOptions::default()).await?)
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The daemon's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("data/agentd.sock")
    }

    /// The current resource usage of the daemon and its helpers.
    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid)
    }

    /// Kills the daemon (kill -9).
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.daemon.kill().await.context("cannot kill the daemon")
    }

    /// Starts the next daemon on the same data as soon as the current one releases it. Returns the old process, because
    /// the kernel may keep it for longer.
    pub(crate) async fn take_over(&mut self) -> Result<Child> {
        let mut ticks = tokio::time::interval(RETRY);
        let (daemon, pid, client) = tokio::time::timeout(2 * START, async {
            loop {
                ticks.tick().await;
                if let Ok(next) = launch(&self.agentd, self.dir.path()).await {
                    return next;
                }
            }
        })
        .await
        .context("the old daemon did not release its data directory")?;
        (self.pid, self.client) = (pid, client);
        Ok(std::mem::replace(&mut self.daemon, daemon))
    }

    /// Starts the daemon again on the same data. Returns the time until it was ready.
    pub(crate) async fn restart(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let (daemon, pid, client) = launch(&self.agentd, self.dir.path()).await?;
        let took = begun.elapsed();
        (self.daemon, self.pid, self.client) = (daemon, pid, client);
        Ok(took)
    }
}

/// Creates a directory with the file that steps read.
fn fill(place: &Path) -> Result<()> {
    std::fs::create_dir_all(place)?;
    let lines: String = (1..=FILE_LINES)
        .map(|n| format!("line {n} of the file\n"))
        .collect();
    std::fs::write(place.join("bench.txt"), lines)?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the load tool starts the daemon that it measures"
)]
async fn launch(agentd: &Path, dir: &Path) -> Result<(Child, u32, Client)> {
    let mut daemon = Command::new(agentd)
        .arg("--config")
        .arg(dir.join("config.toml"))
        .arg("--data-dir")
        .arg(dir.join("data"))
        .env(KEY, "sk-bench")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", agentd.display()))?;
    let pid = daemon.id().context("the daemon has no process id")?;
    tokio::time::timeout(START, ready(&mut daemon))
        .await
        .context("the daemon did not become ready in time")??;
    let client = Client::connect(&dir.join("data/agentd.sock"), &ConnectOptions::default()).await?;
    Ok((daemon, pid, client))
}

async fn ready(daemon: &mut Child) -> Result<()> {
    let stderr = daemon
        .stderr
        .take()
        .context("the daemon's stderr is not a pipe")?;
    let mut lines = BufReader::new(stderr).lines();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await? {
        if line.contains("agentd ready") {
            // Drain its later output, so that the pipe does not fill up.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(());
        }
        said.push_str(&line);
        said.push('\n');
    }
    bail!("the daemon ended: {said}")
}

/// The daemon next to this program, if this is an optimized build: a packaged load tool has no sources.
fn beside() -> Option<PathBuf> {
    if cfg!(debug_assertions) {
        return None;
    }
    let agentd = std::env::current_exe().ok()?.with_file_name("agentd");
    agentd.is_file().then_some(agentd)
}

/// Builds the daemon in the profile of this program, because `cargo run -p agentd-bench` alone does not.
#[expect(clippy::disallowed_methods, reason = "asks cargo to build the daemon")]
fn build() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let directory = exe.parent().context("a program is in a directory")?;
    let target = directory.parent().context("a profile is in a directory")?;
    let profile = directory
        .file_name()
        .and_then(|name| name.to_str())
        .context("the directory has a name")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("two levels below the root")?;
    let status = Blocking::new("cargo")
        .args([
            "build",
            "--locked",
            "-p",
            "agentd",
            "-p",
            "agentd-tags",
            "--target-dir",
        ])
        .arg(target)
        // The only profile whose directory has a different name.
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        .current_dir(root)
        .status()
        .context("cannot run cargo; give --agentd PATH")?;
    if !status.success() {
        bail!("cannot build agentd");
    }
    Ok(exe.with_file_name("agentd"))
}
