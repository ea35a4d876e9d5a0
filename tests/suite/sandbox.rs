//! The kernel sandbox, as a person and an agent see it, at each level that this machine supports.

use crate::{YOLO, asks, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{ApprovalListParams, Block, CreateParams, EndReason, EventBody, SandboxLevel};
use agentd_tests::{Daemon, Follower, binaries, check_log, skipped};

const LEVELS: [(&str, SandboxLevel); 3] = [
    ("none", SandboxLevel::None),
    ("confined", SandboxLevel::Confined),
    ("isolated", SandboxLevel::Isolated),
];

/// A daemon at exactly this level; `None` where the machine lacks it.
async fn at(server: &ModelServer, level: &str, read: &str) -> Option<Daemon> {
    with(server, level, &format!("read = [{read}]")).await
}

/// A daemon at this level with more settings of the sandbox; `None`, with a message, where the machine lacks the level.
pub(crate) async fn with(server: &ModelServer, level: &str, more: &str) -> Option<Daemon> {
    let config = format!("{YOLO}[sandbox]\nlevel = \"{level}\"\nrequire = \"{level}\"\n{more}\n");
    let daemon = daemon(server, &config).await;
    let client = daemon.client().await;
    let params = CreateParams {
        workdir: daemon.workdir("probe"),
        ..CreateParams::default()
    };
    match client.create(&params).await {
        Ok(_) => Some(daemon),
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.contains("the sandbox that the settings require is not available"),
                "{said}"
            );
            let kind = if said.contains("on the PATH") {
                ""
            } else {
                "kernel: "
            };
            skipped("sandbox", &format!("{kind}{level}: {said}"));
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_no_command_answers_an_approval_or_leaves_its_directory_at_any_level() {
    let server = ModelServer::start(false).await.unwrap();
    let programs = binaries().agentctl.parent().unwrap().display().to_string();
    for (name, level) in LEVELS {
        let Some(daemon) = at(&server, name, &format!("{programs:?}")).await else {
            continue;
        };
        let client = daemon.client().await;
        let waiting = asks(&daemon, &client).await;
        let dir = daemon.workdir("project");
        let (ctl, socket) = (binaries().agentctl.display(), daemon.socket());
        let script = format!(
            "'{ctl}' --socket '{}' approve {waiting} 2>said; echo $? >code; echo x >../outside; echo x >inside",
            socket.display()
        );
        std::fs::write(format!("{dir}/approve.sh"), script).unwrap();
        let agent = session(&daemon, &client, "plan:tries steps=1 command=sh_approve.sh;").await;
        let mut follower = Follower::attach(&client, &agent).await;
        let started = follower
            .until("the call", |body| matches!(body, EventBody::ToolStarted(_)))
            .await;
        let EventBody::ToolStarted(started) = started.body else {
            unreachable!("the test waited for it");
        };
        assert_eq!(started.sandbox, level);
        let end = Follower::attach(&client, &agent).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{name}");
        check_log(&client, &agent).await;
        let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).unwrap_or_default();
        // At level none the daemon refuses its own descendants (4); in a sandbox they cannot reach it (69).
        let refused = if level == SandboxLevel::None {
            "4\n"
        } else {
            "69\n"
        };
        assert_eq!(read("code"), refused, "{name}: {}", read("said"));
        assert_eq!(read("inside"), "x\n", "{name}");
        let outside = std::path::Path::new(&dir).with_file_name("outside").exists();
        assert_eq!(outside, level == SandboxLevel::None, "{name}");
        let open = client.approvals(&ApprovalListParams::default()).await.unwrap();
        assert_eq!(open.len(), 1, "{name}: it is still open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_sessions_below_the_required_level_are_refused_with_the_way_out() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[sandbox]\nlevel = \"none\"\n");
    let daemon = daemon(&server, &config).await;
    let params = CreateParams {
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    let refused = daemon
        .client()
        .await
        .create(&params)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("sandbox.require is \"confined\", but commands would run at the level \"none\""),
        "{refused}"
    );
    let said = daemon.agentctl(&["doctor"]).await;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stdout.contains("FAIL sandbox") && said.stdout.contains("sandbox.require = \"none\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_confines_commands_is_found_out_once_and_told_by_doctor() {
    let server = ModelServer::start(false).await.unwrap();
    for (name, told) in [
        ("confined", "commands run confined"),
        ("isolated", "commands run isolated"),
    ] {
        let Some(mut daemon) = at(&server, name, "").await else {
            continue;
        };
        let said = daemon.agentctl(&["doctor"]).await;
        assert!(said.stdout.contains(told), "{}", said.stdout);
        let file = daemon.dir.path().join("data/sandbox.json");
        let before = std::fs::metadata(&file).unwrap().modified().unwrap();
        daemon.kill().await;
        let daemon = daemon.restart(None).await;
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), before);
        drop(daemon);
    }
}

/// The text of the first tool result of a session that runs this script.
async fn result_of(daemon: &Daemon, client: &Client, script: &str) -> String {
    let dir = daemon.workdir("project");
    std::fs::write(format!("{dir}/script.sh"), script).unwrap();
    let agent = session(daemon, client, "plan:tries steps=1 command=bash_script.sh;").await;
    let done = Follower::attach(client, &agent)
        .await
        .until("the result", |body| matches!(body, EventBody::ToolFinished(_)))
        .await;
    let EventBody::ToolFinished(done) = done.body else {
        unreachable!("the test waited for it");
    };
    done.outcome.llm_text
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_redteam_40_a_command_that_uses_too_much_is_killed_and_the_model_is_told() {
    let server = ModelServer::start(false).await.unwrap();
    for (name, _) in LEVELS {
        let more = "max_file_bytes = 1048576\nmax_processes = 40\nmax_memory_bytes = 268435456\n\
                    max_new_bytes = 8388608";
        let Some(daemon) = with(&server, name, more).await else {
            continue;
        };
        let client = daemon.client().await;
        for (script, told) in [
            ("exec truncate -s 100G big", "a file of more than 1048576 bytes"),
            (
                "b() { b | b & }; b; sleep 600",
                "more than 40 concurrent processes and threads",
            ),
            (
                "perl -e 'push @a, \"x\" x (1 << 20) while @a < 400; sleep 600'",
                "more than 268435456 bytes of memory",
            ),
            (
                "perl -e 'for (1..20) { open F, q(>), q(f).$_; print F q(x) x 9e5; close F } sleep 600'",
                "more than 8388608 bytes of new and changed files",
            ),
        ] {
            let said = result_of(&daemon, &client, script).await;
            assert!(said.contains(told), "{name}: {script}: {said}");
        }
        assert_eq!(result_of(&daemon, &client, "echo fine").await, "fine\n", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_36_an_isolated_command_reaches_the_listed_host_and_no_other() {
    let server = ModelServer::start(false).await.unwrap();
    let host = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = host.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        while let Ok((mut stream, _)) = host.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nfrom a host";
            let _ = stream.write_all(answer).await;
        }
    });
    let more = format!("network = {{ hosts = [\"127.0.0.1:{port}\"] }}");
    let Some(daemon) = with(&server, "isolated", &more).await else {
        return;
    };
    let client = daemon.client().await;
    let get = |url: &str| {
        format!(
            "proxy=${{http_proxy#http://}}; exec 3<>/dev/tcp/${{proxy/://}}; printf 'GET {url} HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
        )
    };
    let said = result_of(&daemon, &client, &get(&format!("http://127.0.0.1:{port}/"))).await;
    assert!(said.contains("from a host"), "{said}");
    let said = result_of(&daemon, &client, &get("http://127.0.0.1:1/")).await;
    assert!(
        said.contains("403 Forbidden") && said.contains("sandbox.network"),
        "{said}"
    );
    let around = format!("(: > /dev/tcp/127.0.0.1/{port}) && echo yes");
    assert!(!result_of(&daemon, &client, &around).await.contains("yes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_redteam_21_a_session_does_not_follow_its_directory_to_another_one() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let agent = session(&daemon, &client, "plan:tries steps=1 command=true;").await;
    Follower::attach(&client, &agent).await.turn_finished(1).await;
    let (dir, away) = (daemon.workdir("project"), daemon.workdir("away"));
    std::fs::rename(&dir, format!("{dir}.moved")).unwrap();
    std::os::unix::fs::symlink(&away, &dir).unwrap();
    let params = agentd_protocol::SendParams {
        session: agent.clone(),
        content: vec![Block::text("plan:again steps=1 command=touch_here;")],
        ..Default::default()
    };
    client.send(&params).await.unwrap();
    let mut follower = Follower::attach(&client, &agent).await;
    let said = follower
        .until("the refusal", |body| {
            matches!(body, EventBody::ToolFinished(done) if done.outcome.llm_text.contains("replaced the working directory"))
        })
        .await;
    assert!(matches!(said.body, EventBody::ToolFinished(_)));
    assert!(!std::path::Path::new(&away).join("here").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_around_the_daemons_data_is_refused_where_no_command_could_run() {
    for (level, _) in LEVELS {
        let server = ModelServer::start(false).await.unwrap();
        let Some(daemon) = at(&server, level, "").await else {
            continue;
        };
        let client = daemon.client().await;
        let around = daemon.dir.path().canonicalize().unwrap().display().to_string();
        let params = |workdir: String| CreateParams {
            workdir,
            ..CreateParams::default()
        };
        let created = client.create(&params(around.clone())).await;
        if level == "none" {
            assert!(created.is_ok(), "without walls commands run there: {created:?}");
            continue;
        }
        let fault = agentd_protocol::Fault::from(created.unwrap_err());
        assert_eq!(fault.code.as_str(), "bad_workdir", "{level}");
        assert!(fault.message.contains(&format!("{around}/data")), "{fault:?}");
        let below = client.create(&params(daemon.workdir("below"))).await;
        assert!(below.is_ok(), "control: {below:?}");
    }
}
