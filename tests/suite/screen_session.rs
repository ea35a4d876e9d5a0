//! One session on the whole screen, in real terminals.

use crate::played;
use crate::stage::Stage;
use crate::subagents::{node, tasks};
use crate::terminals::{Terminals, agentctl};
use agentd_protocol::PermissionMode;
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, FaultServer, Say, Speech};
use agentd_tests::{eventually, skipped};
use tokio::sync::watch;

const NO_TMUX: &str = "tmux is not installed";

#[tokio::test(flavor = "multi_thread")]
async fn a_message_has_several_lines_and_a_history_over_sessions() {
    let Some(stage) = Stage::set("s-lines") else {
        return skipped("a_message_has_several_lines", NO_TMUX);
    };
    stage.ran("lines", "text=Ready_to_start").await;
    // A history of its own: other tests send messages, too.
    let state = stage.daemon().workdir("lines-state");
    let state = format!("XDG_STATE_HOME={state}");
    stage.open("lines", &state, "attach lines");
    stage.shows("lines", "? shows the keys").await;
    stage.keys(
        "lines",
        &["plan:l text=two_lines_came;", "C-j", "the second line"],
    );
    stage.shows("lines", "> plan:l text=two_lines_came;").await;
    stage.shows("lines", "  the second line").await;
    stage.keys("lines", &["Enter"]);
    stage.shows("lines", "▌ plan:l text=two_lines_came;").await;
    stage.shows("lines", "▌ the second line").await;
    stage.shows("lines", "two lines came").await;
    // A backslash at the end does the same, and undo takes words back.
    stage.keys("lines", &["one\\", "Enter", "two three"]);
    stage.shows("lines", "> one").await;
    stage.shows("lines", "  two three").await;
    stage.keys("lines", &["C-w", "C-_"]);
    stage.shows("lines", "> one").await;
    stage.shows("lines", "  two three").await;
    stage.keys("lines", &["C-c"]);
    stage.shows("lines", "exit=0").await;
    stage.ran("lines2", "text=Ready_to_start").await;
    stage.open("lines2", &state, "attach lines2");
    stage.shows("lines2", "? shows the keys").await;
    stage.keys("lines2", &["Up"]);
    stage.shows("lines2", "> plan:l text=two_lines_came;").await;
    stage.shows("lines2", "  the second line").await;
    stage.keys("lines2", &["C-c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn shift_tab_changes_the_mode() {
    let Some(stage) = Stage::set("s-mode") else {
        return skipped("shift_tab_changes_the_mode", NO_TMUX);
    };
    stage.begun("mode", &[], "text=Ready_to_start").await;
    stage.attach("mode").await;
    stage.shows("mode", "· default ·").await;
    stage.keys("mode", &["BTab"]);
    stage.shows("mode", "· accept-edits ·").await;
    stage.keys("mode", &["BTab"]);
    stage.shows("mode", "· plan ·").await;
    let row = stage.daemon().client().await.get("mode").await.unwrap();
    assert_eq!(row.mode, PermissionMode::Plan);
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_asks_again_where_a_running_tool_would_be_lost() {
    let Some(stage) = Stage::set("s-esc") else {
        return skipped("escape_asks_again", NO_TMUX);
    };
    stage
        .begun("esc", &["--mode", "yolo"], "steps=1 command=sleep_600")
        .await;
    stage.open("esc", "", "attach esc");
    stage.shows("esc", "running(tool)").await;
    stage.shows("esc", "● Bash").await;
    stage.keys("esc", &["Escape"]);
    stage.shows("esc", "Esc again cancels the turn").await;
    // Another key means no.
    stage.keys("esc", &["x"]);
    stage.hides("esc", "Esc again cancels the turn").await;
    stage.keys("esc", &["C-u", "Escape"]);
    stage.shows("esc", "Esc again cancels the turn").await;
    // The view forgets the first one after three seconds.
    eventually("the turn is cancelled", || {
        let cancelled = stage.terminals.screen("esc").contains("cancelled by Esc");
        if !cancelled {
            stage.keys("esc", &["Escape"]);
        }
        cancelled
    })
    .await;
    stage.shows("esc", "? shows the keys").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_writes_the_message() {
    let Some(stage) = Stage::set("s-edit") else {
        return skipped("the_editor_writes_the_message", NO_TMUX);
    };
    stage.ran("edit", "text=Ready_to_start").await;
    let script = stage.daemon().dir.path().join("editor.sh");
    std::fs::write(&script, "printf ' and more\\nlines\\n' >>\"$1\"\n").unwrap();
    stage.open(
        "edit",
        &format!("EDITOR='sh {}'", script.display()),
        "attach edit",
    );
    stage.shows("edit", "? shows the keys").await;
    stage.keys("edit", &["some text", "C-g"]);
    stage.shows("edit", "> some text and more").await;
    stage.shows("edit", "  lines").await;
    // An editor that fails changes nothing.
    std::fs::write(&script, "echo lost >\"$1\"; exit 1\n").unwrap();
    stage.keys("edit", &["C-g"]);
    stage
        .shows("edit", "the editor failed; the message is unchanged")
        .await;
    stage.shows("edit", "> some text and more").await;
    stage.shows("edit", "  lines").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jumps_go_to_turns_errors_and_approvals() {
    let Some(stage) = Stage::set("s-jump") else {
        return skipped("jumps_go_to_turns_errors_and_approvals", NO_TMUX);
    };
    stage.ran("jump", "steps=1 command=exit_3").await;
    for n in 0..12 {
        let plan = format!("plan:jump{n} text=answer_{n}_1_2_3_4;");
        let sent = stage.daemon().agentctl(&["send", "jump", &plan]).await;
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let waited = stage.daemon().agentctl(&["wait", "jump"]).await;
        assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    }
    stage.attach("jump").await;
    stage.sized("jump", "80", "14").await;
    stage.keys("jump", &["Tab", "{"]);
    stage.shows("jump", "error").await;
    stage.shows("jump", "● Bash exit 3").await;
    stage.keys("jump", &["]"]);
    stage.shows("jump", "▌ plan:jump0 ").await;
    stage.keys("jump", &["]", "]"]);
    stage.shows("jump", "▌ plan:jump2 ").await;
    stage.keys("jump", &["["]);
    stage.keys("jump", &[">"]);
    stage.shows("jump", "there is no other one").await;
    // The pager gets the whole transcript.
    stage.keys("jump", &["Escape", "C-c"]);
    stage.shows("jump", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_copied_through_the_terminal() {
    let Some(stage) = Stage::set("s-copy") else {
        return skipped("an_entry_is_copied_through_the_terminal", NO_TMUX);
    };
    stage.ran("copy", "text=to_be_copied_結果").await;
    stage.attach("copy").await;
    let recorded = stage.daemon().dir.path().join("copied");
    let pipe = format!("cat >'{}'", recorded.display());
    assert!(stage.terminals.tmux(&["pipe-pane", "-t", "t:copy", &pipe]));
    // The last entry is the end of the turn; the one above it is the answer.
    stage.keys("copy", &["Tab", "k", "y"]);
    stage.shows("copy", "copied 15 characters").await;
    // The text in base64.
    let wanted = "\u{1b}]52;c;dG8gYmUgY29waWVkIOe1kOaenA==\u{7}";
    eventually("the terminal is told", || {
        let bytes = std::fs::read(&recorded).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(wanted)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_viewers_see_each_other_and_who_answered() {
    let Some(stage) = Stage::set("s-two") else {
        return skipped("two_viewers_see_each_other_and_who_answered", NO_TMUX);
    };
    stage.begun("both", &[], "steps=1 command=echo_hello").await;
    for window in ["one", "other"] {
        stage.open(window, "", "attach both");
        stage.shows(window, "y allow").await;
    }
    for window in ["one", "other"] {
        stage.shows(window, "2 viewers").await;
    }
    stage.keys("one", &["y"]);
    // This notice vanishes soon.
    stage.shows("other", "decided elsewhere: allowed by").await;
    for window in ["one", "other"] {
        stage.shows(window, "answer   allowed by").await;
        stage.shows(window, "All done.").await;
        stage.hides(window, "your decision").await;
    }
    stage.keys("one", &["C-p", "C-q"]);
    stage.shows("one", "exit=0").await;
    stage.hides("other", "2 viewers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_inputs_are_listed_edited_and_withdrawn() {
    let Some(stage) = Stage::set("s-queue") else {
        return skipped("queued_inputs_are_listed_edited_and_withdrawn", NO_TMUX);
    };
    stage.begun("queue", &["--mode", "yolo"], "hang=0").await;
    stage.open("queue", "", "attach queue");
    stage.shows("queue", "Thinking about it").await;
    stage.keys("queue", &["C-t"]);
    stage.shows("queue", "a message waits for the next turn").await;
    stage.keys("queue", &["the first one", "Enter"]);
    stage.shows("queue", "queue: the first one").await;
    stage.keys("queue", &["the second one", "Enter"]);
    stage.shows("queue", "queue: the second one").await;
    stage.keys("queue", &["M-Up", "Up"]);
    stage
        .shows("queue", "queue: the first one  Enter edits, Del withdraws")
        .await;
    stage.keys("queue", &["DC"]);
    stage.hides("queue", "queue: the first one").await;
    stage.shows("queue", "(withdrawn)").await;
    stage.keys("queue", &["Enter"]);
    stage.hides("queue", "queue: the second one").await;
    stage.shows("queue", "> the second one").await;
    let inputs = stage.daemon().client().await.list_inputs("queue").await.unwrap();
    assert_eq!(inputs.len(), 0, "{inputs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_files_of_the_directory_are_completed() {
    let Some(stage) = Stage::set("s-complete") else {
        return skipped("commands_and_files_of_the_directory_are_completed", NO_TMUX);
    };
    let workdir = stage.daemon().workdir("complete");
    std::fs::create_dir_all(format!("{workdir}/.agentd/commands")).unwrap();
    let file = "---\ndescription: Mend a thing\n---\nplan:mend text=mended_$ARGUMENTS;";
    std::fs::write(format!("{workdir}/.agentd/commands/mend.md"), file).unwrap();
    std::fs::write(format!("{workdir}/notes.txt"), "x").unwrap();
    stage.ran("complete", "text=Ready_to_start").await;
    stage.attach("complete").await;
    stage.keys("complete", &["/m"]);
    stage.shows("complete", "Mend a thing").await;
    stage.shows("complete", "set what runs without asking").await;
    stage.keys("complete", &["e", "Tab"]);
    stage.shows("complete", "> /mend").await;
    stage.keys("complete", &["it", "Enter"]);
    stage.shows("complete", "mended it").await;
    stage.keys("complete", &["look at @no"]);
    stage.shows("complete", "@notes.txt").await;
    stage.keys("complete", &["Tab"]);
    stage.shows("complete", "> look at @notes.txt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_and_right_to_left_text_keeps_its_columns() {
    let Some(stage) = Stage::set("s-wide") else {
        return skipped("wide_and_right_to_left_text_keeps_its_columns", NO_TMUX);
    };
    stage
        .ran("wide", "text=結果は良い。_שלום_עולם_مرحبا_👍_e\u{301}nde")
        .await;
    stage.attach("wide").await;
    stage.shows("wide", "結果は良い。 שלום עולם مرحبا 👍").await;
    stage.keys("wide", &["日本語", "BSpace", "x שלום"]);
    stage.shows("wide", "> 日本x שלום").await;
    for width in ["20", "31", "120"] {
        assert!(
            stage
                .terminals
                .tmux(&["resize-window", "-t", "t:wide", "-x", width, "-y", "20"])
        );
        stage.shows("wide", "> 日本x").await;
        stage.shows("wide", "結果は良い").await;
    }
    stage.keys("wide", &["Left", "Left", "Left", "Left", "Left", "BSpace"]);
    stage.shows("wide", "> 日本 שלום").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    let Some(stage) = Stage::set("s-job") else {
        return skipped("ctrl_z_gives_the_terminal_to_the_shell", NO_TMUX);
    };
    stage.ran("job", "text=Ready_to_start").await;
    stage
        .terminals
        .open("job", "exec env PS1='shell$ ' bash --norc --noprofile -i");
    stage.shows("job", "shell$").await;
    let command = agentctl(stage.daemon(), "attach job");
    let command = command.split(';').next().unwrap().to_owned();
    stage.keys("job", &[&command, "Enter"]);
    stage.shows("job", "? shows the keys").await;
    stage.keys("job", &["half a message", "C-z"]);
    stage.shows("job", "Stopped").await;
    stage.keys("job", &["echo in_the_$((1+1))nd_shell", "Enter"]);
    stage.shows("job", "in_the_2nd_shell").await;
    stage.keys("job", &["fg", "Enter"]);
    stage.shows("job", "> half a message").await;
    stage.keys("job", &["!", "C-c"]);
    stage.shows("job", "detached from").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sub_agents_are_inline_and_a_tree_to_choose_from() {
    const NAME: &str = "sub_agents_are_inline_and_a_tree_to_choose_from";
    let (go, wait) = watch::channel(false);
    let server = FaultServer::start(move |asked| {
        let body = String::from_utf8_lossy(&asked.body);
        let step = body.matches("\"role\":\"assistant\"").count();
        let speech = Speech(Dialect::Anthropic);
        match (node(&body), step) {
            ("r", 0) => speech.answer(&tasks("r", 2)),
            ("r", _) => speech.answer(&Say::text("the whole")),
            (part, _) => {
                let mut acts = vec![Act::Until(wait.clone())];
                acts.extend(speech.answer(&Say::text(&format!("answer of {part}"))));
                acts
            }
        }
    })
    .await;
    let daemon = played::daemon(&server, crate::YOLO).await;
    let Some(terminals) = Terminals::start("s-tree") else {
        return skipped(NAME, NO_TMUX);
    };
    terminals.open("run", &agentctl(&daemon, "run --name root 'node:r;'"));
    terminals.shows("run", "↳ running(model)").await;
    terminals.shows("run", "2 sub-agents").await;
    terminals.keys("run", &["F2"]);
    terminals.shows("run", "sub-agents: Enter opens one").await;
    terminals.shows("run", "▸ root").await;
    terminals.shows("run", "└ part r.1").await;
    // The tree begins at this session.
    terminals.keys("run", &["Down", "Enter"]);
    terminals.shows("run", " part r.").await;
    terminals.shows("run", "a message joins the running turn").await;
    eventually("the sub-agent is shown", || {
        !terminals.screen("run").contains("sub-agents: Enter")
    })
    .await;
    go.send_replace(true);
    terminals.shows("run", "answer of r.").await;
    terminals.keys("run", &["C-c"]);
    terminals.shows("run", "the whole").await;
    terminals.shows("run", "↳ completed · 1 step").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_reads_can_neither_write_nor_answer() {
    let Some(stage) = Stage::set("s-read") else {
        return skipped("who_only_reads_can_neither_write_nor_answer", NO_TMUX);
    };
    stage.begun("read", &[], "steps=1 command=echo_hello").await;
    stage.open("read", "", "attach --read-only read");
    stage.shows("read", "waiting(approval)").await;
    stage.shows("read", "● Bash echo hello").await;
    stage.keys("read", &["y", "y", "BTab", "Enter"]);
    stage.keys("read", &["?"]);
    stage.shows("read", "any key closes this").await;
    stage.keys("read", &["x"]);
    stage.hides("read", "any key closes this").await;
    let row = stage.daemon().client().await.get("read").await.unwrap();
    assert_eq!((row.open_approvals.len(), row.mode), (1, PermissionMode::Default));
    stage.keys("read", &["q"]);
    stage.shows("read", "exit=0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_terminal_and_a_wish_get_lines() {
    let Some(stage) = Stage::set("s-dumb") else {
        return skipped("a_dumb_terminal_and_a_wish_get_lines", NO_TMUX);
    };
    stage.ran("dumb", "text=Ready_to_start").await;
    for (window, before, words) in [
        ("dumb", "TERM=dumb", "attach dumb"),
        ("variable", "AGENTCTL_TUI=0", "attach dumb"),
        ("flag", "", "attach --no-tui dumb"),
    ] {
        stage.open(window, before, words);
        stage.shows(window, "type to send; /help lists commands").await;
        stage.keys(window, &["C-c"]);
        stage.shows(window, "exit=0").await;
    }
}
