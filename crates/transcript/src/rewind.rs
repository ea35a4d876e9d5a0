//! Which parts of a log a conversation is made of, when it went back to an earlier point.

use crate::transcript::Transcript;
use agentd_protocol::{Event, EventBody, Seq, SessionRewound};

/// The times that a conversation went back. Collected from the log, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewinds(Vec<(Seq, Seq)>);

impl Rewinds {
    /// Takes note of an event.
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

    /// It never went back.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the conversation up to `upto` is made of: events after the first number of each pair up to the second, in
    /// order. At the end of each pair but the last, [`Transcript::went_back`] is to be told.
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
    /// The conversation ends here for now: inputs that had not joined never will.
    pub fn went_back(&mut self) {
        self.inputs.clear();
        self.generation = self.generation.saturating_add(1);
    }

    /// Takes the place of a conversation that went on. Inputs that wait there wait here; nothing that was encoded before
    /// is of use.
    pub fn replace(&mut self, mut earlier: Self) {
        earlier.went_back();
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
    fn what_was_taken_back_is_left_out_and_what_came_after_is_not() {
        assert_eq!(rewinds(&[]).parts(9), [(0, 9)]);
        assert_eq!(rewinds(&[(10, 5)]).parts(20), [(0, 5), (10, 20)]);
        // Twice, the second time to a point after the first, and to one before it.
        assert_eq!(
            rewinds(&[(10, 5), (20, 12)]).parts(30),
            [(0, 5), (10, 12), (20, 30)]
        );
        assert_eq!(rewinds(&[(10, 5), (20, 8)]).parts(30), [(0, 8), (20, 30)]);
        assert_eq!(rewinds(&[(10, 5), (20, 8)]).parts(15), [(0, 5), (10, 15)]);
    }

    proptest! {
        #[test]
        fn parts_are_what_a_list_that_is_cut_and_goes_on_has(backs in prop::collection::vec((1..6_u64, 0..40_u64), 0..8)) {
            // The log as numbers: each going back cuts the list of what counts, then two more events come.
            let (mut head, mut alive, mut list) = (0_u64, Vec::new(), Vec::new());
            for (steps, back) in backs {
                for _ in 0..steps {
                    head += 1;
                    alive.push(head);
                }
                head += 1;
                let (from, to) = (head, back % head);
                list.push((from, to));
                // What counted at that point is what its own parts say.
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
