//! The fleet on the whole screen, in real terminals.

use crate::stage::Stage;
use crate::terminals::{Terminals, agentctl};
use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{RunState, WaitReason};
use agentd_tests::{eventually, skipped};
use serde_json::Value;

const NO_TMUX: &str = "tmux is not installed";

/// The state of a session.
async fn state(stage: &Stage, name: &str) -> RunState {
    stage
        .daemon()
        .client()
        .await
        .get(name)
        .await
        .unwrap()
        .status
        .state
}

/// Waits for the state of a session.
async fn becomes(stage: &Stage, name: &str, wanted: RunState) {
    agentd_tests::found(&format!("{name} is {wanted}"), async || {
        (state(stage, name).await == wanted).then_some(())
    })
    .await;
}

/// The names in the order of the rows.
fn order(screen: &str, names: &[&str]) -> Vec<String> {
    let rows = screen.lines().filter_map(|line| {
        let name = names.iter().find(|name| line.contains(*name))?;
        Some((*name).to_owned())
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_is_printed_for_people_and_for_programs() {
    let Some(stage) = Stage::set("f-once") else {
        return skipped("a_frame_is_printed_for_people_and_for_programs", NO_TMUX);
    };
    stage
        .begun("once1", &["-l", "t=once"], "text=Ready_to_start")
        .await;
    stage
        .begun("once2", &["-l", "t=once"], "steps=1 command=echo_hello")
        .await;
    becomes(&stage, "once1", RunState::Idle).await;
    becomes(&stage, "once2", RunState::Waiting(WaitReason::Approval)).await;
    stage.open("once", "", "top --once -l t=once");
    stage.shows("once", "exit=0").await;
    let screen = stage.terminals.screen("once");
    for wanted in [
        "STATE",
        "once1",
        "once2",
        "waiting(approval)",
        "steps/s",
        "waits for input",
    ] {
        assert!(screen.contains(wanted), "{wanted}: {screen}");
    }
    // Who needs a person is first. On a pipe it is the same frame, and with -o json it is data.
    assert_eq!(order(&screen, &["once1", "once2"]), ["once2", "once1"]);
    let piped = stage.daemon().agentctl(&["top", "--once", "-l", "t=once"]).await;
    assert!(
        piped.stdout.contains("once2") && !piped.stdout.contains('\u{1b}'),
        "{}",
        piped.stdout
    );
    let json = stage
        .daemon()
        .agentctl(&["top", "-o", "json", "-l", "t=once"])
        .await;
    let fleet: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(fleet["sessions"].as_array().unwrap().len(), 2, "{fleet}");
    assert_eq!(
        (&fleet["open_approvals"], &fleet["sessions"][0]["name"]),
        (&1.into(), &"once2".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_filtered_and_sorted() {
    let Some(stage) = Stage::set("f-sort") else {
        return skipped("rows_are_filtered_and_sorted", NO_TMUX);
    };
    for (name, steps) in [("sortb", 1), ("sorta", 3), ("sortc", 2)] {
        let plan = format!("steps={steps} command=true");
        stage
            .begun(name, &["-l", "t=sort", "--mode", "yolo"], &plan)
            .await;
        becomes(&stage, name, RunState::Idle).await;
    }
    let names = ["sorta", "sortb", "sortc"];
    stage.open("top", "", "top -l t=sort");
    stage.shows("top", "sortc").await;
    stage.keys("top", &["/"]);
    stage.keys("top", &["SORTB"]);
    stage.hides("top", "sorta").await;
    stage.keys("top", &["Enter"]);
    stage.shows("top", "filter: SORTB").await;
    stage.keys("top", &["/", "Escape"]);
    for name in names {
        stage.shows("top", name).await;
    }
    // From state on: steps, with the most first, then with the fewest.
    stage.keys("top", &["s"]);
    stage.shows("top", "by steps, descending").await;
    eventually("the most steps first", || {
        order(&stage.terminals.screen("top"), &names) == ["sorta", "sortc", "sortb"]
    })
    .await;
    stage.keys("top", &["S"]);
    eventually("the fewest steps first", || {
        order(&stage.terminals.screen("top"), &names) == ["sortb", "sortc", "sorta"]
    })
    .await;
    stage.keys("top", &["q"]);
    stage.shows("top", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_sessions_are_cancelled_together_after_a_question() {
    let Some(stage) = Stage::set("f-marks") else {
        return skipped("marked_sessions_are_cancelled_together_after_a_question", NO_TMUX);
    };
    for name in ["mark1", "mark2", "mark3"] {
        stage.begun(name, &["-l", "t=mark"], "hang=0").await;
        becomes(&stage, name, RunState::RunningModel).await;
    }
    stage.open("top", "", "top -l t=mark");
    stage.shows("top", "mark3").await;
    stage.keys("top", &[" ", " "]);
    stage.shows("top", "2 marked sessions").await;
    stage.keys("top", &["x"]);
    stage
        .shows("top", "cancel the turn of 2 marked sessions? y cancels it")
        .await;
    stage.keys("top", &["n"]);
    stage.hides("top", "y cancels it").await;
    stage.keys("top", &["x"]);
    stage.shows("top", "y cancels it").await;
    stage.keys("top", &["y"]);
    stage.shows("top", "2 cancelled").await;
    let mut running = 0;
    for name in ["mark1", "mark2", "mark3"] {
        running += usize::from(state(&stage, name).await == RunState::RunningModel);
    }
    assert_eq!(running, 1, "the one without a mark");
    stage.keys("top", &["u"]);
    stage.hides("top", "marked sessions").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_paused_and_resumed() {
    let Some(stage) = Stage::set("f-pause") else {
        return skipped("a_session_is_paused_and_resumed", NO_TMUX);
    };
    stage
        .begun("pause", &["-l", "t=pause"], "text=Ready_to_start")
        .await;
    becomes(&stage, "pause", RunState::Idle).await;
    stage.open("top", "", "top -l t=pause");
    stage.shows("top", "waits for input").await;
    stage.keys("top", &["p"]);
    stage.shows("top", "1 paused").await;
    becomes(&stage, "pause", RunState::Paused).await;
    eventually("the row is paused", || {
        stage
            .terminals
            .screen("top")
            .lines()
            .any(|line| line.contains("▸ paused"))
    })
    .await;
    stage.keys("top", &["p"]);
    stage.shows("top", "1 resumed").await;
    becomes(&stage, "pause", RunState::Idle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_shows_its_question_its_diff_and_its_log() {
    let Some(stage) = Stage::set("f-row") else {
        return skipped("a_row_shows_its_question_its_diff_and_its_log", NO_TMUX);
    };
    stage.begun("row", &["-l", "t=row"], "steps=1 tool=write").await;
    stage.open("top", "AGENTD_PAGER=cat", "top -l t=row");
    stage.shows("top", "waiting(approval)").await;
    // The question in the panel; a key for something else answers nothing.
    stage.keys("top", &["a"]);
    stage.shows("top", "your decision").await;
    stage.shows("top", "y allow").await;
    stage.keys("top", &["Escape"]);
    stage.hides("top", "your decision").await;
    assert_eq!(state(&stage, "row").await.to_string(), "waiting(approval)");
    stage.keys("top", &["a"]);
    stage.shows("top", "y allow").await;
    stage.keys("top", &["y"]);
    stage.shows("top", "answered").await;
    becomes(&stage, "row", RunState::Idle).await;
    stage.shows("top", "waits for input").await;
    // The main screen still shows what the earlier program wrote.
    let ended = async |before: &str| {
        let mut screen = String::new();
        eventually("the next program has ended", || {
            screen = stage.terminals.screen("top");
            let last = screen.lines().rfind(|line| !line.trim().is_empty());
            screen != before && last.is_some_and(|line| line.contains("Enter returns"))
        })
        .await;
        screen
    };
    stage.keys("top", &["d"]);
    stage.shows("top", "+a line").await;
    let first = ended("").await;
    stage.keys("top", &["Enter"]);
    stage.shows("top", "waits for input").await;
    stage.keys("top", &["L"]);
    stage.shows("top", "All done.").await;
    let second = ended(&first).await;
    stage.keys("top", &["Enter"]);
    stage.shows("top", "? help · q quit").await;
    stage.keys("top", &[":"]);
    stage.shows("top", ":agentctl ▏").await;
    stage.keys("top", &["ps --state idle -q", "Enter"]);
    ended(&second).await;
    stage.keys("top", &["Enter"]);
    stage.shows("top", "? help · q quit").await;
    stage.keys("top", &["?"]);
    stage.shows("top", "any key closes this").await;
    stage.keys("top", &["x", "q"]);
    stage.shows("top", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_opens_and_the_table_comes_back() {
    let Some(stage) = Stage::set("f-inbox") else {
        return skipped("the_inbox_opens_and_the_table_comes_back", NO_TMUX);
    };
    stage
        .begun("inbox", &["-l", "t=inbox"], "steps=1 command=echo_inbox")
        .await;
    stage.open("top", "", "top -l t=inbox");
    stage.shows("top", "waiting(approval)").await;
    stage.shows("top", "1 open approval (A)").await;
    stage.keys("top", &["A"]);
    stage.shows("top", "│ echo inbox").await;
    stage.hides("top", "steps/s").await;
    // Ctrl-C ends the inbox, not the table.
    stage.keys("top", &["C-c"]);
    stage.shows("top", "steps/s").await;
    stage.keys("top", &["q"]);
    stage.shows("top", "exit=0").await;
    // The table gets the keys that were typed before it was back.
    stage.open("again", "", "top -l t=inbox");
    stage.shows("again", "1 open approval (A)").await;
    stage.keys("again", &["A"]);
    stage.shows("again", "/quit quits").await;
    stage.keys("again", &["/quit", "Enter", "q"]);
    stage.shows("again", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_grouped_by_the_values_of_a_label() {
    let Some(stage) = Stage::set("f-label") else {
        return skipped("sessions_are_grouped_by_the_values_of_a_label", NO_TMUX);
    };
    for (name, team) in [
        ("label1", "team=infra"),
        ("label2", "team=infra"),
        ("label3", "team=web"),
    ] {
        stage
            .begun(name, &["-l", "group=yes", "-l", team], "text=Ready_to_start")
            .await;
        becomes(&stage, name, RunState::Idle).await;
    }
    stage
        .begun("label4", &["-l", "group=yes"], "text=Ready_to_start")
        .await;
    stage.open("top", "", "top -l group=yes");
    stage.shows("top", "label4").await;
    // One key after the other, in the order of the names: group, team.
    stage.keys("top", &["l"]);
    stage.shows("top", "by label group").await;
    stage.keys("top", &["l"]);
    stage.shows("top", "by label team").await;
    for row in ["(none)", "infra", "web"] {
        stage.shows("top", row).await;
    }
    let count = |value: &str| {
        let screen = stage.terminals.screen("top");
        let row = screen
            .lines()
            .find(|line| line.contains(value))
            .unwrap_or_default()
            .to_owned();
        row.split_whitespace()
            .skip_while(|word| *word != value)
            .nth(1)
            .map(str::to_owned)
    };
    eventually("each value has its number of sessions", || {
        [count("(none)"), count("infra"), count("web")]
            == [Some("1".to_owned()), Some("2".to_owned()), Some("1".to_owned())]
    })
    .await;
    stage.keys("top", &["j", "Enter"]);
    stage.shows("top", "only team=infra").await;
    stage.shows("top", "label1").await;
    stage.hides("top", "label3").await;
    stage.keys("top", &["Escape"]);
    stage.shows("top", "by label team").await;
    stage.keys("top", &["Escape"]);
    stage.shows("top", "label3").await;
    stage.keys("top", &["q"]);
    stage.shows("top", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agentctl_alone_shows_the_fleet_and_enter_goes_into_a_session_and_back() {
    const NAME: &str = "agentctl_alone_shows_the_fleet_and_enter_goes_into_a_session_and_back";
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    let run = daemon
        .agentctl(&["run", "-q", "--name", "alone", "plan:alone text=Ready_to_start;"])
        .await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let Some(terminals) = Terminals::start("f-alone") else {
        return skipped(NAME, NO_TMUX);
    };
    // Without an argument, and through a context.
    let config = daemon.dir.path().join(".config/agentctl");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!(
        "current = \"lab\"\n[contexts.lab]\nsocket = \"{}\"\n",
        daemon.socket().display()
    );
    std::fs::write(config.join("config.toml"), text).unwrap();
    let command = agentctl(&daemon, "").replace(&format!("--socket {}", daemon.socket().display()), "");
    terminals.open("top", &command);
    terminals.shows("top", "alone").await;
    terminals.keys("top", &["Enter"]);
    terminals.shows("top", "? shows the keys").await;
    terminals.keys("top", &["plan:more text=More_of_it;", "Enter"]);
    terminals.shows("top", "More of it").await;
    terminals.keys("top", &["C-c"]);
    terminals.shows("top", "steps/s").await;
    // The daemon goes and comes back.
    daemon.kill().await;
    terminals.shows("top", "trying again").await;
    let daemon = daemon.again();
    eventually("it is connected again", || {
        !terminals.screen("top").contains("trying again")
    })
    .await;
    terminals.shows("top", "alone").await;
    terminals.keys("top", &["Escape"]);
    terminals.shows("top", "exit=0").await;
    let command = agentctl(&daemon, "--context lab top --once")
        .replace(&format!("--socket {}", daemon.socket().display()), "");
    terminals.open("once", &command);
    terminals.shows("once", "alone").await;
    terminals.shows("once", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_obeys_no_sequence_of_a_session_and_fits_every_size() {
    let Some(stage) = Stage::set("f-hostile") else {
        return skipped(
            "the_table_obeys_no_sequence_of_a_session_and_fits_every_size",
            NO_TMUX,
        );
    };
    stage
        .begun(
            "hostile-row",
            &["-l", "t=hostile"],
            "steps=1 command=printf_\u{1b}]0;evil\u{7}\u{202e}",
        )
        .await;
    becomes(
        &stage,
        "hostile-row",
        RunState::Waiting(agentd_protocol::WaitReason::Approval),
    )
    .await;
    let recorded = stage.daemon().dir.path().join("recorded-top");
    stage.terminals.open("top", "cat");
    let pipe = format!("cat >'{}'", recorded.display());
    assert!(stage.terminals.tmux(&["pipe-pane", "-t", "t:top", &pipe]));
    let respawn = agentctl(stage.daemon(), "top -l t=hostile");
    assert!(
        stage
            .terminals
            .tmux(&["respawn-pane", "-k", "-t", "t:top", &respawn])
    );
    stage.shows("top", "hostile-row").await;
    stage.keys("top", &["a"]);
    stage.shows("top", "your decision").await;
    stage.keys("top", &["Escape"]);
    stage.hides("top", "your decision").await;
    for (width, height) in [("80", "24"), ("300", "100"), ("40", "8"), ("160", "50")] {
        assert!(
            stage
                .terminals
                .tmux(&["resize-window", "-t", "t:top", "-x", width, "-y", height])
        );
        stage.shows("top", "waiting(approval)").await;
    }
    stage.keys("top", &["q"]);
    stage.shows("top", "exit=0").await;
    let bytes = std::fs::read(&recorded).unwrap();
    assert!(bytes.len() > 1_000, "positive control: it was recorded");
    assert_eq!(crate::terminals::obeyed(&bytes), None);
    assert!(!String::from_utf8_lossy(&bytes).contains('\u{202e}'));
}
