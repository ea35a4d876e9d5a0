//! The full-screen mode in real terminals: what is typed, shown and left behind.

use crate::terminals::{HOSTILE, Terminals, agentctl, obeyed};
use crate::{ASKING, YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::ApprovalListParams;
use agentd_tests::{Daemon, eventually, skipped};

/// Creates a session in the background.
async fn begin(daemon: &Daemon, name: &str, plan: &str) {
    let workdir = daemon.workdir(name);
    let run = daemon
        .agentctl(&["run", "-dq", "-C", &workdir, "--name", name, plan])
        .await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

/// How many approvals are open.
async fn open(daemon: &Daemon) -> usize {
    let client = daemon.client().await;
    client
        .approvals(&ApprovalListParams::default())
        .await
        .unwrap()
        .len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_typed_and_answered_at_every_size() {
    const NAME: &str = "a_message_is_typed_and_answered_at_every_size";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    begin(&daemon, "typed", "plan:typed steps=1 command=echo_hello;").await;
    let Some(terminals) = Terminals::start("full-typed") else {
        return skipped(NAME, "tmux is not installed");
    };
    terminals.open("attach", &agentctl(&daemon, "attach typed"));
    terminals.shows("attach", "All done.").await;
    terminals.shows("attach", "a message starts a turn").await;
    for (width, height) in [("80", "24"), ("300", "100"), ("40", "12"), ("160", "50")] {
        let resize = ["resize-window", "-t", "t:attach", "-x", width, "-y", height];
        assert!(terminals.tmux(&resize), "tmux resizes");
        terminals.shows("attach", "All done.").await;
        terminals.shows("attach", "idle").await;
    }
    terminals.keys("attach", &["plan:again text=second_time;", "Enter"]);
    terminals.shows("attach", "second time").await;
    terminals.shows("attach", "▌ plan:again text=second_time;").await;
    // The history has what was sent; a command is completed; a question mark in an empty message shows the keys.
    terminals.keys("attach", &["Up"]);
    terminals.shows("attach", "> plan:again text=second_time;").await;
    terminals.keys("attach", &["C-u", "/de"]);
    terminals.shows("attach", "leave; the session continues").await;
    terminals.keys("attach", &["C-u", "?"]);
    terminals.shows("attach", "any key closes this").await;
    terminals.keys("attach", &["x", "C-c"]);
    terminals.shows("attach", "detached from").await;
    terminals.shows("attach", "exit=0").await;
    // The terminal is as before: it echoes, and what cat reads it prints.
    terminals.keys("attach", &["for the shell", "Enter"]);
    terminals.shows("attach", "for the shell\nfor the shell").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_keys_meant_for_a_message_answer_no_question() {
    const NAME: &str = "i7_keys_meant_for_a_message_answer_no_question";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    begin(&daemon, "asks", "plan:asks text=Ready_to_start;").await;
    let Some(terminals) = Terminals::start("full-asks") else {
        return skipped(NAME, "tmux is not installed");
    };
    terminals.open("attach", &agentctl(&daemon, "attach asks"));
    terminals.shows("attach", "Ready to start").await;
    terminals.keys("attach", &["the yellow "]);
    terminals.shows("attach", "> the yellow").await;
    let other = daemon
        .agentctl(&["send", "asks", "plan:x steps=2 command=echo_hello;"])
        .await;
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    terminals.shows("attach", "your decision").await;
    terminals.shows("attach", "Tab answers").await;
    terminals.keys("attach", &["yyy"]);
    terminals.shows("attach", "> the yellow yyy").await;
    assert_eq!(open(&daemon).await, 1, "nothing was answered");
    terminals.keys("attach", &["Tab"]);
    terminals.shows("attach", "y allow").await;
    terminals.keys("attach", &["y"]);
    // The next question: a denial with words. The message is still there.
    terminals.shows("attach", "answer   allowed by").await;
    terminals.shows("attach", "Tab answers").await;
    terminals.keys("attach", &["Tab"]);
    terminals.shows("attach", "y allow").await;
    terminals.keys("attach", &["n", "not on a Friday", "Enter"]);
    terminals.shows("attach", "not on a Friday").await;
    terminals.shows("attach", "> the yellow yyy").await;
    eventually("it is answered", || {
        terminals.screen("attach").contains("answer   denied by")
    })
    .await;
    assert_eq!(open(&daemon).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_elsewhere_closes_the_question_and_is_told() {
    const NAME: &str = "an_answer_from_elsewhere_closes_the_question_and_is_told";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    begin(&daemon, "two", "plan:two steps=1 command=echo_hello;").await;
    let Some(terminals) = Terminals::start("full-two") else {
        return skipped(NAME, "tmux is not installed");
    };
    terminals.open("attach", &agentctl(&daemon, "attach two"));
    terminals.shows("attach", "y allow").await;
    terminals.keys("attach", &["n", "because"]);
    terminals.shows("attach", "n because").await;
    let answer = daemon.agentctl(&["approve", "two"]).await;
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    // This notice vanishes soon.
    terminals.shows("attach", "discarded your words: n because").await;
    terminals.shows("attach", "All done.").await;
    let screen = terminals.screen("attach");
    assert!(!screen.contains("your decision"), "{screen}");
    // Enter, which was meant for the words, does nothing now.
    terminals.keys("attach", &["Enter", "C-p", "C-q"]);
    terminals.shows("attach", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reconnects_when_the_daemon_is_killed() {
    const NAME: &str = "it_reconnects_when_the_daemon_is_killed";
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    begin(&daemon, "lost", "plan:lost text=Before_the_end;").await;
    let Some(terminals) = Terminals::start("full-lost") else {
        return skipped(NAME, "tmux is not installed");
    };
    terminals.open("attach", &agentctl(&daemon, "attach lost"));
    terminals.shows("attach", "Before the end").await;
    terminals.keys("attach", &["half a message"]);
    daemon.kill().await;
    terminals
        .shows("attach", "connection to the daemon lost; reconnecting")
        .await;
    let daemon = daemon.again();
    eventually("it is connected again", || {
        !terminals.screen("attach").contains("reconnecting")
    })
    .await;
    terminals.shows("attach", "> half a message").await;
    terminals.keys("attach", &["C-u", "plan:again text=After_it;", "Enter"]);
    terminals.shows("attach", "After it").await;
    drop(daemon);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_paste_of_a_megabyte_is_a_mark_and_sends_nothing() {
    const NAME: &str = "i6_a_paste_of_a_megabyte_is_a_mark_and_sends_nothing";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    begin(&daemon, "paste", "plan:paste text=Ready_to_start;").await;
    let Some(terminals) = Terminals::start("full-paste") else {
        return skipped(NAME, "tmux is not installed");
    };
    let file = daemon.dir.path().join("megabyte");
    std::fs::write(&file, "line of text\n".repeat(80_660)).unwrap();
    terminals.open("attach", &agentctl(&daemon, "attach paste"));
    terminals.shows("attach", "a message starts a turn").await;
    assert!(terminals.tmux(&["load-buffer", &file.display().to_string()]));
    assert!(terminals.tmux(&["paste-buffer", "-p", "-t", "t:attach"]));
    terminals
        .shows("attach", "[paste 1: 80660 lines, 1048580 bytes]")
        .await;
    let log = daemon.agentctl(&["export", "paste", "--jsonl"]).await.stdout;
    assert!(!log.contains("line of text"), "nothing is sent before Enter");
    // Longer than an input may be: the daemon refuses it, and the terminal says so.
    terminals.keys("attach", &["Enter"]);
    terminals.shows("attach", "the input has").await;
    terminals.keys("attach", &["plan:again text=still_alive;", "Enter"]);
    terminals.shows("attach", "still alive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_41_the_full_screen_obeys_no_sequence_of_a_session() {
    const NAME: &str = "redteam_41_the_full_screen_obeys_no_sequence_of_a_session";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let workdir = daemon.workdir("hostile");
    std::fs::write(format!("{workdir}/say.sh"), HOSTILE).unwrap();
    // A name may not have such characters, an input may.
    let plan = "plan:hostile steps=1 command=sh_say.sh; \u{1b}]0;evil\u{7}\u{202e}name";
    let run = daemon
        .agentctl(&["run", "-C", &workdir, "--name", "hostile", plan])
        .await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let Some(terminals) = Terminals::start("full-hostile") else {
        return skipped(NAME, "tmux is not installed");
    };
    let recorded = daemon.dir.path().join("recorded");
    terminals.open("attach", "cat");
    let pipe = format!("cat >'{}'", recorded.display());
    assert!(
        terminals.tmux(&["pipe-pane", "-t", "t:attach", &pipe]),
        "tmux records"
    );
    let respawn = agentctl(&daemon, "attach @last");
    assert!(terminals.tmux(&["respawn-pane", "-k", "-t", "t:attach", &respawn]));
    terminals.shows("attach", "All done.").await;
    // Everything unfolded, from the end of the long output to the arguments above it.
    terminals.keys("attach", &["\u{1b}]0;typed", "C-u", "C-o"]);
    terminals.shows("attach", "xxxxxxxxxxxxxxxxxxxx").await;
    terminals.keys("attach", &["Tab", "g"]);
    terminals.shows("attach", "├ result").await;
    terminals.keys("attach", &["C-c"]);
    terminals.shows("attach", "exit=0").await;
    let bytes = std::fs::read(&recorded).unwrap();
    assert!(!bytes.is_empty(), "positive control: it was recorded");
    assert_eq!(obeyed(&bytes), None);
    assert!(!String::from_utf8_lossy(&bytes).contains('\u{202e}'));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_leaves_the_last_words_and_the_turns_exit_code() {
    const NAME: &str = "run_leaves_the_last_words_and_the_turns_exit_code";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let Some(terminals) = Terminals::start("full-run") else {
        return skipped(NAME, "tmux is not installed");
    };
    terminals.open(
        "run",
        &agentctl(&daemon, "run --name full 'plan:full text=The_last_words;'"),
    );
    terminals.shows("run", "turn     completed").await;
    terminals.keys("run", &["C-c"]);
    terminals
        .shows("run", "The last words\nto continue: agentctl attach")
        .await;
    terminals.shows("run", "exit=0").await;
    // Who leaves earlier lets the session go on.
    terminals.open(
        "early",
        &agentctl(&daemon, "run --name early 'plan:early hang=0;'"),
    );
    terminals.shows("early", "Thinking about it").await;
    terminals.keys("early", &["C-c"]);
    terminals.shows("early", "the session continues").await;
    terminals.shows("early", "exit=130").await;
    // Escape cancels.
    terminals.open("esc", &agentctl(&daemon, "attach early"));
    terminals.shows("esc", "running(model)").await;
    terminals.keys("esc", &["Escape"]);
    terminals.shows("esc", "cancelled by Esc").await;
    terminals.shows("esc", "idle").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_given_back_when_a_signal_ends_it() {
    const NAME: &str = "the_terminal_is_given_back_when_a_signal_ends_it";
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    begin(&daemon, "signal", "plan:signal text=Ready_to_start;").await;
    let Some(terminals) = Terminals::start("full-signal") else {
        return skipped(NAME, "tmux is not installed");
    };
    let pid = daemon.dir.path().join("pid");
    let attach = agentctl(&daemon, "attach signal");
    let (ctl, rest) = attach.split_once(';').unwrap();
    let script = daemon.dir.path().join("script");
    std::fs::write(&script, format!("echo $$ >{}\nexec env {ctl}\n", pid.display())).unwrap();
    let command = format!("sh {};{rest}", script.display());
    terminals.open("attach", &command);
    terminals.shows("attach", "a message starts a turn").await;
    let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    terminals.shows("attach", "detached from").await;
    terminals.shows("attach", "exit=0").await;
    terminals.keys("attach", &["for the shell", "Enter"]);
    terminals.shows("attach", "for the shell\nfor the shell").await;
}
