//! What `always` covers: a project and the content of the files that a command runs, unless a person chose more.
//! `docs/security/approvals.md` has the table.

use super::{asked, bash, daemon, results, session};
use crate::played;
use agentd_client::Client;
use agentd_protocol::{
    ApprovalAsked, CreateParams, DecideParams, Decision, EventBody, ForkParams, PermissionMode, ResumeParams,
    Scope, SendParams, ToolStatus, WorkspaceChoice, WorkspaceRequest,
};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, found, git};
use std::path::Path;

/// A model that runs the script once per turn.
async fn runs_a_script() -> FaultServer {
    played::model(|_, step| match step % 2 {
        0 => bash("sh build.sh"),
        _ => Say::text("It is done."),
    })
    .await
}

fn script(place: &str, mark: &str) {
    std::fs::write(Path::new(place).join("build.sh"), format!("echo x >{mark}\n")).unwrap();
}

fn ran(place: &str, mark: &str) -> bool {
    Path::new(place).join(mark).exists()
}

/// Waits for the n-th question of a session, and answers it.
async fn answer(
    client: &Client,
    session: &str,
    nth: usize,
    decision: Decision,
    scope: Scope,
) -> ApprovalAsked {
    let mut follower = Follower::attach(client, session).await;
    asked(&mut follower, nth).await;
    let mut questions = follower.events.iter().filter_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.clone()),
        _ => None,
    });
    let question = questions.nth(nth - 1).unwrap();
    let params = DecideParams {
        approval: session.to_owned(),
        decision: Some(decision),
        scope,
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&params).await.unwrap();
    question
}

/// Waits until this many rules are in force: an answer is given before its rule is durable.
async fn rules(client: &Client, count: usize) {
    found("the rule", async || {
        (client.rules().await.unwrap().len() == count).then_some(())
    })
    .await;
}

async fn questions(client: &Client, session: &str) -> usize {
    let log = check_log(client, session).await;
    let question = |body: &EventBody| matches!(body, EventBody::ApprovalAsked(_));
    log.iter().filter(|event| question(&event.body)).count()
}

/// The session runs the script unasked.
async fn runs_unasked(client: &Client, session: &str, why: &str) {
    let results = results(client, session).await;
    assert!(
        matches!(results.last(), Some((ToolStatus::Ok, _))),
        "{why}: {results:?}"
    );
    assert_eq!(questions(client, session).await, 0, "{why}");
}

/// The session asks; the question is denied.
async fn asks(client: &Client, session: &str, nth: usize) -> ApprovalAsked {
    let question = answer(client, session, nth, Decision::Deny, Scope::Once).await;
    let mut follower = Follower::attach(client, session).await;
    follower.turn_finished(nth).await;
    question
}

async fn in_directory(daemon: &Daemon, client: &Client, dir: &str) -> String {
    session(daemon, client, dir, PermissionMode::Default).await
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_60_i7_always_holds_for_one_directory_and_one_content() {
    let server = runs_a_script().await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let (a, b, c) = (daemon.workdir("a"), daemon.workdir("b"), daemon.workdir("c"));
    script(&a, "first");
    script(&b, "other");
    script(&c, "wide");
    let one = in_directory(&daemon, &client, "a").await;
    answer(&client, &one, 1, Decision::Allow, Scope::Always).await;
    results(&client, &one).await;
    assert!(ran(&a, "first"));
    rules(&client, 1).await;
    let same = in_directory(&daemon, &client, "a").await;
    runs_unasked(&client, &same, "positive control").await;
    let other = in_directory(&daemon, &client, "b").await;
    let question = asks(&client, &other, 1).await;
    assert_eq!(
        question.about.rule.as_deref(),
        Some("mode:default"),
        "{question:?}"
    );
    assert!(!ran(&b, "other"), "another directory");
    script(&a, "replaced");
    let replaced = in_directory(&daemon, &client, "a").await;
    let question = asks(&client, &replaced, 1).await;
    let reason = question.about.reason.unwrap();
    assert_eq!(reason, "build.sh has changed since it was allowed");
    assert!(!ran(&a, "replaced"));
    std::fs::rename(format!("{a}/build.sh"), format!("{a}/else.sh")).unwrap();
    std::os::unix::fs::symlink("else.sh", format!("{a}/build.sh")).unwrap();
    let linked = in_directory(&daemon, &client, "a").await;
    asks(&client, &linked, 1).await;
    assert!(!ran(&a, "replaced"), "a link replaced the script");
    // Positive control: the wide choice is what `always` once was, and the attack works.
    let wide = in_directory(&daemon, &client, "b").await;
    answer(&client, &wide, 1, Decision::Allow, Scope::Everywhere).await;
    results(&client, &wide).await;
    rules(&client, 2).await;
    let elsewhere = in_directory(&daemon, &client, "c").await;
    runs_unasked(&client, &elsewhere, "everywhere").await;
    assert!(ran(&c, "wide"));
    let kept = client.rules().await.unwrap();
    let places: Vec<Option<&str>> = kept
        .iter()
        .map(|row| row.reach.as_ref().map(|reach| reach.place.as_str()))
        .collect();
    assert_eq!(places, [Some(a.as_str()), None], "{kept:?}");
}

fn repository(dir: &str) {
    script(dir, "made");
    let dir = Path::new(dir);
    git(dir, &["init", "-q"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "one"]);
}

async fn in_clone(client: &Client, source: &str) -> String {
    let params = CreateParams {
        prompt: Some(vec![agentd_protocol::Block::text("Build it.")]),
        workdir: source.to_owned(),
        mode: Some(PermissionMode::Default),
        workspace: Some(WorkspaceRequest {
            kind: Some(WorkspaceChoice::Clone),
            ..WorkspaceRequest::default()
        }),
        ..CreateParams::default()
    };
    client.create(&params).await.unwrap().session.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_60_i7_always_in_a_clone_holds_for_clones_of_the_same_project_only() {
    let server = runs_a_script().await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let (project, other) = (daemon.workdir("x/project"), daemon.workdir("y/project"));
    repository(&project);
    repository(&other);
    let one = in_clone(&client, &project).await;
    let question = answer(&client, &one, 1, Decision::Allow, Scope::Always).await;
    assert_eq!(question.about.reach.unwrap().place, project);
    results(&client, &one).await;
    rules(&client, 1).await;
    let next = in_clone(&client, &project).await;
    runs_unasked(&client, &next, "positive control: the next clone").await;
    let foreign = in_clone(&client, &other).await;
    asks(&client, &foreign, 1).await;
    script(&project, "changed");
    let shared = in_directory(&daemon, &client, "x/project").await;
    asks(&client, &shared, 1).await;
    assert!(!ran(&project, "changed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_60_i7_a_grant_for_the_session_stays_where_it_was_given() {
    let server = runs_a_script().await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let (a, b) = (daemon.workdir("a"), daemon.workdir("b"));
    script(&a, "first");
    script(&b, "other");
    let agent = in_directory(&daemon, &client, "a").await;
    answer(&client, &agent, 1, Decision::Allow, Scope::Session).await;
    Follower::attach(&client, &agent).await.turn_finished(1).await;
    let again = || SendParams {
        session: agent.clone(),
        content: vec![agentd_protocol::Block::text("Again.")],
        ..SendParams::default()
    };
    client.send(&again()).await.unwrap();
    Follower::attach(&client, &agent).await.turn_finished(2).await;
    assert_eq!(questions(&client, &agent).await, 1, "positive control");
    let fork = ForkParams {
        session: agent.clone(),
        ..ForkParams::default()
    };
    let fork = client.fork(&fork).await.unwrap().session.to_string();
    script(&a, "forked");
    let more = SendParams {
        session: fork.clone(),
        ..again()
    };
    client.send(&more).await.unwrap();
    answer(&client, &fork, 2, Decision::Deny, Scope::Once).await;
    Follower::attach(&client, &fork).await.turn_finished(3).await;
    assert!(!ran(&a, "forked"), "a fork, with a replaced script");
    let moved = ResumeParams {
        session: agent.clone(),
        workdir: Some(b.clone()),
        ..ResumeParams::default()
    };
    client.resume(&moved).await.unwrap();
    client.send(&again()).await.unwrap();
    answer(&client, &agent, 2, Decision::Deny, Scope::Once).await;
    Follower::attach(&client, &agent).await.turn_finished(3).await;
    assert!(!ran(&b, "other"), "resumed in another directory");
}
