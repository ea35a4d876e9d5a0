//! Selects the parts of a log that make up the conversation after it went back to an earlier point.

use crate::transcript::Transcript;
use agentd_protocol::{Event, EventBody, Seq, SessionRewound};

/// The points at which a conversation went back, collected from the log in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewinds(Vec<(Seq, Seq)>);

impl Rewinds {
    /// Records a rewind, if the event is one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event goes back")]
    pub fn note(&mut self, event: &Event) {
        match &event.body {
            EventBody::SessionRewound(SessionRewound { to_seq, from_seq, .. }) => {
                self.0.push((*from_seq, *to_seq));
            }
            EventBody::ImportedEvent(imported) => {
                let quoted = &imported.event;
                if let EventBody::SessionRewound(rewound) = &quoted.hearsay().body {
                    let here = |named| quoted.place(named, event.seq);
                    self.0.extend(here(rewound.from_seq).zip(here(rewound.to_seq)));
                }
            }
            _ => {}
        }
    }

    /// Whether the conversation never went back.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parts of the log that make up the conversation up to `upto`: for each pair, the events after the first
    /// number up to the second, in order. Call [`Transcript::went_back`] at the end of each pair but the last.
    #[must_use]
    pub fn parts(&self, upto: Seq) -> Vec<(Seq, Seq)> {
        let mut parts = Vec::new();
        let mut end = upto;
        for (from, to) in self.0.iter().rev() {
            if *from < end {
                parts.push((*from, end));
                end = (*to).min(*from);
            }
        }
        parts.push((0, end));
        parts.reverse();
        parts
    }
}

impl Transcript {
    /// Ends this part of the conversation: inputs that have not joined never will.
    pub fn went_back(&mut self) {
        self.inputs.clear();
        self.generation = self.generation.saturating_add(1);
    }

    /// Replaces this conversation with an earlier state of it. Inputs that are waiting keep waiting; everything encoded
    /// before is invalid.
    pub fn replace(&mut self, mut earlier: Self) {
        earlier.went_back();
        // Going back into an imported log ends it here: otherwise the next event would, and drop the waiting inputs with it.
        earlier.end_quote();
        earlier.inputs.append(&mut self.inputs);
        earlier.generation = earlier.generation.max(self.generation.saturating_add(1));
        *self = earlier;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rewinds(list: &[(Seq, Seq)]) -> Rewinds {
        Rewinds(list.to_vec())
    }

    #[test]
    fn rewound_events_are_left_out_and_later_ones_kept() {
        assert_eq!(rewinds(&[]).parts(9), [(0, 9)]);
        assert_eq!(rewinds(&[(10, 5)]).parts(20), [(0, 5), (10, 20)]);
        // Goes back twice: the second time to a point after the first rewind, and to one before it.
        assert_eq!(
            rewinds(&[(10, 5), (20, 12)]).parts(30),
            [(0, 5), (10, 12), (20, 30)]
        );
        assert_eq!(rewinds(&[(10, 5), (20, 8)]).parts(30), [(0, 8), (20, 30)]);
        assert_eq!(rewinds(&[(10, 5), (20, 8)]).parts(15), [(0, 5), (10, 15)]);
    }

    proptest! {
        #[test]
        fn parts_match_a_list_that_is_truncated_and_extended(backs in prop::collection::vec((1..6_u64, 0..40_u64), 0..8)) {
            // The log as numbers: each rewind truncates the list of valid events, then two more events follow.
            let (mut head, mut alive, mut list) = (0_u64, Vec::new(), Vec::new());
            for (steps, back) in backs {
                for _ in 0..steps {
                    head += 1;
                    alive.push(head);
                }
                head += 1;
                let (from, to) = (head, back % head);
                list.push((from, to));
                // The events that were valid at that point are given by its own parts.
                alive = rewinds(&list).parts(to).into_iter().flat_map(|(a, b)| a + 1..=b).collect();
                head += 1;
                alive.push(head);
            }
            let found: Vec<u64> =
                rewinds(&list).parts(head).into_iter().flat_map(|(after, upto)| after + 1..=upto).collect();
            prop_assert_eq!(found, alive);
        }
    }
}
