//! The resident warden with real processes.

use agentd_process_tests::{Case, Group, cases, is_gone};
use agentd_sandbox::{
    CaptureLimits, CollectSpec, Collected, CommandSpec, Environment, Exit, GitRefusals, Heard, SandboxError,
    Warden, WardenSlot, WardenSpec,
};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The first argument of a daemon that will be killed.
pub(crate) const DAEMON: &str = "__resident_daemon";

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_command_gives_its_output_and_its_exit_code,
        a_command_that_is_not_there_is_a_typed_error,
        i8_commands_cannot_read_the_environment_of_a_concealed_daemon,
        i8_commands_see_the_listed_environment_and_three_descriptors_only,
        a_grandchild_that_holds_the_pipe_does_not_hold_the_result,
        i5_all_that_is_left_behind_dies_with_the_warden,
        i5_nothing_outlives_a_daemon_that_was_killed,
        i5_what_a_killed_warden_leaves_behind_is_killed,
        i5_wardens_die_with_the_process_that_they_were_forked_from_and_the_next_have_another,
        i5_a_warden_that_was_stopped_cleans_up_when_its_daemon_is_killed,
        i5_the_process_that_wardens_are_forked_from_does_not_wait_for_the_rest_of_a_word,
        a_dropped_command_is_killed_with_its_whole_family,
        time_that_is_over_ends_the_command,
        output_is_bounded_in_memory_and_whole_in_the_spill_file,
        output_is_reported_while_it_comes,
        a_slot_starts_its_warden_again_and_not_after_its_end,
        i6_signals_that_mean_nothing_end_neither_a_warden_nor_its_parent,
        an_idle_warden_is_let_go_and_a_busy_one_is_not,
        many_commands_run_side_by_side,
        a_command_that_is_talked_with_has_three_pipes,
    ];
    Group::new("resident", Duration::from_secs(300), all)
}

fn spec(workdir: &Path) -> WardenSpec {
    let path = "/usr/local/bin:/usr/bin:/bin".into();
    WardenSpec {
        exe: PathBuf::from("/proc/self/exe"),
        workdir: workdir.to_owned(),
        environment: Environment::allowed(
            [("PATH".into(), path), ("SECRET_KEY".into(), "canary".into())],
            &[],
        ),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    }
}

fn bash(script: &str) -> CommandSpec {
    let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
    CommandSpec {
        argv,
        cwd: PathBuf::from("/tmp"),
        env: Vec::new(),
    }
}

fn collecting(dir: &Path) -> CollectSpec {
    CollectSpec {
        time: Duration::from_secs(30),
        limits: CaptureLimits::default(),
        spill_dir: dir.to_owned(),
        spill_bytes: 64 << 20,
    }
}

async fn warden() -> Warden {
    Warden::spawn(&spec(Path::new("/tmp"))).await.unwrap()
}

async fn output_of(warden: &Warden, script: &str) -> Collected {
    let dir = tempfile::tempdir().unwrap();
    warden
        .run(bash(script))
        .await
        .unwrap()
        .collect(&collecting(dir.path()), |_| {})
        .await
        .unwrap()
}

fn text(collected: &Collected) -> String {
    String::from_utf8(collected.output.head().to_vec()).unwrap()
}

fn pids(text: &str) -> Vec<i32> {
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

async fn a_command_gives_its_output_and_its_exit_code() {
    let warden = warden().await;
    let done = output_of(&warden, "echo out; echo err >&2; pwd; exit 3").await;
    assert_eq!(
        (text(&done).as_str(), done.exit),
        (
            "out\nerr\n/tmp\n",
            Exit {
                code: Some(3),
                signal: None,
                exceeded: None,
                refused: GitRefusals::default(),
            }
        )
    );
    let done = output_of(&warden, "kill -9 $$").await;
    assert_eq!(
        done.exit,
        Exit {
            code: None,
            signal: Some(9),
            exceeded: None,
            refused: GitRefusals::default(),
        }
    );
}

async fn a_command_that_is_not_there_is_a_typed_error() {
    let warden = warden().await;
    let missing = CommandSpec {
        argv: vec!["no-such-program".to_owned()],
        ..bash("")
    };
    let error = warden.run(missing).await.unwrap_err();
    assert!(
        matches!(&error, SandboxError::CommandStart { program, errno: Some(2), .. } if program == "no-such-program"),
        "{error}"
    );
    let nowhere = CommandSpec {
        cwd: PathBuf::from("/no/such/dir"),
        ..bash("true")
    };
    assert!(matches!(
        warden.run(nowhere).await,
        Err(SandboxError::CommandStart { .. })
    ));
    let long = CommandSpec {
        argv: vec!["true".to_owned(), "x".repeat(200_000)],
        ..bash("")
    };
    assert!(matches!(
        warden.run(long).await,
        Err(SandboxError::CommandStart { errno: Some(7), .. })
    ));
    assert_eq!(text(&output_of(&warden, "echo lives").await), "lives\n");
}

async fn i8_commands_see_the_listed_environment_and_three_descriptors_only() {
    // An inherited descriptor that a careless parent left without close-on-exec.
    let file = std::fs::File::open("/etc/passwd").unwrap();
    let leaked = rustix::io::dup(&file).unwrap();
    let warden = warden().await;
    let done = output_of(
        &warden,
        "for n in {0..63}; do [ -e /proc/$$/fd/$n ] && echo $n; done; grep SigBlk /proc/self/status",
    )
    .await;
    assert_eq!(text(&done), "0\n1\n2\nSigBlk:\t0000000000000000\n");
    drop(leaked);
    let done = output_of(&warden, "env; tr '\\0' '\\n' < /proc/$PPID/environ").await;
    let names: std::collections::BTreeSet<_> = text(&done)
        .lines()
        .map(|line| line.split('=').next().unwrap().to_owned())
        .collect();
    let expected = ["AGENTD_UNDER", "OLDPWD", "PATH", "PWD", "SHLVL", "_"];
    assert!(
        names.iter().all(|name| expected.contains(&name.as_str())),
        "{names:?}"
    );
    assert!(!text(&done).contains("canary"));
}

async fn i8_commands_cannot_read_the_environment_of_a_concealed_daemon() {
    agentd_sandbox::conceal().unwrap();
    let warden = warden().await;
    let done = output_of(
        &warden,
        &format!("cat /proc/{}/environ >/dev/null && id -u", std::process::id()),
    )
    .await;
    // Root may read everything.
    assert!(
        done.exit.code == Some(1) || text(&done) == "0\n",
        "{}",
        text(&done)
    );
}

async fn a_grandchild_that_holds_the_pipe_does_not_hold_the_result() {
    let warden = warden().await;
    let before = Instant::now();
    let done = output_of(&warden, "sleep 300 & echo $!").await;
    assert!(
        before.elapsed() < Duration::from_secs(60),
        "it waited for the sleeper"
    );
    let [sleeper] = pids(&text(&done))[..] else {
        panic!("{done:?}")
    };
    assert!(
        pidfd_open(Pid::from_raw(sleeper).unwrap(), PidfdFlags::empty()).is_ok(),
        "it goes on"
    );
    assert!(warden.close(Duration::from_secs(60)).await);
    assert!(is_gone(sleeper), "the process still lives");
}

/// Leaves two processes behind, and exits when both have printed their pids.
const STUBBORN: &str = "trap '' TERM; exec 9<> <(:)
    setsid bash -c 'trap \"\" TERM; echo $$; echo >&9; exec 9>&-; while :; do read -t 300 < <(:) || sleep 300; done' &
    (setsid sleep 300 9>&- & echo $!; echo >&9) &
    read -r -u 9; read -r -u 9; exec 9>&-; ";

async fn i5_all_that_is_left_behind_dies_with_the_warden() {
    let warden = warden().await;
    let done = output_of(&warden, STUBBORN).await;
    let left = pids(&text(&done));
    assert_eq!(left.len(), 2, "{done:?}");
    assert!(warden.close(Duration::from_secs(60)).await);
    left.into_iter()
        .for_each(|pid| assert!(is_gone(pid), "process {pid} still lives"));
}

/// A daemon that will be killed: prints the pids under its warden and waits.
pub(crate) fn play_daemon() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let warden = warden().await;
        println!("{}", text(&output_of(&warden, STUBBORN).await).replace('\n', " "));
        let running = warden
            .run(bash("trap '' TERM; sleep 300; sleep 300"))
            .await
            .unwrap();
        println!("{}", running.pid());
        println!("{}", text(&output_of(&warden, "echo $PPID").await).trim());
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test starts a daemon in order to kill it"
)]
fn played_daemon() -> std::process::Child {
    Command::new("/proc/self/exe")
        .arg(DAEMON)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn i5_nothing_outlives_a_daemon_that_was_killed() {
    let mut daemon = played_daemon();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let mut left = pids(&lines.next().unwrap().unwrap());
    left.extend(pids(&lines.next().unwrap().unwrap()));
    assert_eq!(left.len(), 3);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    left.into_iter()
        .for_each(|pid| assert!(is_gone(pid), "process {pid} still lives"));
}

async fn i5_what_a_killed_warden_leaves_behind_is_killed() {
    let warden = warden().await;
    let done = output_of(&warden, "echo $PPID; setsid sleep 300 & echo $!").await;
    let [resident, left] = pids(&text(&done))[..] else {
        panic!("{done:?}")
    };
    let mut running = warden.run(bash("sleep 300")).await.unwrap();
    kill_process(Pid::from_raw(resident).unwrap(), Signal::KILL).unwrap();
    assert!(matches!(running.exit().await, Err(SandboxError::WardenGone)));
    assert!(!warden.is_alive());
    assert!(matches!(
        warden.run(bash("true")).await,
        Err(SandboxError::WardenGone)
    ));
    assert!(warden.close(Duration::from_secs(60)).await);
    assert!(is_gone(left), "the process still lives");
    assert!(
        is_gone(i32::try_from(running.pid()).unwrap()),
        "the process still lives"
    );
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

const PARENTS: &str = "echo $PPID; read -r _ _ _ above _ < /proc/$PPID/stat; echo $above";

async fn i6_signals_that_mean_nothing_end_neither_a_warden_nor_its_parent() {
    let warden = warden().await;
    let both = pids(&text(&output_of(&warden, PARENTS).await));
    assert_eq!(both.len(), 2);
    for signal in [
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::POWER,
        Signal::STKFLT,
    ] {
        both.iter().for_each(|pid| kill(*pid, signal));
        assert_eq!(
            pids(&text(&output_of(&warden, PARENTS).await)),
            both,
            "{signal:?}"
        );
    }
    // They still end a command.
    let done = output_of(&warden, "kill -USR1 $$").await;
    assert_eq!(done.exit.signal, Some(Signal::USR1.as_raw()));
}

async fn i5_wardens_die_with_the_process_that_they_were_forked_from_and_the_next_have_another() {
    let (first, second) = (warden().await, warden().await);
    let command = format!("{PARENTS}; setsid sleep 300 & echo $!");
    let [one, fork_server, left] = pids(&text(&output_of(&first, &command).await))[..] else {
        panic!("three numbers expected")
    };
    let [other, same, also_left] = pids(&text(&output_of(&second, &command).await))[..] else {
        panic!("three numbers expected")
    };
    assert!(
        one != other && fork_server == same,
        "{one} {other} {fork_server} {same}"
    );
    let mut running = first.run(bash("sleep 300")).await.unwrap();
    kill(fork_server, Signal::KILL);
    assert!(matches!(running.exit().await, Err(SandboxError::WardenGone)));
    for (warden, pid, left) in [(&first, one, left), (&second, other, also_left)] {
        assert!(warden.close(Duration::from_secs(60)).await);
        assert!(is_gone(pid), "the process still lives");
        assert!(is_gone(left), "the process still lives");
    }
    let third = warden().await;
    let [_, another] = pids(&text(&output_of(&third, PARENTS).await))[..] else {
        panic!("two numbers expected")
    };
    assert_ne!(another, fork_server);
}

async fn i5_a_warden_that_was_stopped_cleans_up_when_its_daemon_is_killed() {
    let mut daemon = played_daemon();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let mut left = pids(&lines.next().unwrap().unwrap());
    left.extend(pids(&lines.next().unwrap().unwrap()));
    let resident = pids(&lines.next().unwrap().unwrap());
    kill(resident[0], Signal::STOP);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    left.into_iter()
        .chain(resident)
        .for_each(|pid| assert!(is_gone(pid), "process {pid} still lives"));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test speaks with the process in the daemon's place"
)]
async fn i5_the_process_that_wardens_are_forked_from_does_not_wait_for_the_rest_of_a_word() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut fork_server = Command::new("/proc/self/exe")
        .args([agentd_sandbox::WARDEN_ARG, "fork-server"])
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    ours.write_all(&[0, 0]).unwrap();
    assert!(is_gone(fork_server.id().cast_signed()), "the process still lives");
    assert!(fork_server.wait().unwrap().success());
}

async fn a_dropped_command_is_killed_with_its_whole_family() {
    let warden = warden().await;
    let dir = tempfile::tempdir().unwrap();
    let running = warden
        .run(bash(&format!("{STUBBORN} echo all; sleep 300; sleep 300")))
        .await
        .unwrap();
    let leader = i32::try_from(running.pid()).unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let (news, mut ready) = tokio::sync::mpsc::channel(8);
    let said = Arc::clone(&seen);
    let spec = collecting(dir.path());
    let collecting = running.collect(&spec, move |fresh| {
        let mut said = said.lock().unwrap();
        said.push_str(&fresh.text);
        if said.contains("all") {
            let _ = news.try_send(());
        }
    });
    tokio::select! {
        ended = collecting => panic!("{ended:?}"),
        _ = ready.recv() => {}
    }
    let left = pids(seen.lock().unwrap().trim().trim_end_matches("all"));
    assert_eq!(left.len(), 2);
    assert!(is_gone(leader), "the process still lives");
    left.into_iter()
        .for_each(|pid| assert!(is_gone(pid), "process {pid} still lives"));
    assert_eq!(
        text(&output_of(&warden, "echo lives").await),
        "lives\n",
        "the warden is still there"
    );
}

async fn time_that_is_over_ends_the_command() {
    let warden = warden().await;
    let dir = tempfile::tempdir().unwrap();
    let spec = CollectSpec {
        time: Duration::from_millis(300),
        ..collecting(dir.path())
    };
    for (script, signal) in [
        ("echo a; sleep 300", 15),
        ("trap '' TERM; echo a; sleep 300; sleep 300; :", 9),
    ] {
        let before = Instant::now();
        let mut running = warden.run(bash(script)).await.unwrap();
        // Its time starts with its first output.
        let mut word = [0; 8];
        let Heard::Output(count) = running.hear(&mut word).await.unwrap() else {
            panic!("it ended")
        };
        let done = running.collect(&spec, |_| {}).await.unwrap();
        assert_eq!(
            (&word[..count], done.timed_out, done.exit.signal),
            (&b"a\n"[..], true, Some(signal))
        );
        assert!(before.elapsed() < Duration::from_secs(60));
    }
}

async fn output_is_bounded_in_memory_and_whole_in_the_spill_file() {
    let warden = warden().await;
    let dir = tempfile::tempdir().unwrap();
    let spec = CollectSpec {
        spill_bytes: 9_000_001,
        ..collecting(dir.path())
    };
    for (size, spilled) in [
        (65_536_u64, None),
        (65_537, Some(65_537)),
        (10_000_000, Some(9_000_001)),
    ] {
        let script = format!("yes | head -c {size}");
        let done = warden
            .run(bash(&script))
            .await
            .unwrap()
            .collect(&spec, |_| {})
            .await
            .unwrap();
        assert_eq!(
            (done.output.bytes(), done.output.lines()),
            (size, size.div_ceil(2))
        );
        let kept = done.output.head().len() + done.output.tail().len();
        assert!(kept <= 131_072);
        assert_eq!(done.output.skipped(), size - u64::try_from(kept).unwrap());
        assert_eq!(
            done.spill
                .as_ref()
                .map(|spill| std::fs::metadata(spill.path()).unwrap().len()),
            spilled
        );
        assert_eq!(done.spill.as_ref().map(agentd_sandbox::SpillFile::bytes), spilled);
        assert_eq!(done.spill_error, None);
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a dropped spill file is removed"
    );
}

async fn output_is_reported_while_it_comes() {
    let warden = warden().await;
    let dir = tempfile::tempdir().unwrap();
    let (news, mut seen) = tokio::sync::mpsc::channel(8);
    let running = warden
        .run(bash("echo first; read -r line < <(sleep 300)"))
        .await
        .unwrap();
    let spec = collecting(dir.path());
    let collecting = running.collect(&spec, move |fresh| {
        let _ = news.try_send(fresh);
    });
    tokio::select! {
        ended = collecting => panic!("{ended:?}"),
        fresh = seen.recv() => assert_eq!(fresh.map(|fresh| (fresh.offset, fresh.text)), Some((0, "first\n".to_owned()))),
    }
}

async fn a_slot_starts_its_warden_again_and_not_after_its_end() {
    let slot = WardenSlot::new(spec(Path::new("/tmp")));
    let first = slot.get().await.unwrap();
    assert!(Arc::ptr_eq(&first, &slot.get().await.unwrap()));
    assert!(first.close(Duration::from_secs(60)).await);
    let second = slot.get().await.unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    let mut running = second.run(bash("sleep 300")).await.unwrap();
    assert!(slot.close(Duration::from_secs(60)).await);
    assert!(matches!(running.exit().await, Err(SandboxError::WardenGone)));
    assert!(matches!(slot.get().await, Err(SandboxError::WardenGone)));
    let gone = WardenSlot::new(spec(Path::new("/no/such/dir")));
    assert!(matches!(gone.get().await, Err(SandboxError::Workdir { .. })));
}

async fn an_idle_warden_is_let_go_and_a_busy_one_is_not() {
    let slot = WardenSlot::new(spec(Path::new("/tmp")));
    assert!(slot.release_idle(Duration::ZERO), "there is none");
    let warden = slot.get().await.unwrap();
    let mut running = warden.run(bash("sleep 300")).await.unwrap();
    assert!(!slot.release_idle(Duration::ZERO));
    running.kill(true);
    assert_eq!(
        running.exit().await.unwrap(),
        Exit {
            code: None,
            signal: Some(9),
            exceeded: None,
            refused: GitRefusals::default(),
        }
    );
    assert!(!slot.release_idle(Duration::from_secs(3600)));
    assert!(slot.release_idle(Duration::ZERO));
}

async fn many_commands_run_side_by_side() {
    let warden = warden().await;
    let warden = Arc::new(warden);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let warden = Arc::clone(&warden);
        tasks.spawn(async move { (number, text(&output_of(&warden, &format!("echo {number}")).await)) });
    }
    let mut all = tasks.join_all().await;
    all.sort_unstable();
    let expected: Vec<_> = (0..20).map(|number| (number, format!("{number}\n"))).collect();
    assert_eq!(all, expected);
}

async fn a_command_that_is_talked_with_has_three_pipes() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let warden = warden().await;
    let script = "read line; echo \"heard $line\"; cat; echo done >&2; exit 3";
    let mut piped = warden.run_piped(bash(script)).await.unwrap();
    piped.stdin.write_all(b"one\ntwo\n").await.unwrap();
    drop(piped.stdin);
    let mut said = String::new();
    piped.stdout.read_to_string(&mut said).await.unwrap();
    let (mut errors, mut buffer) = (Vec::new(), [0; 64]);
    let exit = loop {
        match piped.running.hear(&mut buffer).await.unwrap() {
            Heard::Output(count) => errors.extend_from_slice(&buffer[..count]),
            Heard::Exited(exit) => break exit,
        }
    };
    assert_eq!(said, "heard one\ntwo\n");
    assert_eq!(
        exit,
        Exit {
            code: Some(3),
            signal: None,
            exceeded: None,
            refused: GitRefusals::default(),
        }
    );
    // The end may arrive before the last output; what arrived is correct.
    assert!("done\n".starts_with(&text_of(&errors)), "{errors:?}");
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
