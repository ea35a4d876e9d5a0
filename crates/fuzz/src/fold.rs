//! Logs: any sequence of events is folded or refused, in one part or in two, and folding is deterministic.

use agentd_protocol::Event;
use agentd_transcript::{Rewinds, Transcript};
use agentd_turn::{Agent, Config};
use std::sync::Arc;

/// Parses the events of a log. The first byte of a line that is no event removes, repeats or swaps earlier events, so
/// that byte mutations become sequence mutations.
fn events(bytes: &[u8]) -> Vec<Event> {
    let mut found: Vec<Event> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match serde_json::from_slice::<Event>(line) {
            Ok(event) => found.push(event),
            Err(_) => disturb(&mut found, line),
        }
    }
    let session = found.first().map(|first| first.session);
    for (seq, event) in (1..).zip(&mut found) {
        event.seq = seq;
        event.session = session.unwrap_or(event.session);
    }
    found
}

fn disturb(found: &mut Vec<Event>, line: &[u8]) {
    let Some(byte) = line.first() else { return };
    let Some(back) = found.len().checked_sub(usize::from(byte % 16) + 1) else {
        return;
    };
    match byte / 16 % 3 {
        0 => {
            found.remove(back);
        }
        1 => {
            let again = found[back].clone();
            found.push(again);
        }
        _ => {
            let last = found.len() - 1;
            found.swap(back, last);
        }
    }
}

pub(crate) fn holds(bytes: &[u8]) {
    let events = events(bytes);
    let Some(first) = events.first() else { return };
    let config = Arc::new(Config::default());
    let mut transcript = Transcript::new();
    let mut rewinds = Rewinds::default();
    for event in &events {
        transcript.apply(event);
        rewinds.note(event);
    }
    let head = events.len() as u64;
    let mut before = 0;
    for (after, upto) in rewinds.parts(head) {
        assert!(after <= upto && upto <= head, "a part of the log is in the log");
        assert!(before <= after, "parts are in order");
        before = upto;
    }
    let Ok(agent) = Agent::fold(first.session, Arc::clone(&config), &events) else {
        return;
    };
    let half = events.len() / 2;
    let mut stepwise = Agent::fold(first.session, config, &events[..half]).expect("a prefix folds");
    for event in &events[half..] {
        stepwise.apply(event).expect("what folds, folds in two parts");
    }
    assert!(
        stepwise.durable() == agent.durable(),
        "folding in two parts changes nothing"
    );
}
