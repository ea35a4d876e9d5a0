//! The approved object changes before the call runs.

use super::{approve, asked, bash, daemon, model, results, session};
use agentd_client::Client;
use agentd_protocol::{EventBody, PermissionMode, ToolStatus};
use agentd_tests::{Daemon, Follower, check_log};

/// A session whose model runs `sh x.sh` twice; the script leaves a mark.
async fn wants_a_script(daemon: &Daemon, client: &Client, dir: &str) -> (String, String) {
    let place = daemon.workdir(dir);
    std::fs::write(format!("{place}/x.sh"), "echo x >good\n").unwrap();
    let agent = session(daemon, client, dir, PermissionMode::Default).await;
    (agent, place)
}

fn exists(place: &str, name: &str) -> bool {
    std::path::Path::new(place).join(name).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_45_i7_a_script_that_is_changed_after_the_approval_is_not_run_but_asked_about_again() {
    let server = model(vec![bash("sh x.sh"), bash("sh x.sh")]).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let (agent, place) = wants_a_script(&daemon, &client, "changed").await;
    let mut follower = Follower::attach(&client, &agent).await;
    asked(&mut follower, 1).await;
    std::fs::write(format!("{place}/x.sh"), "echo x >bad\n").unwrap();
    approve(&client, &agent).await.unwrap();
    let refused = follower
        .until("its result", |body| matches!(body, EventBody::ToolFinished(_)))
        .await;
    let EventBody::ToolFinished(refused) = refused.body else {
        unreachable!("the test waited for it");
    };
    assert_eq!(refused.outcome.status, ToolStatus::Denied);
    assert!(
        refused.outcome.llm_text.contains("the file x.sh"),
        "{}",
        refused.outcome.llm_text
    );
    assert!(!exists(&place, "bad") && !exists(&place, "good"), "nothing ran");
    // Positive control: approved again and not changed this time, it runs.
    asked(&mut follower, 2).await;
    approve(&client, &agent).await.unwrap();
    let last = results(&client, &agent).await;
    assert!(matches!(last.last(), Some((ToolStatus::Ok, _))), "{last:?}");
    assert!(exists(&place, "bad"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_45_i7_an_approval_stays_bound_over_a_crash_of_the_daemon() {
    let server = model(vec![bash("sh x.sh"), bash("sh x.sh")]).await;
    let mut daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let (agent, place) = wants_a_script(&daemon, &client, "crash").await;
    asked(&mut Follower::attach(&client, &agent).await, 1).await;
    drop(client);
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    std::fs::write(format!("{place}/x.sh"), "echo x >bad\n").unwrap();
    let client = daemon.client().await;
    let mut follower = Follower::attach(&client, &agent).await;
    asked(&mut follower, 1).await;
    approve(&client, &agent).await.unwrap();
    asked(&mut follower, 2).await;
    assert!(
        !exists(&place, "bad"),
        "what was asked before the crash is what is compared"
    );
    approve(&client, &agent).await.unwrap();
    let last = results(&client, &agent).await;
    assert!(
        matches!(last.last(), Some((ToolStatus::Ok, _))),
        "positive control: {last:?}"
    );
    assert!(exists(&place, "bad"));
    check_log(&client, &agent).await;
}
