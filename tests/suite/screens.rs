//! The output of `run` while it runs: on a pipe, where it is data, and on a terminal.

use crate::played::daemon;
use crate::terminals::{Terminals, agentctl};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, Acts, FaultServer, Say, Speech, http};
use agentd_tests::{eventually, skipped};
use tokio::sync::watch;

/// Settings with quick retries.
const QUICK: &str = "[model]\ndefault = \"claude\"\n[retry]\nbase_ms = 10\n";

/// The frames of an answer up to the end of its text, without the end of the answer.
fn beginning(words: &str) -> Acts {
    let speech = Speech(Dialect::Anthropic);
    let frames = speech.frames(&Say::text(words));
    let pieces = words.split_inclusive(' ').count();
    let mut acts = vec![speech.head()];
    acts.extend(frames.into_iter().take(2 + pieces).map(Act::Say));
    acts
}

/// A server whose first answer breaks after its text, once `go` says so, and whose second one is complete.
async fn breaks_once(go: &watch::Receiver<bool>) -> FaultServer {
    let go = go.clone();
    FaultServer::start(move |asked| {
        if asked.number > 0 {
            return Speech(Dialect::Anthropic).answer(&Say::text("The whole answer."));
        }
        let mut acts = beginning("A half that\nis thrown away soon");
        acts.extend([Act::Until(go.clone()), Act::Reset]);
        acts
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_leaves_nothing_on_a_pipe() {
    let server = breaks_once(&watch::channel(true).1).await;
    let daemon = daemon(&server, QUICK).await;
    let run = daemon.agentctl(&["run", "--name", "piped", "go"]).await;
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "The whole answer.\n"),
        "{}",
        run.stderr
    );
    // The log records the same, also for its followers.
    let followed = daemon.agentctl(&["logs", "piped"]).await.stdout;
    assert!(
        followed.contains("The whole answer.") && !followed.contains("A half"),
        "{followed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_erased_from_a_terminal() {
    const NAME: &str = "a_stream_that_breaks_is_erased_from_a_terminal";
    let (go, wait) = watch::channel(false);
    let server = breaks_once(&wait).await;
    let daemon = daemon(&server, QUICK).await;
    let Some(terminals) = Terminals::start("broken") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    terminals.open("run", &agentctl(&daemon, "run --no-tui go"));
    terminals.shows("run", "A half that\nis thrown away").await;
    go.send_replace(true);
    terminals.shows("run", "exit=0").await;
    let screen = terminals.screen("run");
    assert!(screen.contains("The whole answer."), "{screen}");
    assert!(
        !screen.contains("A half") && !screen.contains("thrown away"),
        "{screen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prose_breaks_between_words_on_a_terminal_and_stays_whole_on_a_pipe() {
    const NAME: &str = "prose_breaks_between_words_on_a_terminal_and_stays_whole_on_a_pipe";
    let prose = (100..160)
        .map(|n| format!("abc{n}"))
        .collect::<Vec<_>>()
        .join(" ");
    let server = {
        let prose = prose.clone();
        FaultServer::start(move |_| Speech(Dialect::Anthropic).answer(&Say::text(&prose))).await
    };
    let daemon = daemon(&server, QUICK).await;
    let run = daemon.agentctl(&["run", "--name", "prose", "go"]).await;
    assert_eq!(run.stdout.trim_end(), prose);
    let Some(terminals) = Terminals::start("prose") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    for (window, command) in [("run", "run --no-tui go"), ("logs", "--no-pager logs prose")] {
        terminals.open(window, &agentctl(&daemon, command));
        terminals.shows(window, "exit=0").await;
        let screen = terminals.screen(window);
        let lines: Vec<&str> = screen.lines().filter(|line| line.contains("abc1")).collect();
        let whole = |line: &&str| line.split_whitespace().all(|word| word.len() == 6);
        assert!(lines.len() > 1 && lines.iter().all(whole), "{window}: {screen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_line_tells_what_run_waits_for() {
    const NAME: &str = "a_status_line_tells_what_run_waits_for";
    let server = FaultServer::start(move |asked| {
        if asked.number == 0 {
            return vec![http(529, &[("retry-after", "3600")], "{}")];
        }
        vec![Act::Stall]
    })
    .await;
    let daemon = daemon(
        &server,
        "[model]\ndefault = \"claude\"\n[retry]\ncap_ms = 4000000\n",
    )
    .await;
    let Some(terminals) = Terminals::start("status") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    terminals.open("run", &agentctl(&daemon, "run --no-tui --name patient go"));
    // It counts down: the same line shows less and less.
    terminals.shows("run", "backing_off").await;
    terminals.shows("run", "attempt 2 in 59m").await;
    let first = left(&terminals.screen("run"));
    eventually("it counts down", || left(&terminals.screen("run")) < first).await;
    // Text typed in the meantime stays here.
    terminals.keys("run", &["lost words", "Enter"]);
    terminals
        .shows("run", "there was no question when you began")
        .await;
    terminals.keys("run", &["half a line"]);
    terminals.shows("run", "half a line").await;
    terminals.keys("run", &["C-c"]);
    terminals
        .shows("run", "discarded your unfinished input: half a line")
        .await;
    terminals.shows("run", "exit=130").await;
    terminals.keys("run", &["for the shell", "Enter"]);
    terminals.shows("run", "for the shell\nfor the shell").await;
    let screen = terminals.screen("run");
    let (before, after) = screen.split_once("exit=130").unwrap();
    assert!(
        !after.contains("lost words") && !after.contains("half a line"),
        "{screen}"
    );
    assert!(
        !before.contains("backing_off"),
        "the status line is gone: {screen}"
    );
}

/// The minutes and seconds that a status line counts down.
fn left(screen: &str) -> String {
    let (_, rest) = screen.rsplit_once("attempt 2 in ").unwrap_or_default();
    rest.split(':').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_line_gives_way_to_text_and_comes_back_when_it_stalls() {
    const NAME: &str = "a_status_line_gives_way_to_text_and_comes_back_when_it_stalls";
    let (go, wait) = watch::channel(false);
    let server = FaultServer::start(move |_| {
        let mut acts = beginning("It begins ");
        acts.push(Act::Until(wait.clone()));
        let whole = Speech(Dialect::Anthropic).frames(&Say::text("It begins and ends."));
        // The head and the first frames were sent: message, block, two pieces.
        acts.extend(whole.into_iter().skip(4).map(Act::Say));
        acts
    })
    .await;
    let daemon = daemon(&server, QUICK).await;
    let Some(terminals) = Terminals::start("stalls") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    terminals.open("run", &agentctl(&daemon, "run --no-tui go"));
    terminals.shows("run", "It begins\nrunning(model)").await;
    go.send_replace(true);
    terminals.shows("run", "It begins and ends.").await;
    terminals.shows("run", "exit=0").await;
    let screen = terminals.screen("run");
    assert!(!screen.contains("running(model)"), "{screen}");
}
