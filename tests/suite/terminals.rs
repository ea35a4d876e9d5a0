//! Three real terminals: one runs, one is attached, a third answers.

use crate::{ASKING, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, binaries, eventually, skipped};
use std::process::Command;

/// A tmux server of its own with one window a terminal; it dies with the test.
struct Terminals {
    socket: String,
}

impl Terminals {
    fn start(name: &str) -> Option<Self> {
        let socket = format!("agentd-{name}-{}", std::process::id());
        let terminals = Self { socket };
        terminals
            .tmux(&["new-session", "-d", "-s", "t", "-x", "120", "-y", "50", "sh"])
            .then_some(terminals)
    }

    #[expect(clippy::disallowed_methods, reason = "drives real terminals")]
    fn tmux(&self, args: &[&str]) -> bool {
        let output = Command::new("tmux")
            .arg("-L")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args)
            .output();
        output.is_ok_and(|output| output.status.success())
    }

    fn open(&self, window: &str, command: &str) {
        assert!(
            self.tmux(&["new-window", "-d", "-t", "t", "-n", window, command]),
            "tmux opens a window"
        );
    }

    fn keys(&self, window: &str, keys: &[&str]) {
        let target = format!("t:{window}");
        let mut args = vec!["send-keys", "-t", &target];
        // A semicolon at the end of a word would end tmux's command.
        let keys: Vec<String> = keys
            .iter()
            .map(|key| key.strip_suffix(';').map_or((*key).into(), |k| format!("{k}\\;")))
            .collect();
        args.extend(keys.iter().map(String::as_str));
        assert!(self.tmux(&args), "tmux takes keys");
    }

    #[expect(clippy::disallowed_methods, reason = "looks at real terminals")]
    fn screen(&self, window: &str) -> String {
        let target = format!("t:{window}");
        let args = [
            "-L",
            &self.socket,
            "capture-pane",
            "-p",
            "-J",
            "-S",
            "-200",
            "-t",
            &target,
        ];
        Command::new("tmux")
            .args(args)
            .output()
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
            .unwrap_or_default()
    }

    async fn shows(&self, window: &str, text: &str) {
        let what = format!("terminal {window} shows {text:?}");
        eventually(&what, || {
            let screen = self.screen(window);
            screen.contains(text)
        })
        .await;
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn agentctl(daemon: &Daemon, args: &str) -> String {
    let ctl = binaries().agentctl.display();
    let socket = daemon.socket();
    // The window stays open, so that the last screen can be read.
    format!(
        "HOME={} {ctl} --socket {} {args}; echo exit=$?; exec cat",
        daemon.dir.path().display(),
        socket.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn one_runs_one_is_attached_a_third_answers_and_all_see_it() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let Some(terminals) = Terminals::start("three") else {
        skipped(
            "one_runs_one_is_attached_a_third_answers_and_all_see_it",
            "tmux is not installed",
        );
        return;
    };
    let workdir = daemon.workdir("three");
    let run = agentctl(
        &daemon,
        &format!("run -C {workdir} --name three 'plan:three steps=1 command=echo_hello;'"),
    );
    terminals.open("run", &run);
    terminals.shows("run", "echo hello").await;
    terminals.open("attach", &agentctl(&daemon, "attach three"));
    terminals.shows("attach", "echo hello").await;
    let inbox = daemon.agentctl(&["approvals"]).await;
    assert!(
        inbox.stdout.contains("echo hello"),
        "{}{}",
        inbox.stdout,
        inbox.stderr
    );
    let answer = daemon.agentctl(&["approve", "three"]).await;
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    for window in ["run", "attach"] {
        terminals.shows(window, "All done.").await;
    }
    terminals.shows("run", "exit=0").await;
    // A person types in the attached terminal; the session goes on and both the log and the terminal have it.
    terminals.keys("attach", &["plan:again text=second_time;", "Enter"]);
    terminals.shows("attach", "second time").await;
    let late = daemon.agentctl(&["approve", "three"]).await;
    assert_eq!(late.code, Some(5), "nothing is open any more: {}", late.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_run_cancels_the_turn() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let Some(terminals) = Terminals::start("cancel") else {
        skipped("ctrl_c_in_run_cancels_the_turn", "tmux is not installed");
        return;
    };
    terminals.open("run", &agentctl(&daemon, "run --name c 'plan:c hang=0;'"));
    terminals.shows("run", "Thinking about it").await;
    terminals.keys("run", &["C-c"]);
    terminals.shows("run", "exit=130").await;
    assert_eq!(server.seen().open, 0, "the connection to the provider is closed");
}
