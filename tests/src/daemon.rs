//! A real daemon in a directory of its own.

use crate::binaries::binaries;
use crate::follow::within;
use crate::sse::Access;
use crate::way::Way;
use agentd_client::{Client, ConnectOptions};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// How a daemon is started.
#[derive(Debug, Clone, Default)]
pub struct DaemonOptions {
    /// The model server's URL; without one the scripted model is the default, unless the configuration names another one.
    pub model_url: Option<String>,
    /// More configuration, as TOML.
    pub config: String,
    /// Fault points: `store.after_commit=kill@3`.
    pub faults: Option<String>,
    /// A program, with arguments, that becomes the daemon in the end; empty: the daemon itself.
    pub wrapper: Vec<String>,
    /// More environment.
    pub env: Vec<(String, String)>,
    /// More arguments.
    pub args: Vec<String>,
}

/// A running daemon; killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    /// Its directory: `data` below it is the data directory, `work` a working directory for sessions.
    pub dir: Arc<TempDir>,
    child: Child,
    said: watch::Receiver<String>,
    options: DaemonOptions,
}

/// The output of a finished command.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The key that the test provider wants; a canary that must appear nowhere.
pub const CANARY: &str = "sk-test-canary-5f2d9c41b7e8";

impl Daemon {
    /// Starts a daemon in a fresh directory and waits until it is ready.
    pub async fn start(options: DaemonOptions) -> Self {
        let dir = Arc::new(
            tempfile::Builder::new()
                .prefix("agentd-t")
                .tempdir()
                .expect("a temporary directory"),
        );
        Self::start_in(dir, options).await
    }

    /// Starts a daemon in an existing directory and waits until it is ready.
    pub async fn start_in(dir: Arc<TempDir>, options: DaemonOptions) -> Self {
        let mut daemon = Self::launch(dir, options);
        within(
            "the daemon is ready",
            daemon.said.wait_for(|said| said.contains("agentd ready")),
        )
        .await
        .map(drop)
        .unwrap_or_else(|_| panic!("the daemon ended early"));
        daemon
    }

    /// Starts a daemon without waiting: for those that must fail.
    #[expect(clippy::disallowed_methods, reason = "the harness starts the daemon")]
    pub fn launch(dir: Arc<TempDir>, options: DaemonOptions) -> Self {
        std::fs::create_dir_all(dir.path().join("work")).expect("a working directory");
        let config = dir.path().join("config.toml");
        std::fs::write(&config, config_text(&options)).expect("the configuration can be written");
        let agentd = binaries().agentd.clone().into_os_string();
        let wrapped = options.wrapper.iter().map(Into::into);
        let mut words: Vec<std::ffi::OsString> = wrapped.chain([agentd]).collect();
        let mut command = Command::new(words.remove(0));
        command
            .args(words)
            .arg("--config")
            .arg(&config)
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(&options.args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", dir.path())
            .env("AGENTD_TEST_KEY", CANARY)
            .envs(options.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(faults) = &options.faults {
            command.env("AGENTD_FAULTS", faults);
        }
        let mut child = command.spawn().expect("the daemon starts");
        let said = listen(&mut child);
        Self {
            dir,
            child,
            said,
            options,
        }
    }

    /// The control socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("data/agentd.sock")
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A working directory for sessions, made at need.
    pub fn workdir(&self, name: &str) -> String {
        let dir = self.dir.path().join("work").join(name);
        std::fs::create_dir_all(&dir).expect("a working directory");
        dir.to_string_lossy().into_owned()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the daemon runs")
    }

    /// Its output so far, on both streams.
    pub fn said(&self) -> String {
        self.said.borrow().clone()
    }

    /// A connected client.
    pub async fn client(&self) -> Client {
        let options = ConnectOptions {
            deadline: PATIENCE,
            ..ConnectOptions::default()
        };
        let socket = self.socket();
        within("a client connects", Client::connect(&socket, &options))
            .await
            .expect("the daemon answers")
    }

    /// Waits until it is ready, or has ended before that.
    pub async fn ready_or_over(&mut self) -> bool {
        let ready = self.said.wait_for(|said| said.contains("agentd ready"));
        let ready = within("the daemon is ready or over", ready).await.is_ok();
        ready && !self.is_over()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_some()
    }

    /// A signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .expect("a process id");
        rustix::process::kill_process(pid, signal).expect("it can be signalled");
    }

    /// `kill -9`, and waits for the end.
    pub async fn kill(&mut self) -> ExitStatus {
        self.child.start_kill().expect("it can be killed");
        self.ended().await
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Waits for its end, and until its last words were read.
    pub async fn ended(&mut self) -> ExitStatus {
        let status = within("the daemon ends", self.child.wait())
            .await
            .expect("it can be waited for");
        // Both copies drop their end when they have read all. A process that outlives the daemon may hold its outputs.
        let _ = tokio::time::timeout(LAST_WORDS, self.said.wait_for(|_| false)).await;
        status
    }

    /// The same in the same directory without faults; it may not have become ready yet.
    pub fn again(&self) -> Self {
        let options = DaemonOptions {
            faults: None,
            ..self.options.clone()
        };
        Self::launch(Arc::clone(&self.dir), options)
    }

    /// Starts again in the same directory, with other arguments; it may not have become ready yet.
    pub fn again_with(&self, args: &[&str]) -> Self {
        let options = DaemonOptions {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..self.options.clone()
        };
        Self::launch(Arc::clone(&self.dir), options)
    }

    /// Starts again in the same directory, with other faults.
    pub async fn restart(&self, faults: Option<&str>) -> Self {
        let options = DaemonOptions {
            faults: faults.map(str::to_owned),
            ..self.options.clone()
        };
        Self::start_in(Arc::clone(&self.dir), options).await
    }

    /// The URL at which it serves HTTP.
    pub async fn http(&self) -> String {
        let status = self.client().await.status().await;
        status.expect("a running daemon has a status").http
    }

    /// The way over its socket.
    pub fn over_socket(&self) -> Way {
        Way::Socket(self.socket())
    }

    /// The way over HTTP, with a new token.
    pub async fn over_http(&self) -> Way {
        let access = Access::of(&self.client().await).await;
        Way::Http(access.expect("a running daemon makes tokens"))
    }

    /// Runs `agentctl` against this daemon to its end.
    pub async fn agentctl(&self, args: &[&str]) -> Finished {
        let output = within("agentctl ends", self.agentctl_command(args).output())
            .await
            .expect("agentctl starts");
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// `agentctl` against this daemon, to be started by the caller.
    #[expect(clippy::disallowed_methods, reason = "the harness starts the command")]
    pub fn agentctl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&binaries().agentctl);
        command
            .args(args)
            .current_dir(self.dir.path().join("work"))
            .env("HOME", self.dir.path())
            .env("AGENTD_SOCKET", self.socket())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

fn config_text(options: &DaemonOptions) -> String {
    let mut config = options.config.clone();
    // Most tests compare whole logs, in which the moment of a checkpoint is open; and they may run in a git repository.
    if !config.contains("[workspace]") {
        config.push_str("\n[workspace]\ncheckpoint = \"off\"\nkind = \"shared\"\n");
    }
    let Some(url) = &options.model_url else {
        if !config.contains("[model]") {
            config.push_str("\n[model]\ndefault = \"scripted\"\n");
        }
        return config;
    };
    format!(
        r#"{config}
[providers.test-anthropic]
dialect = "anthropic"
base_url = "{url}"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
max_concurrent = 256
[providers.test-openai]
dialect = "openai-chat"
base_url = "{url}/v1"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
max_concurrent = 256
[models.claude]
provider = "test-anthropic"
model = "claude-test"
[models.gpt-test]
provider = "test-openai"
model = "gpt-test"
"#,
    )
}

fn listen(child: &mut Child) -> watch::Receiver<String> {
    let (tx, rx) = watch::channel(String::new());
    let tx = Arc::new(Mutex::new(tx));
    let stdout = child
        .stdout
        .take()
        .map(|out| tokio::spawn(copy(out, Arc::clone(&tx))));
    let stderr = child.stderr.take().map(|err| tokio::spawn(copy(err, tx)));
    drop((stdout, stderr));
    rx
}

async fn copy(from: impl tokio::io::AsyncRead + Unpin, to: Arc<Mutex<watch::Sender<String>>>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(to) = to.lock() {
            to.send_modify(|said| {
                said.push_str(&line);
                said.push('\n');
            });
        }
    }
}

/// How long to wait for the end of the outputs of a daemon that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long an event may take before its test fails: two hundred sessions at a fifth of a core take minutes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
