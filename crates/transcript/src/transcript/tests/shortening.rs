//! Compaction and truncation: what stays, what is removed, and that no call ever loses its result.

use super::*;

/// A task and `steps` steps, each a call with a result of `bytes` bytes.
fn steps(steps: u8, bytes: usize) -> Vec<EventBody> {
    let mut bodies = vec![input(0, "Port the parser to Rust."), started(&[0])];
    for n in 0..steps {
        let said = Block::text(format!("Step {n}."));
        bodies.push(finished(vec![said, tool_use(n)], Usage::default()));
        bodies.push(proposed(n, 0));
        bodies.push(done(n, &format!("{n:03}{}", "x".repeat(bytes))));
        bodies.push(started(&[]));
    }
    bodies
}

/// The transcript after one more event.
fn and(mut transcript: Transcript, bodies: &[EventBody], next: impl Into<EventBody>) -> Transcript {
    let all: Vec<EventBody> = bodies.iter().cloned().chain([next.into()]).collect();
    transcript.apply(log(all).last().unwrap());
    transcript
}

fn texts(transcript: &Transcript) -> Vec<String> {
    let blocks = transcript.messages().iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn the_beginning_becomes_a_summary_and_the_end_stays_verbatim() {
    let bodies = steps(20, 4_000);
    let before = fold(bodies.clone());
    let plan = before.plan_compaction(3_000, 8_000).unwrap();
    assert_eq!((plan.from_seq, plan.tokens_before), (1, before.estimate_tokens()));
    let after = and(before.clone(), &bodies, plan.clone());
    assert_eq!(after.estimate_tokens(), plan.tokens_after);
    assert!(plan.tokens_after <= 8_000, "{}", plan.tokens_after);
    assert_eq!(after.generation(), 1);
    let kept = after.messages().len() - 1;
    assert_eq!(
        after.messages()[1..],
        before.messages()[before.messages().len() - kept..]
    );
    assert_eq!(unanswered(after.messages()), Vec::<String>::new());
    let summary = texts(&after)[0].clone();
    assert!(
        summary.starts_with(
            "[agentd] The beginning of this conversation was replaced by this summary:\n\n\
             ## What was asked\n- Port the parser to Rust.\n## What was done\n- Read: ok\n"
        ),
        "{summary}"
    );
    assert!(summary.contains("## What was said last\n- Step "), "{summary}");
}

#[test]
fn a_second_compaction_folds_the_first_summary_in() {
    let mut bodies = steps(20, 4_000);
    let mut transcript = fold(bodies.clone());
    for round in 1..=4_u8 {
        let plan = transcript.plan_compaction(3_000, 8_000).unwrap();
        transcript = and(transcript, &bodies, plan.clone());
        bodies.push(plan.into());
        assert_eq!(transcript.generation(), u64::from(round));
        let summary = texts(&transcript)[0].clone();
        assert_eq!(
            summary.matches("Port the parser to Rust.").count(),
            1,
            "the task stays, once: {summary}"
        );
        assert_eq!(summary.matches("## What was done").count(), 1);
        for n in 0..15 {
            let n = round * 20 + n;
            bodies.push(finished(vec![tool_use(n)], Usage::default()));
            bodies.push(done(n, &"y".repeat(4_000)));
            bodies.push(started(&[]));
        }
        transcript = fold(bodies.clone());
        assert_eq!(unanswered(transcript.messages()), Vec::<String>::new());
    }
}

#[test]
fn a_compaction_that_gains_too_little_is_skipped() {
    assert_eq!(fold(vec![]).plan_compaction(1_000, 10_000), None);
    assert_eq!(fold(steps(1, 10)).plan_compaction(0, 100), None, "too small");
    let long = fold(steps(20, 4_000));
    let all = long.estimate_tokens();
    assert_eq!(long.plan_compaction(all, all * 2), None, "all of it may stay");
    let one = fold(vec![input(1, &"word ".repeat(9_000)), started(&[1])]);
    assert_eq!(one.plan_compaction(1_000, 5_000), None, "the last message stays");
}

#[test]
fn a_compaction_in_the_middle_of_a_pair_keeps_the_pair() {
    let bodies = steps(3, 100);
    let before = fold(bodies.clone());
    // Seq 7 is the second answer, whose result is sealed at seq 10.
    let compacted = ContextCompacted {
        from_seq: 1,
        to_seq: 7,
        summary: "the user wants a port".into(),
        ..ContextCompacted::default()
    };
    let after = and(before.clone(), &bodies, compacted);
    assert_eq!(unanswered(after.messages()), Vec::<String>::new());
    assert_eq!(after.messages()[1..], before.messages()[3..]);
    assert!(texts(&after)[0].ends_with("\n\nthe user wants a port"));
}

#[test]
fn the_calls_of_the_last_answer_are_never_summarized() {
    let mut bodies = steps(10, 4_000);
    bodies.push(finished(vec![tool_use(99)], Usage::default()));
    let before = fold(bodies.clone());
    let compacted = ContextCompacted {
        from_seq: 1,
        to_seq: 1_000,
        summary: "s".into(),
        ..ContextCompacted::default()
    };
    let mut after = and(before, &bodies, compacted);
    assert_eq!(after.messages().len(), 2, "the summary and the open calls");
    bodies.extend([done(99, "late"), started(&[])]);
    bodies.push(started(&[]));
    for event in log(bodies).into_iter().rev().take(3).rev() {
        after.apply(&event);
    }
    assert_eq!(unanswered(after.messages()), Vec::<String>::new());
}

#[test]
fn long_results_are_cut_to_fit_and_later_ones_are_not() {
    let mut bodies = steps(4, 40_000);
    bodies.extend([
        finished(vec![tool_use(50)], Usage::default()),
        done(50, "short"),
        started(&[]),
    ]);
    let before = fold(bodies.clone());
    let plan = before.plan_truncation(10_000).unwrap();
    assert_eq!((plan.results, plan.tokens_before), (4, before.estimate_tokens()));
    assert!((8_000..10_000).contains(&plan.max_result_bytes), "{plan:?}");
    let mut after = and(before.clone(), &bodies, plan.clone());
    assert_eq!(after.estimate_tokens(), plan.tokens_after);
    assert!((9_000..=10_100).contains(&plan.tokens_after), "{plan:?}");
    assert_eq!((after.generation(), before.generation()), (1, 0));
    let results: Vec<usize> = after
        .messages()
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolResult { content, .. } => Some(content.len()),
            _ => None,
        })
        .collect();
    assert!(results.iter().all(|len| *len as u64 <= plan.max_result_bytes));
    assert_eq!(
        after.plan_truncation(10_100),
        None,
        "nothing would become shorter"
    );
    bodies.push(plan.into());
    bodies.extend([
        finished(vec![tool_use(60)], Usage::default()),
        done(60, &"z".repeat(40_000)),
        started(&[]),
    ]);
    for event in log(bodies).into_iter().rev().take(3).rev() {
        after.apply(&event);
    }
    assert_eq!(
        after.messages().last().unwrap().content,
        [result(60, &"z".repeat(40_000), false)]
    );
}

#[test]
fn no_result_is_cut_below_two_thousand_bytes() {
    let long = fold(steps(3, 9_000));
    assert_eq!(long.plan_truncation(1).unwrap().max_result_bytes, 2_000);
    assert_eq!(fold(steps(3, 1_900)).plan_truncation(1), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i3_a_shorter_conversation_has_every_pair_and_never_grows(
        bodies in prop::collection::vec(any_body(), 0..60),
        long in prop::collection::vec(0..9_000_usize, 0..6),
        counted in 0..4_000_u64,
        keep in 0..2_000_u64,
        target in 0..4_000_u64,
        cut_at in 0..80_u64,
    ) {
        let mut bodies = lawful(bodies);
        for (n, bytes) in (100_u8..).zip(long) {
            let usage = Usage { input: counted, ..Usage::default() };
            bodies.extend([started(&[]), finished(vec![tool_use(n)], usage), done(n, &"你a".repeat(bytes / 4))]);
        }
        let events = log(bodies.clone());
        for at in 0..=events.len() {
            let mut transcript = Transcript::new();
            events.iter().take(at).for_each(|event| transcript.apply(event));
            let before = transcript.clone();
            let so_far: Vec<EventBody> = bodies.iter().take(at).cloned().collect();
            let mut shorter = Vec::new();
            if let Some(plan) = before.plan_compaction(keep, target) {
                let after = and(before.clone(), &so_far, plan.clone());
                prop_assert_eq!(after.estimate_tokens(), plan.tokens_after);
                prop_assert!(plan.tokens_after < plan.tokens_before);
                shorter.push(after);
            }
            if let Some(plan) = before.plan_truncation(target) {
                let after = and(before.clone(), &so_far, plan.clone());
                prop_assert_eq!(after.estimate_tokens(), plan.tokens_after);
                prop_assert!(plan.tokens_after < plan.tokens_before);
                shorter.push(after);
            }
            let foreign = ContextCompacted {
                from_seq: 1,
                to_seq: cut_at,
                summary: "s".into(),
                ..ContextCompacted::default()
            };
            shorter.push(and(before.clone(), &so_far, foreign));
            for mut after in shorter {
                let next = started(&[]);
                let seq = at as u64 + 2;
                after.apply(&Event { seq, ..log(vec![next]).remove(0) });
                prop_assert_eq!(unanswered(after.messages()), Vec::<String>::new());
            }
        }
    }
}
