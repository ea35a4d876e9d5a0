//! Three real terminals: one runs, one is attached, a third answers.

use crate::{ASKING, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, binaries, eventually, skipped, within};
use std::process::Command;

/// A separate tmux server with one window per terminal; it ends with the test.
pub(crate) struct Terminals {
    socket: String,
}

impl Terminals {
    pub(crate) fn start(name: &str) -> Option<Self> {
        let socket = format!("agentd-{name}-{}", std::process::id());
        let terminals = Self { socket };
        terminals
            .tmux(&["new-session", "-d", "-s", "t", "-x", "120", "-y", "50", "cat"])
            .then_some(terminals)
    }

    #[expect(clippy::disallowed_methods, reason = "drives real terminals")]
    pub(crate) fn tmux(&self, args: &[&str]) -> bool {
        let output = Command::new("tmux")
            .arg("-L")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args)
            .output();
        output.is_ok_and(|output| output.status.success())
    }

    pub(crate) fn open(&self, window: &str, command: &str) {
        // With the colon this names the session; without it, tmux could match a window whose name has this prefix.
        let opened = self.tmux(&["new-window", "-d", "-t", "t:", "-n", window, command]);
        assert!(opened, "tmux opens a window");
    }

    pub(crate) fn keys(&self, window: &str, keys: &[&str]) {
        let target = format!("t:{window}");
        let mut args = vec!["send-keys", "-t", &target];
        // tmux treats a semicolon at the end of a word as the end of a command.
        let keys: Vec<String> = keys
            .iter()
            .map(|key| key.strip_suffix(';').map_or((*key).into(), |k| format!("{k}\\;")))
            .collect();
        args.extend(keys.iter().map(String::as_str));
        assert!(self.tmux(&args), "tmux takes keys");
    }

    /// What the window shows and showed.
    pub(crate) fn screen(&self, window: &str) -> String {
        self.captured(window, &["-J", "-S", "-200"])
    }

    #[expect(clippy::disallowed_methods, reason = "looks at real terminals")]
    pub(crate) fn captured(&self, window: &str, how: &[&str]) -> String {
        let target = format!("t:{window}");
        let args = ["-L", &self.socket, "capture-pane", "-p", "-t", &target];
        Command::new("tmux")
            .args(args)
            .args(how)
            .output()
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
            .unwrap_or_default()
    }

    pub(crate) async fn shows(&self, window: &str, text: &str) {
        let _last = LastScreen(self, window);
        let what = format!("terminal {window} shows {text:?}");
        eventually(&what, || {
            let screen = self.screen(window);
            screen.contains(text)
        })
        .await;
    }
}

/// Prints a window when the test fails while it waits for it.
struct LastScreen<'a>(&'a Terminals, &'a str);

impl Drop for LastScreen<'_> {
    #[expect(clippy::print_stderr, reason = "tells why a test failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("terminal {} shows:\n{}", self.1, self.0.screen(self.1));
        }
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

pub(crate) fn agentctl(daemon: &Daemon, args: &str) -> String {
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
        &format!("run --no-tui -C {workdir} --name three 'plan:three steps=1 command=echo_hello;'"),
    );
    terminals.open("run", &run);
    terminals.shows("run", "echo hello").await;
    terminals.open("attach", &agentctl(&daemon, "attach --no-tui three"));
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
    // A person types in the attached terminal; the session continues, and both the log and the terminal show the text.
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
    terminals.open(
        "run",
        &agentctl(&daemon, "run --no-tui --name c 'plan:c hang=0;'"),
    );
    terminals.shows("run", "Thinking about it").await;
    terminals.keys("run", &["C-c"]);
    terminals.shows("run", "exit=130").await;
    within(
        "the connection to the provider is closed",
        server.until(|seen| seen.open == 0),
    )
    .await;
}

/// Sequences that a terminal would obey: the clipboard, links, the title, device control, a query that is answered on stdin,
/// C1 controls, a carriage return over an earlier line, and a sequence without an end; and a very long line.
pub(crate) const HOSTILE: &str = r"printf 'shown \033]52;c;ZXZpbA==\007 \033]8;;http://evil/\033\\ \033]0;evil\007 \033Pevil\033\\ \033[6n \302\2332J'
printf 'honest\rforged\n\033]0;no end\n'
head -c 1000000 /dev/zero | tr '\0' x
";

/// The first of these that reached a terminal.
pub(crate) fn obeyed(bytes: &[u8]) -> Option<&'static str> {
    let sequences: [(&str, &[u8]); 7] = [
        ("OSC 52", b"\x1b]52"),
        ("OSC 8", b"\x1b]8;"),
        ("title", b"\x1b]0;"),
        ("DCS", b"\x1bP"),
        ("CSI 6n", b"\x1b[6n"),
        ("C1", b"\xc2\x9b"),
        ("carriage return", b"honest\r"),
    ];
    let given = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    sequences
        .into_iter()
        .find(|(_, what)| given(what))
        .map(|(name, _)| name)
}

#[expect(clippy::disallowed_methods, reason = "the control runs the script itself")]
fn said_by(script: &str) -> Vec<u8> {
    Command::new("sh").arg(script).output().unwrap().stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_41_a_terminal_is_given_nothing_that_it_would_obey() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, crate::YOLO).await;
    let workdir = daemon.workdir("hostile");
    std::fs::write(format!("{workdir}/say.sh"), HOSTILE).unwrap();
    let run = daemon
        .agentctl(&[
            "run",
            "-C",
            &workdir,
            "--name",
            "hostile",
            "plan:hostile steps=1 command=sh_say.sh;",
        ])
        .await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for args in [&["logs", "hostile"][..], &["show", "hostile"], &["events"]] {
        let done = daemon.agentctl(args).await;
        let shown = [done.stdout.as_bytes(), done.stderr.as_bytes()].concat();
        assert_eq!(obeyed(&shown), None, "{args:?}");
    }
    assert_eq!(
        obeyed(run.stdout.as_bytes()).or(obeyed(run.stderr.as_bytes())),
        None
    );
    // Positive control: the command itself said it.
    let said = said_by(&format!("{workdir}/say.sh"));
    assert_eq!(obeyed(&said), Some("OSC 52"));
    let Some(terminals) = Terminals::start("hostile") else {
        skipped("redteam_41", "tmux is not installed");
        return;
    };
    // The bytes written to a real terminal.
    let recorded = daemon.dir.path().join("recorded");
    terminals.open(
        "attach",
        &format!("sleep 1; {}", agentctl(&daemon, "attach --no-tui hostile")),
    );
    let pipe = format!("cat >'{}'", recorded.display());
    assert!(
        terminals.tmux(&["pipe-pane", "-t", "t:attach", &pipe]),
        "tmux records"
    );
    terminals.keys("attach", &["plan:again text=over_and_out;", "Enter"]);
    terminals.shows("attach", "over and out").await;
    let bytes = std::fs::read(&recorded).unwrap();
    assert!(!bytes.is_empty(), "positive control: it was recorded");
    assert_eq!(obeyed(&bytes), None);
}
