//! A daemon that stops and restarts, and one that is not running yet.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Event, EventBody, ExportParams};
use agentd_tests::{Access, Daemon, Finished, Way, binaries, eventually, marked, within};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// `agentctl` that follows something, line by line.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Following {
    fn start(daemon: &Daemon, args: &[&str]) -> Self {
        let mut child = daemon
            .agentctl_command(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Reads on until an event of this type.
    async fn until(&mut self, kind: &str) -> Event {
        loop {
            let line = within(kind, self.lines.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| unreachable!("it ended before {kind}: {:?}", self.seen.last()));
            let event: Event = serde_json::from_str(&line).unwrap();
            self.seen.push(line);
            if event.body.kind() == kind {
                return event;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_run_attach_logs_export_and_http_follow_over_a_kill_without_a_gap_or_a_duplicate() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let dir = first.workdir("project");
    let script = "until test -e go; do sleep 0.02; done\n";
    std::fs::write(format!("{dir}/wait.sh"), script).unwrap();
    let plan = "plan:r steps=3 command=sh_wait.sh;";
    let mut run = Following::start(&first, &["run", "--json", "-C", &dir, "--name", "r", plan]);
    let session = run.until("tool.started").await.session.to_string();
    let mut others = [
        Following::start(&first, &["attach", "-o", "jsonl", &session]),
        Following::start(&first, &["logs", "-f", "-o", "jsonl", &session]),
        Following::start(&first, &["export", "--jsonl", "--follow", &session]),
        Following::start(&first, &["events", "-f", "--after", "0", "-o", "jsonl"]),
    ];
    for other in &mut others {
        other.until("tool.started").await;
    }
    let mut access = Access::of(&first.client().await).await.unwrap();
    let mut viewer = Way::Http(access.clone()).follow(&session).await;
    let started = |body: &EventBody| matches!(body, EventBody::ToolStarted(_));
    viewer.until("the first call", started).await;
    first.kill().await;
    while viewer.next().await.is_some() {}
    std::fs::write(format!("{dir}/go"), "").unwrap();
    let second = first.restart(None).await;
    // The token is as durable as the log; only the address changes.
    second
        .http()
        .await
        .trim_start_matches("http://")
        .clone_into(&mut access.address);
    viewer.resume(&Way::Http(access)).await;
    run.until("turn.finished").await;
    let ended = within("run ends", run.child.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    let params = ExportParams {
        session: session.clone(),
        ..ExportParams::default()
    };
    let stored = second.client().await.export(&params).await.unwrap().lines;
    assert_eq!(run.seen, stored);
    assert!(stored.iter().any(|line| line.contains("session.recovered")));
    viewer.turn_finished(1).await;
    let events = stored.iter().map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(viewer.events, events.collect::<Vec<Event>>());
    for other in &mut others {
        other.until("turn.finished").await;
        assert_eq!(other.seen, stored);
        other.child.kill().await.unwrap();
    }
}

/// `agentctl` of a user whose home is `home` and who has no daemon yet.
#[expect(clippy::disallowed_methods, reason = "the user's own environment")]
async fn at_home(home: &Path, autostart: &str, args: &[&str]) -> Finished {
    let output = Command::new(&binaries().agentctl)
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("AGENTCTL_AUTOSTART", autostart)
        .env("AGENTD_MODEL__DEFAULT", "scripted")
        .stdin(Stdio::null())
        .output();
    let output = within("agentctl ends", output).await.unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_starts_a_daemon_on_the_default_socket_and_says_so_unless_that_is_forbidden() {
    let home = tempfile::Builder::new().prefix("agentd-home").tempdir().unwrap();
    let home = home.path();
    let socket = home.join(".local/share/agentd/agentd.sock").display().to_string();
    let refused = at_home(home, "0", &["run", "hello"]).await;
    assert_eq!(refused.code, Some(69), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("AGENTCTL_AUTOSTART=0"),
        "{}",
        refused.stderr
    );
    let looked = at_home(home, "", &["ps"]).await;
    assert_eq!(looked.code, Some(69), "only run starts one: {}", looked.stderr);
    let named = at_home(home, "", &["--socket", &socket, "run", "hello"]).await;
    assert_eq!(
        named.code,
        Some(69),
        "a named daemon is not ours to start: {}",
        named.stderr
    );
    assert!(marked(&socket).is_empty());

    // The daemon's data is in the home directory, so no session may work there.
    let project = home.join("project");
    std::fs::create_dir(&project).unwrap();
    let ran = at_home(home, "", &["run", "-C", project.to_str().unwrap(), "hello"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.trim().is_empty());
    assert!(
        ran.stderr
            .contains(&format!("in the background (socket {socket})"))
            && ran.stderr.contains("agentctl daemon stop"),
        "{}",
        ran.stderr
    );
    let again = at_home(home, "", &["run", "-C", project.to_str().unwrap(), "hello"]).await;
    assert!(!again.stderr.contains("in the background"), "{}", again.stderr);
    let rows = at_home(home, "0", &["ps", "-q"]).await;
    assert_eq!(rows.stdout.lines().count(), 2, "{}", rows.stderr);
    let stopped = at_home(home, "0", &["daemon", "stop"]).await;
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    eventually("the daemon has ended", || marked(&socket).is_empty()).await;
}
