//! An agent that keeps a to-do list and asks a person.

use crate::ASKING;
use crate::played::{daemon, model, results, session};
use agentd_protocol::{ApprovalListParams, DecideParams, Decision, EndReason, EventBody, ToolStatus};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Follower, check_log};
use serde_json::json;

async fn asks() -> FaultServer {
    model(|_, step| match step {
        0 => Say::call(
            "TodoWrite",
            json!({ "todos": [
                { "content": "ask for the colour", "status": "in_progress" },
                { "content": "paint it", "status": "pending" }
            ] }),
        ),
        1 => Say::call(
            "AskUser",
            json!({ "question": "Which colour?", "choices": ["red", "blue"] }),
        ),
        _ => Say::text("Thank you."),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_shown_and_a_question_is_answered_by_another_client() {
    let server = asks().await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "paint").await;
    let mut follower = Follower::attach(&client, &session).await;
    let asked = follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    assert!(matches!(&asked.body, EventBody::ApprovalAsked(ask) if ask.title.contains("Which colour?")));
    let shown = daemon.agentctl(&["show", &session]).await.stdout;
    assert!(
        shown.contains("[>] ask for the colour") && shown.contains("[ ] paint it"),
        "{shown}"
    );
    let waits = daemon.agentctl(&["ps", "-o", "json"]).await.stdout;
    assert!(waits.contains("waiting(question)"), "{waits}");
    let answered = daemon.agentctl(&["answer", &session, "green"]).await;
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    let results = results(&log);
    assert_eq!(results[1].0, ToolStatus::Ok);
    assert!(results[1].1.contains("green"), "{results:?}");
    // It is answered once.
    let open = client.approvals(&ApprovalListParams::default()).await.unwrap();
    assert!(open.is_empty());
    let EventBody::ApprovalAsked(ask) = asked.body else {
        unreachable!("the test waited for it");
    };
    let again = DecideParams {
        approval: ask.approval.to_string(),
        decision: Some(Decision::Answer),
        answer: Some("red".to_owned()),
        policy: true,
        ..DecideParams::default()
    };
    assert!(client.decide(&again).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_question_that_nobody_answers_expires_and_the_turn_goes_on() {
    let server = asks().await;
    let daemon = daemon(&server, &format!("{ASKING}[permission]\nask_timeout = \"1s\"\n")).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "paint").await;
    let mut follower = Follower::attach(&client, &session).await;
    let decided = follower
        .until("its end", |body| matches!(body, EventBody::ApprovalDecided(_)))
        .await;
    assert!(
        matches!(&decided.body, EventBody::ApprovalDecided(decided) if decided.decision == Decision::Expired)
    );
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let results = results(&check_log(&client, &session).await);
    assert_ne!(results[1].0, ToolStatus::Ok, "{results:?}");
}
