//! Inputs that a person typed, custom agents, and the displayed prompt.

use crate::harness::Harness;
use agentd_protocol::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn write(h: &Harness, path: &str, content: &str) {
    let path = h.dir.path().join("work").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

async fn log(h: &Harness) -> Vec<EventBody> {
    let lines = h
        .call("session.export", json!({ "session": "@last" }))
        .await
        .unwrap();
    let lines: Exported = serde_json::from_value(lines).unwrap();
    let bodies = lines
        .lines
        .iter()
        .map(|line| serde_json::from_str::<Event>(line).unwrap().body);
    bodies.collect()
}

/// The texts of the last input.
async fn heard(h: &Harness) -> Vec<String> {
    let mut inputs = log(h).await.into_iter().filter_map(|body| match body {
        EventBody::InputAccepted(input) => Some(input.content),
        _ => None,
    });
    let texts = inputs
        .next_back()
        .unwrap()
        .into_iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
    texts.collect()
}

async fn type_in(h: &Harness, line: &str) -> Result<Sent, Fault> {
    let params = json!({ "session": "@last", "content": text(line), "commands": true });
    h.call("input.send", params)
        .await
        .map(|sent| serde_json::from_value(sent).unwrap())
}

#[tokio::test]
async fn mentions_are_attached_only_to_typed_inputs_and_never_secrets() {
    let h = Harness::start().await;
    write(&h, "src/a.rs", "fn a() {}\n");
    write(&h, "notes.secret", "hidden\n");
    h.session("a").await;
    let line = "look at @src/a.rs and @notes.secret, ana@example.com, @types/node, @/etc/passwd, @/no/module";
    let sent = type_in(&h, line).await.unwrap();
    let [missing, outside, secret] = sent.notices.as_slice() else {
        panic!("{:?}", sent.notices)
    };
    assert!(missing.starts_with("@types/node is not a file"), "{missing}");
    assert_eq!(
        outside,
        "@/etc/passwd is not attached: it is outside the working directory"
    );
    assert!(secret.starts_with("@notes.secret is not attached: "), "{secret}");
    let said = heard(&h).await;
    assert_eq!(said[0], line);
    assert!(
        said[1].contains("<file path=\"src/a.rs\" lines=\"1-1\">\nfn a() {}\n</file>"),
        "{said:?}"
    );
    assert!(
        said[1].contains("[notes.secret is not attached: ") && !said[1].contains("hidden"),
        "{said:?}"
    );
    assert!(
        said[1].contains("[/etc/passwd is not attached: ") && !said[1].contains("root:"),
        "{said:?}"
    );
    let plain = json!({ "session": "@last", "content": text(line) });
    h.call("input.send", plain).await.unwrap();
    assert_eq!(heard(&h).await, [line]);
}

/// The beginning of a PNG, as much as is checked.
fn png(width: u32) -> Vec<u8> {
    let head = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &width.to_be_bytes()];
    [&head.concat()[..], &1_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat()
}

#[tokio::test]
async fn mentioned_images_are_attached_if_providers_accept_them() {
    let h = Harness::start().await;
    fs::write(h.dir.path().join("work/a.png"), png(20)).unwrap();
    fs::write(h.dir.path().join("work/wide.png"), png(9_000)).unwrap();
    h.session("a").await;
    let sent = type_in(&h, "what is in @a.png and @wide.png?").await.unwrap();
    let [wide] = sent.notices.as_slice() else {
        panic!("{:?}", sent.notices)
    };
    assert!(
        wide.starts_with("@wide.png is not attached: it is 9000 x 1 pixels"),
        "{wide}"
    );
    let said = heard(&h).await.concat();
    assert!(said.contains("[a.png: image/png, 20 x 1 pixels]"), "{said}");
    let images = log(&h).await.into_iter().filter_map(|body| match body {
        EventBody::InputAccepted(input) => Some(input.content),
        _ => None,
    });
    let images: Vec<Block> = images
        .flatten()
        .filter(|block| matches!(block, Block::Image { .. }))
        .collect();
    let source = ImageSource::Data(STANDARD.encode(png(20)));
    let media_type = "image/png".to_owned();
    assert_eq!(images, [Block::Image { media_type, source }]);
}

#[tokio::test]
async fn an_image_that_a_provider_would_refuse_is_refused_at_once() {
    let h = Harness::with(|settings| settings.tools.max_image_bytes = 8 << 20).await;
    h.session("a").await;
    let large = [png(20), vec![0; 2 << 20]].concat();
    let image = |kind: &str, bytes: &[u8]| json!({"type": "image", "media_type": kind, "data": STANDARD.encode(bytes)});
    let (fine, other) = (image("image/png", &png(20)), image("image/gif", &png(20)));
    let broken = json!({"type": "image", "media_type": "image/png", "data": "%%"});
    let half = image("image/png", &large);
    let cases = [
        (json!([fine]), None),
        (json!([other]), Some("bad_image")),
        (json!([broken]), Some("bad_image")),
        (json!([image("image/png", b"text")]), Some("bad_image")),
        (json!([image("image/png", &png(9_000))]), Some("bad_image")),
        (json!([half]), None),
        (json!([half, half]), Some("input_too_large")),
    ];
    for (content, code) in cases {
        let sent = h
            .call("input.send", json!({ "session": "@last", "content": content }))
            .await;
        assert_eq!(sent.err().map(|fault| fault.code), code.map(str::to_owned));
    }
}

#[tokio::test]
async fn commands_change_the_session_and_are_not_inputs() {
    let h = Harness::start().await;
    h.session("a").await;
    let said = type_in(&h, "/mode accept-edits").await.unwrap();
    assert_eq!(
        (said.input, said.said.as_deref()),
        (InputId::NIL, Some("the mode is now accept-edits"))
    );
    let help = type_in(&h, "/help").await.unwrap().said.unwrap();
    assert!(help.contains("/plan [TEXT]") && help.contains("@path"), "{help}");
    let kinds: Vec<_> = log(&h).await.iter().map(EventBody::kind).collect();
    assert_eq!(kinds, ["session.created", "session.updated"]);
    type_in(&h, "/plan do it").await.unwrap();
    assert_eq!(heard(&h).await, ["do it"]);
    let row = h
        .call("session.get", json!({ "session": "@last" }))
        .await
        .unwrap();
    assert_eq!(row["mode"], "plan");
    for (line, hint) in [
        (
            "/compcat",
            "did you mean /compact? To send it as text, begin it with two slashes: //compcat",
        ),
        (
            "/frobnicate now",
            "/help lists them. To send it as text, begin it with two slashes: //frobnicate",
        ),
    ] {
        let wrong = type_in(&h, line).await.unwrap_err();
        assert_eq!(
            (wrong.code.as_str(), wrong.hint.as_deref()),
            ("unknown_command", Some(hint))
        );
    }
    for (line, heard_as) in [
        ("/etc/hosts is wrong", "/etc/hosts is wrong"),
        ("/tmp is full", "/tmp is full"),
        ("//plan", "/plan"),
    ] {
        type_in(&h, line).await.unwrap();
        assert_eq!(heard(&h).await, [heard_as]);
    }
}

#[tokio::test]
async fn a_command_file_expands_to_its_text() {
    let h = Harness::start().await;
    write(
        &h,
        ".agentd/commands/fix.md",
        "---\ndescription: Fix an issue\n---\nFix issue $ARGUMENTS.",
    );
    let params = json!({ "workdir": h.workdir(), "prompt": text("/fix #12"), "commands": true });
    h.call("session.create", params).await.unwrap();
    assert_eq!(heard(&h).await, ["Fix issue #12."]);
    let help = type_in(&h, "/help").await.unwrap().said.unwrap();
    assert!(help.contains("/fix  Fix an issue"), "{help}");
}

#[tokio::test]
async fn i7_a_projects_agent_narrows_tools_and_mode_and_its_text_is_in_the_prompt() {
    let h = Harness::start().await;
    write(
        &h,
        ".agentd/agents/reviewer.md",
        "---\ntools: [Read, Grep, Bash]\nmode: plan\nmodel: sonnet\n---\nYou review code.",
    );
    write(&h, "AGENTS.md", "Use tabs.");
    let params = json!({ "workdir": h.workdir(), "agent": "reviewer", "mode": "yolo", "tools": ["Read", "Grep", "Write"] });
    h.call("session.create", params).await.unwrap();
    let Some(EventBody::SessionCreated(created)) = log(&h).await.into_iter().next() else {
        panic!("no session.created")
    };
    // In plan mode, the tool that shows the plan is always there: a person decides about it.
    assert_eq!(created.tools, ["Read", "Grep", "ExitPlanMode"]);
    assert_eq!(
        (created.mode, created.model.as_str()),
        (PermissionMode::Plan, "scripted")
    );
    let shown = h
        .call("session.prompt", json!({ "session": "@last" }))
        .await
        .unwrap();
    let shown: PromptShown = serde_json::from_value(shown).unwrap();
    let names: Vec<_> = shown
        .sources
        .iter()
        .map(|source| source.name.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(names, ["base", "plan", "reviewer.md", "AGENTS.md", "environment"]);
    assert!(shown.text.contains("You review code.") && shown.text.contains("Use tabs."));
    let unknown = json!({ "workdir": h.workdir(), "agent": "revewer" });
    assert_eq!(h.refused("session.create", unknown).await.1, "unknown_agent");
}

#[tokio::test]
async fn a_prompt_is_about_the_tools_of_its_session() {
    let h = Harness::start().await;
    let prompt_of = async |mode: &str, tools: &[&str]| {
        let params = json!({ "workdir": h.workdir(), "mode": mode, "tools": tools });
        h.call("session.create", params).await.unwrap();
        let params = json!({ "session": "@last" });
        let shown = h.call("session.prompt", params).await.unwrap();
        serde_json::from_value::<PromptShown>(shown).unwrap().text
    };
    let plan = prompt_of("plan", &["Read", "Grep"]).await;
    assert!(plan.contains("Give it in a call of ExitPlanMode."), "{plan}");
    let plain = prompt_of("default", &["Read", "Grep"]).await;
    for word in ["ExitPlanMode", "Plan mode"] {
        assert!(!plain.contains(word), "{word}: {plain}");
    }
    for text in [&plan, &plain] {
        for word in ["AskUser", "sub-agent", "background jobs", "# Sandbox"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    let more = prompt_of("default", &["Read", "Bash", "Job", "Task"]).await;
    for word in ["sub-agent", "background jobs", "# Sandbox"] {
        assert!(more.contains(word), "{word}: {more}");
    }
}

#[tokio::test]
async fn the_prompt_does_not_change_when_its_files_change() {
    let h = Harness::start().await;
    write(&h, "AGENTS.md", "Use tabs.");
    h.session("a").await;
    let before = h
        .call("session.prompt", json!({ "session": "@last" }))
        .await
        .unwrap();
    write(&h, "AGENTS.md", "Use spaces.");
    assert_eq!(
        h.call("session.prompt", json!({ "session": "@last" }))
            .await
            .unwrap(),
        before
    );
    assert!(before["text"].as_str().unwrap().contains("Use tabs."));
}

#[tokio::test]
async fn a_session_with_sub_agents_passes_a_message_to_a_custom_agent() {
    let h = Harness::start().await;
    write(
        &h,
        ".agentd/agents/reviewer.md",
        "---\nname: reviewer\ndescription: reviews\n---\nReview.\n",
    );
    h.session("a").await;
    let send = |session: &str, agent: &str| {
        h.call(
            "input.send",
            json!({ "session": session, "content": text("look at it"), "agent": agent }),
        )
    };
    send("a", "reviewer").await.unwrap();
    let said = heard(&h).await;
    assert_eq!(said[0], "look at it");
    assert!(said[1].contains("call Task with agent \"reviewer\""), "{said:?}");
    assert_eq!(send("a", "nobody").await.unwrap_err().code, "unknown_agent");
    let alone = json!({ "workdir": h.workdir(), "title": "alone", "tools": ["Read"] });
    h.call("session.create", alone).await.unwrap();
    assert_eq!(send("alone", "reviewer").await.unwrap_err().code, "no_subagents");
}
