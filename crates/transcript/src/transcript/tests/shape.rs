//! The form of every request for any log: damaged, cut, or hand-made.

use super::*;

/// The reason for which a strict provider would reject the messages.
pub(super) fn wrong(messages: &[Arc<Message>]) -> Option<String> {
    let lost = unanswered(messages);
    if !lost.is_empty() {
        return Some(format!(
            "calls without a result, or results without a call: {lost:?}"
        ));
    }
    if messages.first().is_some_and(|first| first.role != Role::User) {
        return Some("it begins with an answer".to_owned());
    }
    let mut ids = BTreeSet::new();
    for message in messages {
        if !message.content.iter().any(says_something) {
            return Some("an empty message".to_owned());
        }
        for block in &message.content {
            match (block, message.role) {
                (Block::ToolUse { id, .. }, Role::Assistant) if ids.insert(id.clone()) => {}
                (Block::ToolResult { .. }, Role::User) => {}
                (Block::ToolUse { .. } | Block::ToolResult { .. }, _) => {
                    return Some(format!("out of place: {block:?}"));
                }
                _ => {}
            }
        }
    }
    None
}

/// Any event, including those that no session would ever write.
pub(super) fn anything() -> impl Strategy<Value = EventBody> {
    let compacted = (0_u64..60).prop_map(|to_seq| {
        ContextCompacted {
            to_seq,
            summary: "s".into(),
            ..ContextCompacted::default()
        }
        .into()
    });
    let pruned = (0_u64..60).prop_map(|to_seq| {
        ContextPruned {
            to_seq,
            results: 1,
            tokens_before: 0,
            tokens_after: 0,
        }
        .into()
    });
    let trimmed = (0_u64..60).prop_map(|to_seq| {
        ContextTrimmed {
            to_seq,
            messages: 1,
            tokens_before: 0,
            tokens_after: 0,
        }
        .into()
    });
    let twice = (0_u8..9, 0_u8..9).prop_map(|(a, b)| {
        let blocks = vec![tool_use(a), tool_use(b), tool_use(a), result(b, "made up", false)];
        finished(blocks, Usage::default())
    });
    let long = (0_u8..40, 0_usize..4_000).prop_map(|(n, bytes)| done(n, &"x".repeat(bytes)));
    prop_oneof![6 => any_body(), 1 => compacted, 1 => pruned, 1 => trimmed, 1 => twice, 2 => long]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i3_no_request_over_any_prefix_of_any_log_has_a_shape_that_a_provider_refuses(
        bodies in prop::collection::vec(anything(), 0..60),
        max in 0..12_usize,
    ) {
        let mut events = log(bodies);
        let mut transcript = Transcript::new();
        for event in &events {
            transcript.apply(event);
            let mut next = transcript.clone();
            let joined = Event { seq: event.seq + 1, ..log(vec![started(&[0, 1, 2])]).remove(0) };
            next.apply(&joined);
            prop_assert_eq!(wrong(next.messages()), None);
            if let Some(plan) = next.plan_trimming(max) {
                let mut trimmed = next.clone();
                trimmed.apply(&Event { seq: event.seq + 2, ..log(vec![plan.clone().into()]).remove(0) });
                prop_assert_eq!(wrong(trimmed.messages()), None);
                prop_assert_eq!(trimmed.estimate_tokens(), plan.tokens_after);
                prop_assert!(trimmed.messages().len() < next.messages().len());
            }
            if let Some(plan) = next.plan_pruning(50, 1) {
                let mut pruned = next.clone();
                pruned.apply(&Event { seq: event.seq + 2, ..log(vec![plan.clone().into()]).remove(0) });
                prop_assert_eq!(wrong(pruned.messages()), None);
                prop_assert_eq!(pruned.estimate_tokens(), plan.tokens_after);
                prop_assert_eq!(pruned.plan_pruning(50, 1), None, "once is enough");
            }
        }
        // Folding again gives the same result.
        let mut again = Transcript::new();
        events.drain(..).for_each(|event| again.apply(&event));
        prop_assert_eq!(again, transcript);
    }
}

#[test]
fn i3_missing_results_are_added_before_the_next_answer() {
    let transcript = fold(vec![
        input(1, "go"),
        started(&[1]),
        finished(vec![tool_use(1)], Usage::default()),
        finished(vec![Block::text("I am done.")], Usage::default()),
    ]);
    assert_eq!(transcript.messages().len(), 4);
    assert_eq!(wrong(transcript.messages()), None);
}

#[test]
fn i3_a_duplicate_call_is_kept_once() {
    let transcript = fold(vec![
        input(1, "go"),
        started(&[1]),
        finished(vec![tool_use(1), tool_use(1)], Usage::default()),
        done(1, "one"),
        started(&[]),
        finished(vec![tool_use(1), Block::text("again")], Usage::default()),
        started(&[]),
    ]);
    assert_eq!(wrong(transcript.messages()), None);
    assert_eq!(transcript.messages()[3].content, [Block::text("again")]);
}

#[test]
fn a_conversation_that_begins_with_an_answer_is_given_a_beginning() {
    let transcript = fold(vec![finished(vec![Block::text("Hello.")], Usage::default())]);
    assert_eq!(
        transcript.messages()[0].content,
        [Block::text(
            "[agentd] The beginning of this conversation is missing."
        )]
    );
}
