//! An agent may not control the daemon that runs it.

use crate::{YOLO, asks, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{ApprovalListParams, EndReason};
use agentd_tests::{Daemon, Follower, binaries, check_log, eventually};

/// Puts a script next to the session's files that approves `target` and records the result.
fn script(daemon: &Daemon, target: &str) {
    let dir = daemon.workdir("project");
    let (ctl, socket) = (binaries().agentctl.display(), daemon.socket());
    let approve = format!(
        "'{ctl}' --socket '{}' approve {target} 2>\"$1.said\"; echo $? >\"$1.new\"; mv \"$1.new\" \"$1\"\n",
        socket.display()
    );
    std::fs::write(format!("{dir}/approve.sh"), approve).unwrap();
    // A process that leaves its session and its parents still belongs to the tool.
    let hidden = "(setsid setsid sh approve.sh hidden </dev/null >/dev/null 2>&1 &)\nuntil test -e hidden; do sleep 0.02; done\n";
    std::fs::write(format!("{dir}/hide.sh"), hidden).unwrap();
}

fn outcome(daemon: &Daemon, name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", daemon.workdir("project"))).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_command_of_an_agent_cannot_answer_an_approval_but_a_person_can() {
    let server = ModelServer::start(false).await.unwrap();
    // In a sandbox the socket cannot be reached at all; here the daemon itself has to refuse.
    let config = format!("{YOLO}[sandbox]\nlevel = \"none\"\nrequire = \"none\"\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let waiting = asks(&daemon, &client).await;
    script(&daemon, &waiting);
    for (plan, name) in [
        ("plan:open steps=1 command=sh_approve.sh_open;", "open"),
        ("plan:hidden steps=1 command=sh_hide.sh;", "hidden"),
    ] {
        let agent = session(&daemon, &client, plan).await;
        let end = Follower::attach(&client, &agent).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed);
        check_log(&client, &agent).await;
        let said = outcome(&daemon, &format!("{name}.said"));
        assert_eq!(outcome(&daemon, name), "4\n", "{name}: {said}");
        assert!(said.contains("may not control the daemon"), "{name}: {said}");
    }
    assert_eq!(
        client
            .approvals(&ApprovalListParams::default())
            .await
            .unwrap()
            .len(),
        1,
        "it is still open"
    );
    // The same script, started by a person.
    person_runs(&daemon, "approve.sh person").await;
    assert_eq!(
        outcome(&daemon, "person"),
        "0\n",
        "{}",
        outcome(&daemon, "person.said")
    );
    let end = Follower::attach(&client, &waiting).await.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
}

#[expect(clippy::disallowed_methods, reason = "a person's shell")]
async fn person_runs(daemon: &Daemon, script: &str) {
    let mut shell = tokio::process::Command::new("sh")
        .args(script.split(' '))
        .current_dir(daemon.workdir("project"))
        .spawn()
        .unwrap();
    let mut over = false;
    eventually("the person's script has ended", || {
        over |= shell.try_wait().is_ok_and(|status| status.is_some());
        over
    })
    .await;
}
