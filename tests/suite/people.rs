//! What a person sees on a terminal, and how it is steered there.

use crate::terminals::{Terminals, agentctl};
use crate::{ASKING, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::skipped;

#[tokio::test(flavor = "multi_thread")]
async fn ps_watches_until_q_and_tells_whom_the_fleet_waits_for() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let Some(terminals) = Terminals::start("people") else {
        skipped("ps_watches_until_q", "tmux is not installed");
        return;
    };
    terminals.open("ps", &agentctl(&daemon, "ps -w -L team"));
    terminals.shows("ps", "no session is open").await;
    // What comes is drawn.
    let plan = "plan:w steps=1 command=echo_hello;";
    let args = ["run", "-dq", "--name", "w", "-l", "team=infra", plan];
    let run = daemon.agentctl(&args).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    terminals.shows("ps", "1 session: 1 waiting for a person").await;
    let screen = terminals.screen("ps");
    for part in ["REASON", "echo hello", "TEAM", "infra"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    terminals.keys("ps", &["q"]);
    terminals.shows("ps", "exit=0").await;
    // Off a terminal there is the table alone.
    let piped = daemon.agentctl(&["ps", "-L", "team"]).await.stdout;
    assert_eq!(piped.lines().count(), 2, "{piped}");
    assert!(!piped.contains('\x1b'), "{piped:?}");
}
