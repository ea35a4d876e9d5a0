//! Pruning, trimming, capping: what is removed first, and what is never removed.

use super::*;
use crate::prune::CLEARED;

fn steps(count: u8, bytes: usize) -> Vec<EventBody> {
    let mut bodies = vec![input(0, "The task."), started(&[0])];
    for n in 0..count {
        bodies.push(finished(vec![tool_use(n)], Usage::default()));
        bodies.push(done(n, &"x".repeat(bytes)));
        bodies.push(started(&[]));
    }
    bodies
}

fn then(transcript: &Transcript, next: impl Into<EventBody>) -> Transcript {
    let mut after = transcript.clone();
    let event = log(vec![next.into()]).remove(0);
    after.apply(&Event { seq: 10_000, ..event });
    after
}

fn cleared(transcript: &Transcript) -> Vec<bool> {
    let blocks = transcript.messages().iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content == CLEARED),
        _ => None,
    });
    results.collect()
}

#[test]
fn old_results_are_cleared_only_if_enough_is_freed() {
    // Ten results of 1,000 tokens.
    let before = fold(steps(10, 4_000));
    assert_eq!(before.plan_pruning(4_000, 6_001), None, "it frees a little less");
    let plan = before.plan_pruning(4_000, 5_000).unwrap();
    assert_eq!(plan.results, 6);
    let after = then(&before, plan.clone());
    assert_eq!(
        cleared(&after),
        [true, true, true, true, true, true, false, false, false, false]
    );
    assert_eq!(
        (after.estimate_tokens(), after.generation()),
        (plan.tokens_after, 1)
    );
    assert_eq!(after.plan_pruning(4_000, 1), None, "nothing is cleared twice");
    assert_eq!(before.plan_pruning(10_000, 1), None, "all of it is protected");
    assert_eq!(fold(steps(10, 150)).plan_pruning(0, 1), None, "short ones stay");
}

#[test]
fn unsent_results_count_as_the_newest() {
    let mut bodies = steps(4, 4_000);
    bodies.push(finished(vec![tool_use(50)], Usage::default()));
    bodies.push(done(50, &"y".repeat(16_000)));
    let plan = fold(bodies).plan_pruning(4_000, 1).unwrap();
    assert_eq!(plan.results, 4);
}

#[test]
fn messages_are_omitted_in_batches_and_pairs_stay_together() {
    let before = fold(steps(20, 10));
    assert_eq!(before.messages().len(), 41);
    assert_eq!(before.plan_trimming(0), None);
    assert_eq!(before.plan_trimming(42), None, "one more still fits");
    let plan = before.plan_trimming(30).unwrap();
    let after = then(&before, plan.clone());
    assert!(after.messages().len() < 20, "{}", after.messages().len());
    assert_eq!(unanswered(after.messages()), Vec::<String>::new());
    assert_eq!(
        after.messages()[0].content,
        [
            Block::text("The task."),
            Block::text(format!("[agentd] {} later messages omitted here.", plan.messages))
        ]
    );
    assert_eq!(after.messages()[1].role, Role::Assistant, "alternation holds");
    assert_eq!(after.plan_trimming(30), None, "there is room for a while");
    let again = then(&after, after.plan_trimming(10).unwrap());
    let gone = 41 + 1 - again.messages().len() - 1;
    assert_eq!(again.messages()[0].content.len(), 2, "the note is there once");
    assert_eq!(
        again.messages()[0].content[1],
        Block::text(format!("[agentd] {gone} later messages omitted here."))
    );
}

#[test]
fn a_message_limit_never_removes_open_calls_or_the_task() {
    let mut bodies = steps(6, 10);
    bodies.push(finished(vec![tool_use(99)], Usage::default()));
    let before = fold(bodies.clone());
    for max in 1..14 {
        let Some(plan) = before.plan_trimming(max) else {
            continue;
        };
        let mut after = then(&before, plan);
        assert_eq!(after.messages()[0].content[0], Block::text("The task."));
        let joined = log(vec![started(&[])]).remove(0);
        after.apply(&Event {
            seq: 10_001,
            ..joined
        });
        assert_eq!(unanswered(after.messages()), Vec::<String>::new(), "{max}");
    }
}

#[test]
fn capping_a_new_result_does_not_change_sent_messages() {
    let mut bodies = steps(2, 1_000);
    bodies.push(finished(vec![tool_use(50)], Usage::default()));
    bodies.push(done(50, &"y".repeat(50_000)));
    let before = fold(bodies);
    assert_eq!(before.longest_new_result(), 50_000);
    let plan = before.plan_cap(9_000).unwrap();
    let after = then(&before, plan.clone());
    assert!(after.longest_new_result() <= 9_000);
    assert_eq!((after.generation(), plan.results), (0, 1), "the prefix holds");
    assert_eq!(after.estimate_tokens(), plan.tokens_after);
    assert_eq!(before.plan_cap(50_000), None);
}

#[test]
fn the_parts_of_the_window_are_named_and_sum_up() {
    let usage = Usage {
        input: 9_000,
        output: 50,
        ..Usage::default()
    };
    let mut bodies = steps(3, 4_000);
    bodies.extend([finished(vec![Block::text("Well.")], usage), note("a note")]);
    let transcript = fold(bodies);
    let parts = transcript.parts(0);
    let of = |kind| parts.iter().find(|part| part.kind == kind).copied();
    assert_eq!(of(crate::PartKind::Results).map(|part| part.items), Some(3));
    assert_eq!(of(crate::PartKind::Said).map(|part| part.items), Some(1));
    let frame = of(crate::PartKind::Frame).unwrap();
    assert!((5_500..6_100).contains(&frame.tokens), "{frame:?}");
    let sum: u64 = parts.iter().map(|part| part.tokens).sum();
    assert_eq!(sum, transcript.estimate_tokens());
}
