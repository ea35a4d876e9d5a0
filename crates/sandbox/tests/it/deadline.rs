//! The end of all commands at the lease of a node, with real processes: a daemon that stops itself.

use crate::walls::{command, environment, found, levels, start, stubborn, until, with_word};
use agentd_process_tests::{Case, Group};
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{CommandDeadline, CommandSpec, Findings, Warden};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The first argument of a daemon that stops.
pub(crate) const DAEMON: &str = "__deadline_daemon";
const FAR: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_millis(300);

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![
        found,
        i4_i5_the_commands_of_a_stopped_daemon_end_at_their_deadline,
        i5_a_warden_that_was_stopped_with_its_daemon_ends_its_commands,
    ];
    Group::new("deadline", Duration::from_secs(120), all)
}

pub(crate) fn in_w(dir: &Path, script: &str) -> CommandSpec {
    CommandSpec {
        argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
        cwd: dir.join("w"),
        env: Vec::new(),
    }
}

async fn end(warden: &Warden, dir: &Path, script: &str) -> String {
    match warden.run(in_w(dir, script)).await {
        Ok(mut running) => format!(
            "{:?}",
            running.exit().await.map(|exit| (exit.code, exit.exceeded))
        ),
        Err(error) => error.to_string(),
    }
}

/// `DAEMON LEVEL DIR WORD`: starts commands, lets the deadline come and stops itself, perhaps after its warden. When it continues,
/// it says what became of the commands and whether new ones run, before the deadline is moved and after.
pub(crate) fn play_daemon() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let [level, dir, word, stopped] = &words[..] else {
        return ExitCode::FAILURE;
    };
    let (level, dir) = (level_of(level), PathBuf::from(dir));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let deadline = CommandDeadline::begin(CommandDeadline::clock() + FAR).unwrap();
        let warden = start(level, &dir, environment()).await;
        // It moves on while commands run.
        assert!(
            end(&warden, &dir, &stubborn(word))
                .await
                .contains("Some(0), None")
        );
        deadline.until(CommandDeadline::clock() + FAR).unwrap();
        let writer = format!("trap '' TERM; echo $PPID > warden; while :; do echo {word} >> ticks; done");
        let mut running = warden.run(in_w(&dir, &writer)).await.unwrap();
        assert!(until(|| dir.join("w/ticks").exists()));
        println!("running");
        deadline.until(CommandDeadline::clock() + SOON).unwrap();
        if stopped == "warden" {
            let resident = std::fs::read_to_string(dir.join("w/warden")).unwrap();
            let resident = Pid::from_raw(resident.trim().parse().unwrap()).unwrap();
            kill_process(resident, Signal::STOP).unwrap();
        }
        kill_process(getpid(), Signal::STOP).unwrap();
        let exit = running.exit().await.unwrap();
        println!("{:?} {:?}", exit.signal, exit.exceeded.map(|found| found.bound));
        println!("{}", end(&warden, &dir, "true").await);
        deadline.until(CommandDeadline::clock() + FAR).unwrap();
        println!("{}", end(&warden, &dir, "exit 7").await);
    });
    ExitCode::SUCCESS
}

pub(crate) fn level_of(name: &str) -> SandboxLevel {
    match name {
        "Isolated" => SandboxLevel::Isolated,
        "Confined" => SandboxLevel::Confined,
        _ => SandboxLevel::None,
    }
}

struct Played {
    dir: TempDir,
    word: String,
    daemon: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Played {
    /// A daemon with running commands, whose deadline is near.
    fn start(level: SandboxLevel, stopped: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let word = format!("88{}.{}", std::process::id(), level as u8);
        let mut daemon = command("/proc/self/exe");
        daemon.args([DAEMON, &format!("{level:?}")]);
        daemon.arg(dir.path()).args([&word, stopped]);
        let mut daemon = daemon.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "running", "{level:?}");
        Self {
            dir,
            word,
            daemon,
            lines,
        }
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.daemon.id())).unwrap();
        stat.contains(") T ")
    }

    /// Waits for the end of the commands while the daemon is stopped.
    fn ends(&self, level: SandboxLevel) {
        assert!(until(|| self.is_stopped()), "{level:?}: it does not stop");
        assert!(
            until(|| with_word(&self.word) == 1),
            "{level:?}: only the daemon has the word"
        );
        assert!(self.is_stopped(), "{level:?}");
        let ticks = std::fs::read(self.dir.path().join("w/ticks")).unwrap();
        assert!(!ticks.is_empty(), "control: {level:?}");
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

async fn i4_i5_the_commands_of_a_stopped_daemon_end_at_their_deadline(found: Findings) {
    for level in [SandboxLevel::None].into_iter().chain(levels(&found)) {
        let mut played = Played::start(level, "daemon");
        played.ends(level);
        let pid = Pid::from_raw(played.daemon.id().cast_signed()).unwrap();
        kill_process(pid, Signal::CONT).unwrap();
        let mut next = || played.lines.next().unwrap().unwrap();
        assert_eq!(next(), "Some(9) Some(Lease)", "{level:?}");
        let refused = next();
        assert!(refused.contains("lost its lease"), "{level:?}: {refused}");
        assert_eq!(next(), "Ok((Some(7), None))", "{level:?}");
    }
}

async fn i5_a_warden_that_was_stopped_with_its_daemon_ends_its_commands(_: Findings) {
    let played = Played::start(SandboxLevel::None, "warden");
    played.ends(SandboxLevel::None);
}
