//! Sessions of many steps, and many sessions at once.

use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EndReason};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log};

fn prompt(text: &str) -> Option<Vec<Block>> {
    Some(vec![Block::text(text)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_twenty_tool_steps_ends_well_in_both_dialects() {
    let server = ModelServer::start(false).await.unwrap();
    let options = DaemonOptions {
        model_url: Some(server.url()),
        config: "[permission]\nmode = \"yolo\"\n".to_owned(),
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start(options).await;
    let client = daemon.client().await;
    for model in ["claude", "gpt-test"] {
        let params = CreateParams {
            prompt: prompt(&format!("plan:{model} steps=20 command=echo_step_{{n}};")),
            workdir: daemon.workdir(model),
            model: Some(model.to_owned()),
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        let mut follower = Follower::attach(&client, &session).await;
        let end = follower.turn_finished(1).await;
        assert_eq!(
            (end.reason, end.steps, end.tool_calls),
            (EndReason::Completed, 21, 20),
            "{model}"
        );
        assert_eq!(end.text, "All done.");
        let log = check_log(&client, &session).await;
        assert_eq!(log, follower.events, "a live viewer saw exactly the log");
    }
}
