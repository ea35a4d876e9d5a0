//! Several of daemon, fork server and warden die at once, and the next daemon ends what they leave, also processes without an
//! environment.

use crate::deadline::{in_w, level_of};
use crate::walls::{command, environment, found, levels, start, stubborn, until, with_word};
use agentd_process_tests::{Case, Group, skipped};
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{Findings, end_orphans};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

/// The first argument of a daemon that is killed.
pub(crate) const DAEMON: &str = "__orphans_daemon";

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![
        found,
        i5_processes_without_an_environment_are_ended_after_any_double_death,
        i5_what_another_data_directory_runs_is_spared,
    ];
    Group::new("orphans", Duration::from_secs(300), all)
}

/// `DAEMON LEVEL DIR WORD`: starts the stubborn script and waits to be killed. Says the pids of its warden and of what it was
/// forked from.
pub(crate) fn play_daemon() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let [level, dir, word] = &words[..] else {
        return ExitCode::FAILURE;
    };
    let dir = PathBuf::from(dir);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        end_orphans(&dir).await.unwrap();
        let warden = start(level_of(level), &dir, environment()).await;
        let script = stubborn(word);
        let mut running = warden.run(in_w(&dir, &script)).await.unwrap();
        running.exit().await.unwrap();
        assert!(until(|| with_word(word) >= 5));
        println!("running");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

/// A daemon with stubborn commands.
struct Played {
    dir: tempfile::TempDir,
    word: String,
    daemon: std::process::Child,
}

impl Played {
    fn start(level: SandboxLevel, number: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let word = format!("89{}.{}{number}", std::process::id(), level as u8);
        let mut daemon = command("/proc/self/exe");
        daemon
            .arg(DAEMON)
            .arg(format!("{level:?}"))
            .arg(dir.path())
            .arg(&word);
        let mut daemon = daemon.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(daemon.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "running\n", "{level:?}");
        Self { dir, word, daemon }
    }

    /// The daemon, the fork server and the wardens.
    fn keepers(&self) -> [Vec<i32>; 3] {
        let daemon = self.daemon.id().cast_signed();
        let fork_servers = children_of(daemon);
        let below = fork_servers.iter().flat_map(|pid| children_of(*pid)).collect();
        [vec![daemon], fork_servers, below]
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn children_of(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn send(pids: &[i32], signal: Signal) {
    for pid in pids {
        let _ = kill_process(Pid::from_raw(*pid).unwrap(), signal);
    }
}

/// Which of daemon, fork server and wardens die.
const DEATHS: [(&str, [bool; 3]); 4] = [
    ("daemon", [true, false, false]),
    ("daemon and fork server", [true, true, false]),
    ("daemon and wardens", [true, false, true]),
    ("all", [true, true, true]),
];

async fn i5_processes_without_an_environment_are_ended_after_any_double_death(found: Findings) {
    if !found.kernel.processes {
        return skipped("there is no place for cgroups", "orphans without an environment");
    }
    let mut number = 0;
    for level in [SandboxLevel::None].into_iter().chain(levels(&found)) {
        for (name, deaths) in DEATHS {
            // Stopped together, and then killed: none reacts to the death of another. Otherwise the daemon dies last.
            for stopped in [true, false] {
                number += 1;
                let mut played = Played::start(level, number);
                let dying: Vec<i32> = played
                    .keepers()
                    .into_iter()
                    .zip(deaths)
                    .rev()
                    .filter(|(_, dies)| *dies)
                    .flat_map(|(pids, _)| pids)
                    .collect();
                if stopped {
                    send(&dying, Signal::STOP);
                }
                send(&dying, Signal::KILL);
                played.daemon.wait().unwrap();
                let left = with_word(&played.word);
                let isolated = level == SandboxLevel::Isolated;
                assert!(
                    left > 0 || isolated || name != "all",
                    "control: {level:?}: {name}"
                );
                end_orphans(played.dir.path()).await.unwrap();
                assert_eq!(
                    with_word(&played.word),
                    0,
                    "{level:?}: {name}, stopped: {stopped}"
                );
            }
        }
    }
}

async fn i5_what_another_data_directory_runs_is_spared(found: Findings) {
    if !found.kernel.processes {
        return skipped(
            "there is no place for cgroups",
            "orphans of another data directory",
        );
    }
    let played = Played::start(SandboxLevel::None, 0);
    // The daemon and four commands. One that is just executing another program has no words.
    let all_run = || until(|| with_word(&played.word) == 5);
    assert!(all_run(), "control");
    let other = tempfile::tempdir().unwrap();
    end_orphans(other.path()).await.unwrap();
    assert!(all_run());
}
