//! Summaries written by a model: its input, the split into parts, and what is kept verbatim.

use super::*;
use crate::{retelling, summary_tokens};

fn call(n: u8, name: &str, input: serde_json::Value) -> Block {
    Block::ToolUse {
        id: call_id(n).to_string(),
        name: name.into(),
        input,
    }
}

fn long(steps: u8, bytes: usize) -> Vec<EventBody> {
    let mut bodies = vec![input(0, "Port the parser to Rust."), started(&[0])];
    for n in 0..steps {
        let read = call(n, "Read", json!({"file_path": format!("/w/{n}.rs")}));
        bodies.push(finished(vec![read], Usage::default()));
        bodies.push(done(n, &format!("file {n}: {}", "x".repeat(bytes))));
        bodies.push(started(&[]));
    }
    bodies
}

#[test]
fn the_parts_fit_and_cover_everything_removed() {
    let transcript = fold(long(40, 4_000));
    let plan = transcript.plan_compaction(3_000, 12_000).unwrap();
    let parts = transcript.parts_to_retell(&plan, 30_000);
    assert!(parts.len() > 1 && parts.len() <= 6, "{}", parts.len());
    assert!(parts.iter().all(|part| part.len() <= 30_000));
    let all = parts.concat();
    assert!(all.starts_with("Person: Port the parser to Rust.\nAgent calls Read:"));
    for n in 0..30 {
        assert!(all.contains(&format!("/w/{n}.rs")), "{n}");
    }
    assert_eq!(transcript.parts_to_retell(&plan, 10_000_000).len(), 1);
}

#[test]
fn oversized_conversations_are_cut_harder_to_fit() {
    let transcript = fold(long(100, 9_000));
    let plan = transcript.plan_compaction(3_000, 12_000).unwrap();
    let parts = transcript.parts_to_retell(&plan, 6_000);
    assert!(parts.len() <= 6);
    assert!(parts.iter().all(|part| part.len() <= 6_000));
    assert!(
        parts[0].starts_with("Person: Port the parser to Rust."),
        "{}",
        parts[0]
    );
}

#[test]
fn a_request_holds_the_summary_so_far_and_nine_sections() {
    let words = retelling("it began", "Person: go\n");
    assert!(
        words.starts_with("<summary_so_far>\nit began\n</summary_so_far>\n\n<conversation>\nPerson: go\n")
    );
    for n in 1..=9 {
        assert!(words.contains(&format!("\n{n}. ")), "{n}");
    }
    assert!(!retelling("", "x").contains("<summary_so_far>"));
}

#[test]
fn the_task_stays_verbatim_next_to_the_models_summary() {
    let transcript = fold(long(20, 4_000));
    let plan = transcript.plan_compaction(3_000, 8_000).unwrap();
    let told = transcript
        .with_summary(&plan, "1. Task: none\n## What was asked\n2. none")
        .unwrap();
    assert_eq!(
        told.summary,
        "1. Task: none\n2. none\n## What was asked\n- Port the parser to Rust."
    );
    assert!(told.tokens_after <= plan.tokens_after);
    assert_eq!(transcript.with_summary(&plan, " \n"), None);
    let huge = "word ".repeat(1_000_000);
    let cut = transcript.with_summary(&plan, &huge).unwrap();
    assert!(cut.tokens_after < plan.tokens_before);
    assert!((cut.summary.len() as u64) <= summary_tokens(plan.tokens_before) * 3 + 200);
    assert!(cut.summary.ends_with("- Port the parser to Rust."));
}

#[test]
fn files_that_leave_the_window_are_shown_again_changed_ones_first() {
    let mut bodies = vec![input(0, "go"), started(&[0])];
    let mut step = |n: u8, name: &str, args: serde_json::Value, text: &str| {
        bodies.push(finished(vec![call(n, name, args)], Usage::default()));
        bodies.push(done(n, text));
        bodies.push(started(&[]));
    };
    step(
        1,
        "Write",
        json!({"file_path": "/w/new.rs", "content": "fn new() {}"}),
        "written",
    );
    step(
        2,
        "Edit",
        json!({"file_path": "/w/old.rs", "old_string": "a", "new_string": "b"}),
        "edited",
    );
    for n in 10..20 {
        step(
            n,
            "Read",
            json!({"file_path": format!("/w/{n}.rs")}),
            &format!("text of {n} {}", "x".repeat(3_000)),
        );
    }
    step(30, "Read", json!({"file_path": "/w/19.rs"}), "shown again");
    let transcript = fold(bodies);
    let plan = transcript.plan_compaction(10, 6_000).unwrap();
    let paths: Vec<&str> = plan.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(&paths[..2], ["/w/old.rs", "/w/new.rs"]);
    assert!(paths.contains(&"/w/18.rs"), "{paths:?}");
    assert!(
        !paths.contains(&"/w/19.rs"),
        "it is still in the window: {paths:?}"
    );
    assert!(paths.len() <= 5);
    let mut after = transcript;
    let event = log(vec![plan.clone().into()]).remove(0);
    after.apply(&Event { seq: 10_000, ..event });
    assert_eq!(after.estimate_tokens(), plan.tokens_after);
    let first = &after.messages()[0].content;
    assert_eq!(
        first[1],
        Block::text(
            "[agentd] /w/old.rs was changed in the summarized part. Read it again before you rely on it."
        )
    );
    assert_eq!(
        first[2],
        Block::text("[agentd] /w/new.rs, as last shown in the summarized part:\nfn new() {}")
    );
}
