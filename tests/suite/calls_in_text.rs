//! Tool calls that a server left in the text, and calls with odd names, through the whole daemon.

use agentd_protocol::{EndReason, EventBody};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Asked, FaultServer, Say, Speech};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log};
use serde_json::json;

/// Whether the call in the first answer of a model runs.
async fn runs(model: &str, dialect: Dialect, first: Say) -> bool {
    let speech = Speech(dialect);
    let server = FaultServer::start(move |asked: &Asked| match asked.number {
        0 => speech.answer(&first),
        _ => speech.answer(&Say::text("It is done.")),
    })
    .await;
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: format!("[model]\ndefault = \"{model}\"\n[permission]\nmode = \"yolo\"\n"),
        ..DaemonOptions::default()
    })
    .await;
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "Do it.").await;
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    log.iter()
        .any(|event| matches!(event.body, EventBody::ToolStarted(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_the_text_of_an_answer_run() {
    let call = r#"{"name": "Bash", "arguments": {"command": "true", "description": "nothing"}}"#;
    for text in [
        format!("<tool_call>\n{call}\n</tool_call>"),
        format!("I run it.\n<tool_call>{call}</tool_call>"),
        format!("[TOOL_CALLS][{call}]"),
        "<function=Bash><parameter=command>true</parameter><parameter=description>nothing</parameter></function>".to_owned(),
        format!("```json\n{call}\n```"),
    ] {
        let ran = runs("gpt-test", Dialect::OpenaiChat, Say::text(&text)).await;
        assert!(ran, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_only_quoted_does_not_run() {
    let text = r#"A call looks like `<tool_call>{"name": "Bash", "arguments": {"command": "true"}}</tool_call>` and runs a command."#;
    let ran = runs("gpt-test", Dialect::OpenaiChat, Say::text(text)).await;
    assert!(!ran);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_with_decorated_names_run() {
    let input = json!({ "command": "true", "description": "nothing" });
    for name in [
        "functions.Bash",
        "Bash<|channel|>commentary",
        "default_api:Bash",
        "tools/Bash",
    ] {
        let ran = runs("gpt-test", Dialect::OpenaiChat, Say::call(name, input.clone())).await;
        assert!(ran, "{name}");
    }
    let ran = runs("claude", Dialect::Anthropic, Say::call("functions.Bash", input)).await;
    assert!(ran);
}
