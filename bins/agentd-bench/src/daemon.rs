//! The daemon under load.

use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, ConnectOptions};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command as Blocking, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long the daemon may take to start.
const START: Duration = Duration::from_secs(60);

/// A daemon with a model server, in a directory of its own.
#[derive(Debug)]
pub(crate) struct Bench {
    /// A connection to it.
    pub(crate) client: Client,
    /// Its process id.
    pub(crate) pid: u32,
    /// A working directory for sessions.
    pub(crate) workdir: String,
    /// Its data directory.
    pub(crate) data: PathBuf,
    _daemon: Child,
    _server: Option<ModelServer>,
    _dir: TempDir,
}

impl Bench {
    pub(crate) async fn start(agentd: Option<PathBuf>, model_url: Option<String>) -> Result<Self> {
        Self::start_with(agentd, model_url, "").await
    }

    /// With more settings.
    #[expect(
        clippy::disallowed_methods,
        reason = "the load tool starts the daemon that it measures"
    )]
    pub(crate) async fn start_with(
        agentd: Option<PathBuf>,
        model_url: Option<String>,
        more: &str,
    ) -> Result<Self> {
        let agentd = match agentd {
            Some(path) => path,
            None => build()?,
        };
        let server = match model_url {
            Some(_) => None,
            None => Some(ModelServer::start(false).await.context("no model server")?),
        };
        let url = model_url
            .or_else(|| server.as_ref().map(ModelServer::url))
            .unwrap_or_default();
        let dir = tempfile::Builder::new().prefix("agentd-bench-").tempdir()?;
        let config = dir.path().join("config.toml");
        std::fs::write(&config, config_text(&url) + more)?;
        let workdir = dir.path().join("work");
        std::fs::create_dir(&workdir)?;
        let mut daemon = Command::new(&agentd)
            .arg("--config")
            .arg(&config)
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .env("AGENTD_BENCH_KEY", "sk-bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", agentd.display()))?;
        let pid = daemon.id().context("the daemon has no process id")?;
        tokio::time::timeout(START, ready(&mut daemon))
            .await
            .context("the daemon is not ready in time")??;
        let socket = dir.path().join("data/agentd.sock");
        let client = Client::connect(&socket, &ConnectOptions::default()).await?;
        let workdir = workdir.to_string_lossy().into_owned();
        Ok(Self {
            client,
            pid,
            workdir,
            data: dir.path().join("data"),
            _daemon: daemon,
            _server: server,
            _dir: dir,
        })
    }
}

async fn ready(daemon: &mut Child) -> Result<()> {
    let stderr = daemon.stderr.take().context("the daemon's stderr is a pipe")?;
    let mut lines = BufReader::new(stderr).lines();
    let mut said = String::new();
    while let Some(line) = lines.next_line().await? {
        if line.contains("agentd ready") {
            // Its later words must not fill the pipe.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(());
        }
        said.push_str(&line);
        said.push('\n');
    }
    bail!("the daemon ended: {said}")
}

/// Builds the daemon in the profile of this program: `cargo run -p agentd-bench` alone does not.
#[expect(clippy::disallowed_methods, reason = "asks cargo to build the daemon")]
fn build() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let agentd = exe.with_file_name("agentd");
    let release = exe.parent().is_some_and(|dir| dir.ends_with("release"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("two levels below the root")?;
    let mut cargo = Blocking::new("cargo");
    cargo
        .args(["build", "--locked", "-p", "agentd"])
        .current_dir(root);
    if release {
        cargo.arg("--release");
    }
    let status = cargo.status().context("cannot run cargo; give --agentd PATH")?;
    if !status.success() {
        bail!("agentd does not build");
    }
    Ok(agentd)
}

fn config_text(url: &str) -> String {
    format!(
        r#"[model]
default = "bench"
[permission]
mode = "yolo"
[node]
idle_passivate = "1s"
[providers.bench]
dialect = "anthropic"
base_url = "{url}"
credentials = [{{ name = "main", env = "AGENTD_BENCH_KEY" }}]
max_concurrent = 64
[models.bench]
provider = "bench"
model = "bench"
context_window = 10000000
[sandbox]
max_memory_bytes = 1073741824
[loop]
turn_cap = 1000
[tools]
max_lines = 100000
max_bytes = 1000000
"#
    )
}
