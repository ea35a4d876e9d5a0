//! Text that people type at a question, after `deny`, and for many questions at once.

use crate::ASKING;
use crate::played::{daemon, model, session};
use crate::terminals::{Terminals, agentctl};
use agentd_client::Client;
use agentd_protocol::{ApprovalListParams, CreateParams, Decision, EventBody, OpenApproval, PermissionMode};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, skipped};
use serde_json::json;
use std::path::Path;

/// A model that runs these commands, one per step.
async fn commands(all: &'static [&'static str]) -> FaultServer {
    model(|_, step| match all.get(step) {
        Some(command) => Say::call("Bash", json!({ "command": command })),
        None => Say::text("All done."),
    })
    .await
}

async fn open(client: &Client) -> Vec<OpenApproval> {
    client.approvals(&ApprovalListParams::default()).await.unwrap()
}

/// Waits until the session has asked this many times.
async fn asked(follower: &mut Follower, count: usize) {
    nth(follower, count - 1, |body| {
        matches!(body, EventBody::ApprovalAsked(_)).then_some(())
    })
    .await;
}

/// The text of the event after this many others of its kind.
async fn nth<T>(follower: &mut Follower, before: usize, of: impl Fn(&EventBody) -> Option<T>) -> T {
    loop {
        if let Some(found) = follower
            .events
            .iter()
            .filter_map(|event| of(&event.body))
            .nth(before)
        {
            return found;
        }
        assert!(follower.next().await.is_some(), "the subscription ended");
    }
}

async fn ctl(daemon: &Daemon, args: &[&str], code: i32) -> (String, String) {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    (done.stdout, done.stderr)
}

fn made(daemon: &Daemon, name: &str) -> bool {
    Path::new(&daemon.workdir("project")).join(name).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_what_was_typed_for_one_question_answers_no_other_one() {
    const NAME: &str = "i7_what_was_typed_for_one_question_answers_no_other_one";
    let server = commands(&["touch A", "touch B", "touch C"]).await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let Some(terminals) = Terminals::start("typed") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    let project = daemon.workdir("project");
    let run = agentctl(&daemon, &format!("run --no-tui -C {project} --name typed go"));
    terminals.open("run", &run);
    terminals.shows("run", "touch A").await;
    let first = open(&client).await.remove(0).approval.short();
    terminals.shows("run", &format!("approval {first}: ")).await;
    terminals.open("attach", &agentctl(&daemon, "attach --no-tui typed"));
    terminals.shows("attach", "n [reason] deny:").await;
    // Two people begin an answer; a third one answers first.
    terminals.keys("run", &["y", "e"]);
    terminals.keys("attach", &["y"]);
    terminals.shows("run", "deny: ye").await;
    terminals.shows("attach", "deny:\ny").await;
    ctl(&daemon, &["approve", &first], 0).await;
    for (window, typed) in [("run", "ye"), ("attach", "y")] {
        terminals.shows(window, "decided elsewhere: allowed by ").await;
        terminals
            .shows(window, &format!("discarded your unfinished input: {typed}"))
            .await;
        terminals.shows(window, "touch B").await;
        terminals.keys(window, &["Enter"]);
    }
    // The Enter that was under way has answered nothing; a new answer applies to the new question.
    terminals.keys("attach", &["n", "Space", "n", "o", "t", "Space", "B", "Enter"]);
    terminals.shows("run", "touch C").await;
    assert!(made(&daemon, "A") && !made(&daemon, "B"));
    // A line that is edited is one line.
    terminals.keys("run", &["n", "BSpace", "y", "Enter"]);
    terminals.shows("run", "All done.").await;
    terminals.shows("run", "exit=0").await;
    assert!(made(&daemon, "C"));
    // The terminal reads lines again.
    terminals.keys("run", &["back", "Enter"]);
    terminals.shows("run", "back\nback").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_message_that_is_being_typed_does_not_become_an_answer() {
    const NAME: &str = "i7_a_message_that_is_being_typed_does_not_become_an_answer";
    let server = model(|body, step| match step {
        0 => Say::text("Ready."),
        _ if body.contains("the blue house") => Say::text("I paint the house."),
        _ => Say::call("AskUser", json!({ "question": "Which colour?" })),
    })
    .await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let Some(terminals) = Terminals::start("message") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    let session = session(&daemon, &client, "hello").await;
    terminals.open(
        "attach",
        &agentctl(&daemon, &format!("attach --no-tui {session}")),
    );
    terminals.shows("attach", "Ready.").await;
    terminals.keys("attach", &["the blue "]);
    terminals.shows("attach", "the blue").await;
    ctl(&daemon, &["send", &session, "paint"], 0).await;
    terminals.shows("attach", "Which colour?").await;
    terminals.shows("attach", "you are still typing a message").await;
    terminals.keys("attach", &["house", "Enter"]);
    terminals.shows("attach", "> the blue house").await;
    assert_eq!(open(&client).await.len(), 1, "the question is open still");
    terminals.keys("attach", &["green", "Enter"]);
    terminals.shows("attach", "I paint the house.").await;
    assert!(open(&client).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_subagents_question_that_another_one_answers_is_named_and_takes_no_typed_answer() {
    const NAME: &str = "i7_a_subagents_question_that_another_one_answers";
    let server = model(|body, step| match (step, !body.contains("the root's task")) {
        (0, true) => Say::call("Bash", json!({ "command": "touch BELOW" })),
        (0, false) => Say::call("Task", json!({ "description": "part", "prompt": "make it" })),
        (1, false) => Say::call("Bash", json!({ "command": "touch ABOVE" })),
        _ => Say::text("All done."),
    })
    .await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let Some(terminals) = Terminals::start("below") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    let session = session(&daemon, &client, "the root's task").await;
    terminals.open(
        "attach",
        &agentctl(&daemon, &format!("attach --no-tui {session}")),
    );
    terminals.shows("attach", "touch BELOW").await;
    terminals.keys("attach", &["y"]);
    terminals.shows("attach", "deny:\ny").await;
    let below = open(&client).await.remove(0);
    assert_ne!(below.session.to_string(), session);
    ctl(&daemon, &["deny", &below.approval.short(), "not below"], 0).await;
    terminals.shows("attach", "decided elsewhere: denied by ").await;
    terminals
        .shows("attach", "discarded your unfinished input: y")
        .await;
    terminals.shows("attach", "touch ABOVE").await;
    terminals.keys("attach", &["Enter", "n", "Enter"]);
    terminals.shows("attach", "All done.").await;
    assert!(!made(&daemon, "BELOW") && !made(&daemon, "ABOVE"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_whole_before_it_is_approved() {
    let steps: Vec<String> = (1..=60).map(|n| format!("{n}. step number {n}")).collect();
    let plan = format!("# How\n{}\n\u{1b}]0;evil\u{7}the end", steps.join("\n"));
    let server = model(move |_, step| match step {
        0 => Say::call("ExitPlanMode", json!({ "plan": plan })),
        _ => Say::text("All done."),
    })
    .await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let params = CreateParams {
        prompt: Some(vec![agentd_protocol::Block::text("plan it")]),
        workdir: daemon.workdir("project"),
        mode: Some(PermissionMode::Plan),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    asked(&mut follower, 1).await;
    let (rows, how) = ctl(&daemon, &["approvals"], 0).await;
    assert!(
        rows.contains("plan") && how.contains("read one in full: agentctl approvals APPROVAL"),
        "{rows}{how}"
    );
    for args in [["show", &session], ["logs", &session]] {
        let (shown, _) = ctl(&daemon, &args, 0).await;
        for wanted in ["# How", "41. step number 41", "60. step number 60", "the end"] {
            assert!(shown.contains(wanted), "{args:?}: {wanted}: {shown}");
        }
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    if let Some(terminals) = Terminals::start("plan") {
        terminals.open(
            "attach",
            &agentctl(&daemon, &format!("attach --no-tui -n 1 {session}")),
        );
        terminals.shows("attach", "page 1 of 2").await;
        terminals.keys("attach", &["Enter"]);
        terminals.shows("attach", "60. step number 60").await;
        terminals.shows("attach", "y allow").await;
        terminals.keys("attach", &["y", "Enter"]);
        terminals.shows("attach", "All done.").await;
    } else {
        skipped(
            "a_plan_is_shown_whole_before_it_is_approved",
            "tmux is not installed",
        );
        ctl(&daemon, &["approve", &session], 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deny_takes_its_reason_as_it_is_typed() {
    let server = commands(&["touch A", "touch B", "touch C"]).await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "go").await;
    let mut follower = Follower::attach(&client, &session).await;
    for (before, words) in [
        &["use the staging area"][..],
        &["use", "mktemp"],
        &["--reason", "no more"],
    ]
    .into_iter()
    .enumerate()
    {
        asked(&mut follower, before + 1).await;
        ctl(&daemon, &[&["deny", session.as_str()], words].concat(), 0).await;
        let decided = nth(&mut follower, before, |body| match body {
            EventBody::ApprovalDecided(decided) => Some(decided.clone()),
            _ => None,
        })
        .await;
        let message = decided.message.unwrap_or_default();
        assert_eq!(decided.decision, Decision::Deny);
        assert!(
            !message.is_empty() && words.join(" ").ends_with(&message),
            "{message}"
        );
    }
    follower.turn_finished(1).await;
    // A word that looks like an id counts as a mistyped id, not as a reason.
    let (_, said) = ctl(&daemon, &["deny", &session, "4f2a99"], 5).await;
    assert!(said.contains("4f2a99"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn approve_all_leaves_questions_open_and_says_how_to_answer_them() {
    let server = model(|body, step| match step {
        0 if body.contains("paint it") => Say::call("AskUser", json!({ "question": "Which colour?" })),
        0 => Say::call("Bash", json!({ "command": "touch A" })),
        _ => Say::text("All done."),
    })
    .await;
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let mut followers = Vec::new();
    for words in ["go", "paint it"] {
        let session = session(&daemon, &client, words).await;
        let mut follower = Follower::attach(&client, &session).await;
        asked(&mut follower, 1).await;
        followers.push(follower);
    }
    let (_, said) = ctl(&daemon, &["approve", "--all", "--yes"], 0).await;
    let left = open(&client).await.remove(0).approval.short();
    assert!(said.contains(&format!("agentctl answer {left} TEXT")), "{said}");
    ctl(&daemon, &["answer", &left, "blue"], 0).await;
    for follower in &mut followers {
        follower.turn_finished(1).await;
    }
    assert!(made(&daemon, "A"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_sent_as_text_and_a_name_that_is_taken_are_said() {
    let server = model(|_, _| Say::text("All done.")).await;
    let daemon = daemon(&server, ASKING).await;
    let project = daemon.workdir("project");
    ctl(
        &daemon,
        &["run", "-d", "-C", &project, "--name", "one", "hello"],
        0,
    )
    .await;
    ctl(&daemon, &["wait", "one"], 0).await;
    let (_, said) = ctl(&daemon, &["send", "one", "/compact now"], 0).await;
    assert!(
        said.contains("/compact is sent as text; use --commands"),
        "{said}"
    );
    let (help, said) = ctl(&daemon, &["send", "one", "--commands", "/help"], 0).await;
    assert!(!said.contains("sent as text"), "{said}");
    // The program knows each command of the daemon.
    for line in help.lines().filter(|line| line.starts_with('/')) {
        let word = line.split(' ').next().unwrap();
        let (_, said) = ctl(&daemon, &["send", "one", word], 0).await;
        assert!(
            said.contains(&format!("{word} is sent as text")),
            "{word}: {said}"
        );
    }
    let again = ["run", "-d", "-C", &project, "--name", "one", "hello"];
    let (_, said) = ctl(&daemon, &again, 5).await;
    assert!(said.contains("agentctl close "), "{said}");
    ctl(&daemon, &["close", "-f", "one"], 0).await;
    ctl(&daemon, &again, 0).await;
    // Two sessions have the name now, and neither is chosen.
    let (_, said) = ctl(&daemon, &["show", "one"], 5).await;
    assert!(said.contains("matches several sessions"), "{said}");
    ctl(&daemon, &again, 5).await;
}
