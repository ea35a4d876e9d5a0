//! Commands with their own terminal, at each level.

use agentd_process_tests::{Case, Group, cases, is_gone, skipped};
use agentd_protocol::SandboxLevel::{self, Confined, Isolated, None as Open};
use agentd_sandbox::{
    AtTerminal, Bounds, CaptureLimits, CollectSpec, CommandSpec, Confinement, Environment, Exit, Finding,
    Heard, ProbeSpec, TerminalSize, Warden, WardenSpec, probe, readable,
};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_command_has_a_terminal_of_its_own_and_reads_what_is_typed,
        redteam_38_nothing_is_put_into_the_input_of_another_terminal,
        keys_are_signals_for_what_is_in_the_foreground,
        a_daemon_that_ignores_ctrl_c_does_not_pass_that_on,
        i5_who_ignores_everything_is_ended_with_what_it_started,
        i6_a_command_that_does_not_read_is_given_up,
        a_program_that_is_not_there_says_so,
    ];
    Group::new("terminal", Duration::from_secs(120), all)
}

async fn levels() -> Vec<SandboxLevel> {
    let dir = tempfile::tempdir().unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: dir.path().to_owned(),
    };
    let found = probe(&spec).await.unwrap();
    let mut levels = vec![Open];
    for (level, finding) in [(Confined, &found.confined), (Isolated, &found.isolated)] {
        match finding {
            Finding::Missing(why) if why.message.contains("on the PATH") => {
                skipped(&why.message, "terminal");
            }
            Finding::Missing(why) => skipped(&format!("kernel: {}", why.message), "terminal"),
            _ => levels.push(level),
        }
    }
    levels
}

fn environment() -> Environment {
    let daemon = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")];
    Environment::allowed(daemon.map(|(name, value)| (name.into(), value.into())), &[])
}

struct World {
    dir: TempDir,
    warden: Warden,
}

impl World {
    async fn new(level: SandboxLevel) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let warden = start(level, dir.path()).await;
        Self { dir, warden }
    }

    async fn at_terminal(&self, argv: &[&str]) -> Seat {
        let command = CommandSpec {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            cwd: self.dir.path().join("w"),
            env: Vec::new(),
        };
        let size = TerminalSize {
            columns: 97,
            rows: 23,
        };
        let at = self.warden.run_at_terminal(command, size).await.unwrap();
        Seat {
            at,
            seen: String::new(),
        }
    }

    async fn sh(&self, script: &str) -> Seat {
        self.at_terminal(&["bash", "-c", script]).await
    }
}

async fn start(level: SandboxLevel, dir: &Path) -> Warden {
    let environment = environment();
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: dir.join("w"),
        environment: environment.clone(),
        bounds: Bounds::default(),
        network: None,
    };
    if level == Open {
        return Warden::spawn(&spec).await.unwrap();
    }
    let walls = Confinement::new(level, dir.join("temp"), readable(&environment, &[]));
    Warden::spawn_confined(&spec, &walls).await.unwrap().0
}

struct Seat {
    at: AtTerminal,
    seen: String,
}

impl Seat {
    async fn types(&mut self, text: &str) {
        self.at.keyboard.type_in(text.as_bytes(), WITHIN).await.unwrap();
    }

    async fn until(&mut self, word: &str) -> &str {
        let mut buffer = [0; 4_096];
        while !self.seen.contains(word) {
            match self.at.running.hear(&mut buffer).await.unwrap() {
                Heard::Output(count) => self.seen += &String::from_utf8_lossy(&buffer[..count]),
                Heard::Exited(exit) => panic!("{exit:?} before {word:?}: {}", self.seen),
            }
        }
        &self.seen
    }

    /// The exit, and all output seen.
    async fn end(self) -> (Exit, String) {
        let dir = tempfile::tempdir().unwrap();
        let spec = CollectSpec {
            time: WITHIN,
            limits: CaptureLimits::default(),
            spill_dir: dir.path().to_owned(),
            spill_bytes: 1 << 20,
        };
        let done = self.at.running.collect(&spec, |_| {}).await.unwrap();
        (
            done.exit,
            self.seen + &String::from_utf8_lossy(done.output.head()),
        )
    }
}

/// The number after `word`.
fn number(text: &str, word: &str) -> i32 {
    let digits = text.split_once(word).unwrap().1;
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

async fn a_command_has_a_terminal_of_its_own_and_reads_what_is_typed() {
    for level in levels().await {
        let world = World::new(level).await;
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo to the terminal >/dev/tty; \
                      read -r line; echo \"got <$line>\"; read -r more || echo end";
        let mut seat = world.sh(script).await;
        seat.until("to the terminal").await;
        seat.types("hello\n").await;
        seat.until("got <hello>").await;
        // End of input (Ctrl-D).
        seat.types("\u{4}").await;
        let (exit, seen) = seat.end().await;
        assert_eq!(exit.code, Some(0), "{level:?}: {seen}");
        assert!(
            seen.contains("23 97\r\n") && seen.contains("end\r\n"),
            "{level:?}: {seen}"
        );
    }
}

async fn redteam_38_nothing_is_put_into_the_input_of_another_terminal() {
    // TIOCSTI pushes a character into a terminal's input.
    let put = "perl -e 'my $c = \"x\"; print ioctl(STDIN, 0x5412, $c) ? \"put\" : \"refused\"'; echo .";
    for level in levels().await {
        let world = World::new(level).await;
        // It is the foreground process of its terminal.
        let mut first = world
            .sh("perl -MPOSIX -e 'print \"front=\", tcgetpgrp(0)'; echo \" me=$$\"; read -r x")
            .await;
        let text = first.until("\r\n").await;
        assert_eq!(number(text, "front="), number(text, "me="), "{level:?}: {text}");
        let (exit, seen) = world.sh(put).await.end().await;
        assert_eq!(exit.code, Some(0));
        if level != Open {
            assert!(seen.contains("refused"), "{level:?}: {seen}");
        }
        // Nothing reached the other terminal.
        first.types("done\n").await;
        let (exit, seen) = first.end().await;
        assert!(exit.code == Some(0) && !seen.contains('x'), "{level:?}: {seen}");
        // A command without a terminal cannot find one, not even the daemon's.
        let none = world
            .sh("setsid -w sh -c 'echo hi >/dev/tty' 2>&1 || echo none")
            .await;
        let (_, seen) = none.end().await;
        assert!(seen.contains("none"), "{level:?}: {seen}");
    }
}

async fn keys_are_signals_for_what_is_in_the_foreground() {
    for level in levels().await {
        let world = World::new(level).await;
        // The prompt contains the command's number: input typed before the prompt appears may be lost.
        let shell = ["env", "PS1=[\\#]: ", "bash", "--norc", "--noprofile", "-i"];
        let mut seat = world.at_terminal(&shell).await;
        seat.until("[1]: ").await;
        seat.types("sh -c 'echo begin; exec sleep 1000'\n").await;
        seat.until("begin\r\n").await;
        seat.types("\u{3}").await;
        seat.until("[2]: ").await;
        seat.types("echo $((40 + 2))\n").await;
        seat.until("42\r\n").await;
        seat.types("exit 7\n").await;
        let (exit, seen) = seat.end().await;
        assert_eq!(exit.code, Some(7), "{level:?}: {seen}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the case repeats another one in this program"
)]
async fn a_daemon_that_ignores_ctrl_c_does_not_pass_that_on() {
    let ignoring = "trap '' INT QUIT HUP TERM; exec \"$0\" keys_are_signals_for_what_is_in_the_foreground";
    let program = std::env::current_exe().unwrap();
    let repeated = tokio::process::Command::new("sh")
        .args(["-c", ignoring])
        .arg(program)
        .status()
        .await;
    assert!(repeated.unwrap().success());
}

async fn i5_who_ignores_everything_is_ended_with_what_it_started() {
    for level in levels().await {
        let world = World::new(level).await;
        let script = "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP; sleep 1000; sleep 1000' &); \
                      sleep 1000 & echo me=$$; sleep 1000; sleep 1000";
        let mut seat = world.sh(script).await;
        seat.until("me=").await;
        let leader = i32::try_from(seat.at.running.pid()).unwrap();
        seat.at.running.kill(false);
        let (exit, seen) = seat.end().await;
        assert_eq!(exit.signal, Some(9), "{level:?}: {seen}");
        // Inside a namespace its pid differs.
        assert!(level == Isolated || is_gone(leader));
        assert!(world.warden.close(WITHIN).await);
    }
}

async fn i6_a_command_that_does_not_read_is_given_up() {
    let world = World::new(Open).await;
    let mut seat = world.sh("stty raw -echo; echo ready; sleep 1000").await;
    seat.until("ready").await;
    let flood = vec![b'x'; 1 << 20];
    let error = seat
        .at
        .keyboard
        .type_in(&flood, Duration::from_millis(200))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

async fn a_program_that_is_not_there_says_so() {
    let world = World::new(Open).await;
    let (exit, seen) = world.at_terminal(&["/no/such/program"]).await.end().await;
    assert_eq!(exit.code, Some(126));
    assert!(seen.contains("cannot start the command: No such file"), "{seen}");
}
