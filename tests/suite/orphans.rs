//! Two or more of daemon, fork server and warden die or stop at once. The next daemon ends the processes that they leave
//! before any session goes on (I5). docs/faults.md has these rows.

use crate::sandbox::with;
use crate::session;
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, Follower, check_log, children_of, eventually, marked, signal};
use rustix::process::Signal;
use std::fs;

/// The fate of the fork server, the wardens and the tool server before the daemon is killed. The proxy is not a process: it
/// is a task of the daemon, with a forwarder in the warden, and dies with either.
type Case = (&'static str, [Option<Signal>; 3]);
const KILL: Option<Signal> = Some(Signal::KILL);
const STOP: Option<Signal> = Some(Signal::STOP);
const CASES: [Case; 8] = [
    ("all", [KILL, KILL, KILL]),
    ("daemon and fork server", [KILL, None, None]),
    ("daemon and warden", [None, KILL, None]),
    ("daemon and tool server", [None, None, KILL]),
    ("daemon, the fork server stopped", [STOP, None, None]),
    ("daemon, the warden stands still", [None, STOP, None]),
    ("daemon, the tool server stands still", [None, None, STOP]),
    ("daemon, all of them stand still", [STOP, STOP, STOP]),
];

/// A tool server with one tool, as cheap as a shell.
const SERVER: &str = r#"while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"beat","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}';;
  esac
done
"#;
const SERVERS: &str =
    "[mcp]\nready_within = \"2s\"\n[mcp.servers.beat]\ncommand = [\"bash\", \"beat-server.sh\"]\n";

/// A command in its own session that keeps writing and never ends.
const BEATS: &str = "while :; do echo $$ >>beats; read -t 0.02 <>fifo; done";

/// The processes below another one, with it.
fn family(pid: u32) -> Vec<u32> {
    let below = children_of(pid).into_iter().flat_map(family);
    std::iter::once(pid).chain(below).collect()
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn named(name: &str, pids: &[u32]) -> Vec<u32> {
    let is_it = |pid: &u32| name_of(*pid).contains(name);
    pids.iter().copied().filter(is_it).collect()
}

/// The number of beats, and of the processes that wrote them.
fn beats(dir: &str) -> (usize, usize) {
    let text = fs::read_to_string(format!("{dir}/beats")).unwrap_or_default();
    let by: std::collections::BTreeSet<&str> = text.lines().collect();
    (text.lines().count(), by.len())
}

async fn every_case(level: &str) {
    let server = ModelServer::start(false).await.unwrap();
    let mut survived = 0;
    for case in CASES {
        let Some(mut daemon) = with(&server, level, SERVERS).await else {
            return;
        };
        survived += one(&mut daemon, level, case).await;
    }
    // The control: in namespaces the kernel ends them; elsewhere they would have continued.
    assert!(
        level == "isolated" || survived > 0,
        "{level}: nothing outlived the daemon"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_what_a_double_failure_leaves_at_none_is_ended_before_a_session_goes_on() {
    every_case("none").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_what_a_double_failure_leaves_at_confined_is_ended_before_a_session_goes_on() {
    every_case("confined").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_what_a_double_failure_leaves_at_isolated_is_ended_before_a_session_goes_on() {
    every_case("isolated").await;
}

/// Runs one case. Returns how many processes of commands outlived the daemon.
async fn one(daemon: &mut Daemon, level: &str, (what, [fork_server, warden, tool_server]): Case) -> usize {
    let dir = daemon.workdir("project");
    let script = format!("{dir}/beats.sh");
    fs::write(&script, format!("{BEATS}\n")).unwrap();
    fs::write(
        format!("{dir}/start.sh"),
        "mkfifo fifo\nsetsid bash beats.sh &\nexec bash \"$PWD/beats.sh\"\n",
    )
    .unwrap();
    fs::write(format!("{dir}/beat-server.sh"), SERVER).unwrap();
    let client = daemon.client().await;
    let session = session(daemon, &client, "plan:beats steps=1 command=bash_start.sh;").await;
    eventually("both loops run", || beats(&dir).1 == 2).await;
    eventually("the tool server runs", || {
        family(daemon.pid())
            .iter()
            .any(|pid| runs(*pid, "beat-server.sh"))
    })
    .await;
    drop(client);
    let all = family(daemon.pid());
    let (fork_servers, wardens) = (named("agentd-forksrv", &all), named("agentd-warden", &all));
    let servers: Vec<u32> = all
        .iter()
        .copied()
        .filter(|pid| runs(*pid, "beat-server.sh"))
        .collect();
    assert!(
        !fork_servers.is_empty() && wardens.len() > 1,
        "{level}: {what}: {all:?}"
    );
    for (pids, how) in [
        (servers, tool_server),
        (wardens, warden),
        (fork_servers, fork_server),
    ] {
        for pid in pids {
            how.into_iter().for_each(|how| signal(pid, how));
        }
    }
    daemon.kill().await;
    let outlived = all.iter().filter(|pid| runs(**pid, "beats.sh")).count();
    let mut next = daemon.restart(None).await;
    // The daemon is ready: every session may continue from here.
    let left: Vec<u32> = all.iter().copied().filter(|pid| lives(*pid)).collect();
    assert!(left.is_empty(), "{level}: {what}: {left:?}");
    let before = beats(&dir).0;
    let client = next.client().await;
    Follower::attach(&client, &session).await.turn_finished(1).await;
    check_log(&client, &session).await;
    assert_eq!(beats(&dir).0, before, "{level}: {what}: something writes on");
    assert!(marked(&script).is_empty(), "{level}: {what}");
    drop(client);
    next.terminate();
    next.ended().await;
    outlived
}

fn runs(pid: u32, script: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    lives(pid) && String::from_utf8_lossy(&line).contains(script)
}

/// Whether a process exists and is not a zombie.
fn lives(pid: u32) -> bool {
    agentd_tests::state_of(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
