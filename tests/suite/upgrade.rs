//! The program is replaced on disk while its daemon runs.

use crate::YOLO;
use crate::faults::signals::results;
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EndReason, EventBody, ToolStatus};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, skipped};
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn i5_a_daemon_whose_program_was_replaced_still_runs_commands_at_every_level() {
    let server = ModelServer::start(false).await.unwrap();
    for level in ["none", "confined", "isolated"] {
        let bin = tempfile::tempdir().unwrap();
        let mine = bin.path().join("agentd");
        let script = format!("cp \"$0\" '{0}' && exec '{0}' \"$@\"", mine.display());
        let daemon = Daemon::start(DaemonOptions {
            model_url: Some(server.url()),
            config: format!("{YOLO}[sandbox]\nlevel = \"{level}\"\nrequire = \"{level}\"\n"),
            wrapper: vec!["/bin/sh".to_owned(), "-c".to_owned(), script],
            ..DaemonOptions::default()
        })
        .await;
        let client = daemon.client().await;
        // Another version, which is not a warden at all.
        let newer = bin.path().join("agentd.new");
        std::fs::write(&newer, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&newer, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&newer, &mine).unwrap();
        let params = CreateParams {
            prompt: Some(vec![Block::text("plan:new steps=2 command=echo_{n}_>>_ran;")]),
            workdir: daemon.workdir("project"),
            ..CreateParams::default()
        };
        let session = match client.create(&params).await {
            Ok(created) => created.session.to_string(),
            Err(error) => {
                skipped("upgrade", &format!("kernel: {level}: {error}"));
                continue;
            }
        };
        let end = Follower::attach(&client, &session).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{level}");
        let log = check_log(&client, &session).await;
        for outcome in results(&log) {
            assert_eq!(outcome.status, ToolStatus::Ok, "{level}: {}", outcome.llm_text);
        }
        let at = |event: &agentd_protocol::Event| match &event.body {
            EventBody::ToolStarted(started) => Some(format!("{:?}", started.sandbox).to_lowercase()),
            _ => None,
        };
        assert_eq!(log.iter().find_map(at).as_deref(), Some(level));
        let ran = std::fs::read_to_string(format!("{}/ran", daemon.workdir("project")));
        assert_eq!(ran.unwrap_or_default().lines().count(), 2, "{level}");
    }
}
