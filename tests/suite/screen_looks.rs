//! One session on the whole screen, in real terminals: how it looks, and how one moves in it.

use crate::played;
use crate::stage::Stage;
use crate::terminals::{Terminals, agentctl};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, FaultServer, Say, Speech};
use agentd_tests::{eventually, skipped};
use serde_json::json;
use tokio::sync::watch;

const NO_TMUX: &str = "tmux is not installed";

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_marks_and_goes_on() {
    let Some(stage) = Stage::set("s-search") else {
        return skipped("a_search_finds_marks_and_goes_on", NO_TMUX);
    };
    stage.ran("search", "steps=3 command=seq_1_200").await;
    stage.attach("search").await;
    stage.sized("search", "80", "16").await;
    stage.keys("search", &["PPage"]);
    stage.shows("search", "more below: End follows").await;
    stage.keys("search", &["Tab", "/seq 1 200 # 0.0"]);
    stage.shows("search", "/seq 1 200 # 0.0▏").await;
    stage.keys("search", &["Enter"]);
    stage.hides("search", "▏").await;
    stage.shows("search", "# 0.0").await;
    eventually("what was found is marked", || {
        // Reversed.
        stage.styled("search").contains("[7mseq 1 200 # 0.0")
    })
    .await;
    stage.keys("search", &["n"]);
    stage.shows("search", "there is no other one").await;
    stage.keys("search", &["G"]);
    stage.shows("search", "All done.").await;
    stage.hides("search", "more below: End follows").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pager_gets_the_whole_transcript() {
    let Some(stage) = Stage::set("s-pager") else {
        return skipped("the_pager_gets_the_whole_transcript", NO_TMUX);
    };
    stage.ran("pager", "text=Ready_to_start").await;
    let kept = stage.daemon().dir.path().join("paged");
    let pager = format!("AGENTD_PAGER='tee {}'", kept.display());
    stage.open("pager", &pager, "attach pager");
    stage.shows("pager", "? shows the keys").await;
    stage.keys("pager", &["Tab", "e"]);
    eventually("the pager has it", || {
        std::fs::read_to_string(&kept)
            .is_ok_and(|text| text.contains("Ready to start") && text.contains("turn"))
    })
    .await;
    stage.shows("pager", "Enter returns").await;
    stage.keys("pager", &["Enter"]);
    // The view is back, and reads keys again.
    stage.shows("pager", "idle · claude").await;
    stage.keys("pager", &["Escape"]);
    stage.shows("pager", "? shows the keys").await;
    stage.keys("pager", &["again"]);
    stage.shows("pager", "> again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_unfold_one_by_one_and_all_together() {
    let Some(stage) = Stage::set("s-fold") else {
        return skipped("cards_unfold_one_by_one_and_all_together", NO_TMUX);
    };
    stage.ran("fold", "steps=1 command=seq_1_30").await;
    stage.attach("fold").await;
    stage.shows("fold", "└ 25 more lines").await;
    // The end of the turn, the answer, the card.
    stage.keys("fold", &["Tab", "k", "k", "Enter"]);
    stage.shows("fold", "├ result").await;
    stage.shows("fold", "│ 30").await;
    stage.keys("fold", &["Enter"]);
    stage.shows("fold", "└ 25 more lines").await;
    stage.keys("fold", &["C-o"]);
    stage.shows("fold", "│ 30").await;
    stage.keys("fold", &["C-o"]);
    stage.shows("fold", "└ 25 more lines").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_changes_in_the_middle_of_a_stream_loses_no_word() {
    const NAME: &str = "a_size_that_changes_in_the_middle_of_a_stream_loses_no_word";
    let words = (10..70).map(|n| format!("word{n} ")).collect::<String>();
    let (go, wait) = watch::channel(0);
    let server = {
        let words = words.clone();
        FaultServer::start(move |_| {
            let speech = Speech(Dialect::Anthropic);
            let mut acts = vec![speech.head()];
            for (n, frame) in speech.frames(&Say::text(&words)).into_iter().enumerate() {
                // Three parts: each waits for its turn.
                if n == 20 || n == 40 {
                    let mut wait = wait.clone();
                    let (go, part) = watch::channel(false);
                    tokio::spawn(async move {
                        let _ = wait.wait_for(|parts| *parts >= n / 20).await;
                        go.send_replace(true);
                        go.closed().await;
                    });
                    acts.push(Act::Until(part));
                }
                acts.push(Act::Say(frame));
            }
            acts
        })
        .await
    };
    let daemon = played::daemon(&server, "[model]\ndefault = \"claude\"\n").await;
    let Some(terminals) = Terminals::start("s-stream") else {
        return skipped(NAME, NO_TMUX);
    };
    terminals.open("run", &agentctl(&daemon, "run --name stream go"));
    terminals.shows("run", "word20").await;
    for (part, last) in [(1, "word40"), (2, "word69")] {
        for (width, height) in [("40", "16"), ("200", "60"), ("63", "24")] {
            let resize = ["resize-window", "-t", "t:run", "-x", width, "-y", height];
            assert!(terminals.tmux(&resize));
            terminals.shows("run", "running(model)").await;
        }
        go.send_replace(part);
        terminals.shows("run", last).await;
    }
    terminals.shows("run", "turn     completed").await;
    let shown = || {
        let screen = terminals.screen("run");
        let words = screen.split_whitespace().filter(|word| word.starts_with("word"));
        words.collect::<Vec<_>>().join(" ")
    };
    terminals.shows("run", "idle · claude").await;
    let whole = || async {
        eventually("every word is there once", || shown() == words.trim_end()).await;
    };
    whole().await;
    for _ in 0..10 {
        // The last change may come before the others were noticed.
        let sizes = [("40", "16"), ("200", "60"), ("63", "24")];
        let changes =
            sizes.map(|(width, height)| ["resize-window", "-t", "t:run", "-x", width, "-y", height, ";"]);
        assert!(terminals.tmux(&changes.concat()));
        whole().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_the_session_covers_the_next_call() {
    let server = FaultServer::start(|asked| {
        let say = match asked.number {
            0 | 1 => Say::call("Bash", json!({ "command": "echo hi" })),
            _ => Say::text("All done."),
        };
        Speech(Dialect::Anthropic).answer(&say)
    })
    .await;
    let daemon = played::daemon(&server, "[model]\ndefault = \"claude\"\n").await;
    let Some(terminals) = Terminals::start("s-scope") else {
        return skipped("an_approval_for_the_session_covers_the_next_call", NO_TMUX);
    };
    terminals.open("scope", &agentctl(&daemon, "run --name scope go"));
    terminals.shows("scope", "rule    mode:default").await;
    terminals.shows("scope", "s for this session").await;
    terminals.keys("scope", &["s"]);
    terminals.shows("scope", "All done.").await;
    terminals.shows("scope", "answer   allowed").await;
    let screen = terminals.screen("scope");
    assert_eq!(screen.matches("answer   allowed").count(), 1, "{screen}");
    assert_eq!(screen.matches("● Bash echo hi  ok").count(), 2, "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_are_those_that_the_terminal_has() {
    let Some(stage) = Stage::set("s-colour") else {
        return skipped("colours_are_those_that_the_terminal_has", NO_TMUX);
    };
    stage
        .ran(
            "colour",
            "steps=1 command=exit_1 text=```python\ndef_f(x):\n____return_1\n```",
        )
        .await;
    let none = ["\u{1b}[3", "\u{1b}[9", ";3", "38;", "48;"];
    for (window, before, has, lacks) in [
        ("none", "NO_COLOR=1", "", &none[..]),
        (
            "sixteen",
            "TERM=xterm COLORTERM=",
            "\u{1b}[31m",
            &["38;5", "38;2"],
        ),
        ("many", "TERM=xterm-256color COLORTERM=", "38;5;176", &["38;2"]),
        (
            "light",
            "TERM=xterm-256color AGENTCTL_THEME=light",
            "38;5;90",
            &["38;5;176"],
        ),
    ] {
        stage.open(window, before, "attach colour");
        stage.shows(window, "? shows the keys").await;
        stage.shows(window, "def f(x):").await;
        // tmux itself goes back to the default colours.
        let screen = stage
            .styled(window)
            .replace("\u{1b}[39m", "")
            .replace("\u{1b}[49m", "");
        assert!(screen.contains(has), "{window}: {screen:?}");
        for lack in lacks {
            assert!(!screen.contains(lack), "{window} has {lack:?}: {screen:?}");
        }
        // Everything is in words, too.
        assert!(screen.contains("error"), "{window}: {screen:?}");
        stage.keys(window, &["C-c"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mouse_selects_unfolds_and_scrolls_where_it_is_wanted() {
    let Some(stage) = Stage::set("s-mouse") else {
        return skipped("a_mouse_selects_unfolds_and_scrolls_where_it_is_wanted", NO_TMUX);
    };
    stage.ran("mouse", "steps=6 command=seq_1_30").await;
    stage.open("mouse", "AGENTCTL_MOUSE=1", "attach mouse");
    stage.shows("mouse", "All done.").await;
    stage.sized("mouse", "80", "24").await;
    let mouse = |event: &str| {
        let sent = stage
            .terminals
            .tmux(&["send-keys", "-t", "t:mouse", "-l", &format!("\u{1b}[<{event}")]);
        assert!(sent);
    };
    mouse("64;10;10M");
    stage.shows("mouse", "more below: End follows").await;
    for _ in 0..4 {
        mouse("65;10;10M");
    }
    stage.hides("mouse", "more below: End follows").await;
    // Twice on the last card, whose six lines end five lines above the bar.
    for _ in 0..2 {
        mouse("0;10;13M");
        mouse("0;10;13m");
    }
    stage.shows("mouse", "│ 30").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_drawn_by_the_terminal_and_only_when_asked_for() {
    let Some(stage) = Stage::set("s-image") else {
        return skipped("an_image_is_drawn_by_the_terminal", NO_TMUX);
    };
    // The beginning of a PNG of 30 x 20 pixels.
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14\x08\x02\0\0\0";
    let file = stage.daemon().dir.path().join("small.png");
    std::fs::write(&file, image).unwrap();
    stage.ran("image", "text=Ready_to_start").await;
    let sent = [
        "send",
        "--wait",
        "image",
        "--image",
        &file.display().to_string(),
        "plan:i text=I_see_it;",
    ];
    let sent = stage.daemon().agentctl(&sent).await;
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let recorded = stage.daemon().dir.path().join("recorded-image");
    stage.terminals.open("image", "cat");
    let pipe = format!("cat >'{}'", recorded.display());
    assert!(stage.terminals.tmux(&["pipe-pane", "-t", "t:image", &pipe]));
    let attach = format!(
        "export AGENTCTL_IMAGES=kitty; {}",
        agentctl(stage.daemon(), "attach image")
    );
    assert!(
        stage
            .terminals
            .tmux(&["respawn-pane", "-k", "-t", "t:image", &attach])
    );
    stage.shows("image", "I see it").await;
    stage.shows("image", "[image: image/png]").await;
    // From the end of the turn to the input.
    stage.keys("image", &["Tab", "["]);
    let data = "iVBORw0KGgo";
    let drawn = || String::from_utf8_lossy(&std::fs::read(&recorded).unwrap()).contains(data);
    assert!(!drawn(), "it was not asked for");
    stage.keys("image", &["v"]);
    stage.shows("image", "image 1 of 1; any key goes on").await;
    eventually("the terminal gets it", drawn).await;
    stage.keys("image", &["x"]);
    stage.hides("image", "any key goes on").await;
    stage.shows("image", "I see it").await;
    stage.keys("image", &["G", "v"]);
    stage.shows("image", "this entry has no image").await;
    stage.keys("image", &["C-c"]);
    stage.shows("image", "exit=0").await;
}
