//! A credential reaches neither a tool, nor a log, nor a transcript, nor a client.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::EventBody;
use agentd_tests::{CANARY, Follower, check_log};
use std::path::Path;

pub(crate) fn files_with(dir: &Path, needle: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with(&path, needle, found);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(needle.len()).any(|window| window == needle) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_48_i8_the_key_is_in_no_environment_log_transcript_or_store() {
    let server = ModelServer::start(true).await.unwrap();
    let config = format!("{YOLO}[log]\nlevel = \"trace\"\ntrace = true\naudit = true\n");
    let mut daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    // The command searches where a key could be: its own environment and that of every process above it.
    let plan = "plan:e steps=1 command=env_&&_echo_PATH_is_$PATH;";
    let session = session(&daemon, &client, plan).await;
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(1).await;
    let log = check_log(&client, &session).await;
    let output = log.iter().find_map(|event| match &event.body {
        EventBody::ToolFinished(done) => Some(done.outcome.llm_text.clone()),
        _ => None,
    });
    let output = output.unwrap();
    assert!(
        output.contains("PATH is /"),
        "positive control: the environment was printed: {output}"
    );
    assert!(!output.contains("AGENTD_TEST_KEY"), "{output}");
    // Only then are all logs and traces written.
    daemon.terminate();
    daemon.ended().await;
    assert!(!daemon.said().contains(CANARY), "stderr");
    let mut found = Vec::new();
    files_with(&daemon.data_dir(), CANARY.as_bytes(), &mut found);
    assert_eq!(
        found,
        Vec::<String>::new(),
        "files of the daemon that hold the key"
    );
    let mut control = Vec::new();
    files_with(&daemon.data_dir(), session.as_bytes(), &mut control);
    assert!(!control.is_empty(), "positive control: the files were searched");
}
