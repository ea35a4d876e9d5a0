//! One daemon and one model server for many tests in terminals: each test uses sessions with names of its own.

use crate::terminals::{Terminals, agentctl};
use crate::{ASKING, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, eventually};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The daemon, as long as any test uses it. A runtime of its own serves it, since that of a test ends with the test.
pub(crate) struct Shared {
    pub(crate) daemon: Daemon,
    _server: ModelServer,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

fn shared() -> Arc<Shared> {
    let mut kept = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = kept.upgrade() {
        return shared;
    }
    let started = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (server, daemon) = runtime.block_on(async {
            let server = ModelServer::start(false).await.unwrap();
            let daemon = daemon(&server, ASKING).await;
            (server, daemon)
        });
        Arc::new(Shared {
            daemon,
            _server: server,
            runtime: Some(runtime),
        })
    });
    let shared = started.join().unwrap();
    *kept = Arc::downgrade(&shared);
    shared
}

/// A test's terminals, and the shared daemon.
pub(crate) struct Stage {
    pub(crate) shared: Arc<Shared>,
    pub(crate) terminals: Terminals,
}

impl Stage {
    /// `None`: tmux is not installed.
    pub(crate) fn set(name: &str) -> Option<Self> {
        let terminals = Terminals::start(name)?;
        let shared = shared();
        Some(Self { shared, terminals })
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        &self.shared.daemon
    }

    /// Creates a session in which everything may run, and waits for the end of its turn.
    pub(crate) async fn ran(&self, name: &str, plan: &str) {
        self.run(name, &["--mode", "yolo"], plan, false).await;
    }

    /// Creates a session in the background. Commands need an approval.
    pub(crate) async fn begun(&self, name: &str, more: &[&str], plan: &str) {
        self.run(name, more, plan, true).await;
    }

    async fn run(&self, name: &str, more: &[&str], plan: &str, behind: bool) {
        let workdir = self.daemon().workdir(name);
        let plan = format!("plan:{name} {plan};");
        let mut args = vec!["run", "-q", "-C", &workdir, "--name", name];
        args.extend(behind.then_some("-d"));
        args.extend(more);
        args.push(&plan);
        let run = self.daemon().agentctl(&args).await;
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }

    /// Runs `agentctl` with these words in a window. `before` sets variables: `NO_COLOR=1 TERM=xterm`.
    pub(crate) fn open(&self, window: &str, before: &str, words: &str) {
        let command = agentctl(self.daemon(), words);
        let variables = if before.is_empty() {
            String::new()
        } else {
            format!("export {before}; ")
        };
        self.terminals.open(window, &format!("{variables}{command}"));
    }

    /// Attaches to a session at rest in a window, and waits for the end of its transcript.
    pub(crate) async fn attach(&self, session: &str) {
        self.open(session, "", &format!("attach {session}"));
        self.shows(session, "? shows the keys").await;
        self.shows(session, "turn     completed").await;
    }

    /// Gives a window another size, and waits until it is drawn in it.
    pub(crate) async fn sized(&self, window: &str, width: &str, height: &str) {
        let target = format!("t:{window}");
        let resize = ["resize-window", "-t", &target, "-x", width, "-y", height];
        assert!(self.terminals.tmux(&resize), "tmux resizes");
        let width: usize = width.parse().unwrap();
        let bar = "─".repeat(width);
        eventually("it is drawn in this size", || {
            let screen = self.terminals.screen(window);
            screen
                .lines()
                .any(|line| line.ends_with(&bar) && line.chars().count() == width)
        })
        .await;
    }

    pub(crate) fn keys(&self, window: &str, keys: &[&str]) {
        self.terminals.keys(window, keys);
    }

    pub(crate) async fn shows(&self, window: &str, text: &str) {
        self.terminals.shows(window, text).await;
    }

    /// Waits until a text is gone.
    pub(crate) async fn hides(&self, window: &str, text: &str) {
        eventually(&format!("terminal {window} no longer shows {text:?}"), || {
            !self.terminals.screen(window).contains(text)
        })
        .await;
    }

    /// The window with its escape sequences.
    pub(crate) fn styled(&self, window: &str) -> String {
        self.terminals.captured(window, &["-e"])
    }
}
