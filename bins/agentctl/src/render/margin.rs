//! The left margin of a transcript: the number and the time of each event.

use crate::render::{Paint, clock_time, day};
use agentd_protocol::Event;

/// The contents of a transcript's left margin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Margin {
    /// The number of the event.
    pub(crate) seq: bool,
    /// The time of the event.
    pub(crate) times: bool,
    /// The day of the last event.
    day: String,
}

impl Margin {
    /// `None` if the margin would be empty.
    pub(crate) fn new(seq: bool, times: bool) -> Option<Self> {
        let day = String::new();
        (seq || times).then_some(Self { seq, times, day })
    }

    /// The lines of an event with the margin before the first one. A new day gets a line of its own.
    pub(crate) fn beside(&mut self, event: &Event, text: &str, paint: Paint) -> String {
        let mut head = String::new();
        if self.seq {
            head.push_str(&format!("{:>5}  ", event.seq));
        }
        let mut printed = String::new();
        if self.times {
            head.push_str(&format!("{}  ", clock_time(event.at)));
            let today = day(event.at);
            if self.day != today {
                printed.push_str(&format!("{}\n", paint.dim(&today)));
                self.day = today;
            }
        }
        let rest = " ".repeat(head.len());
        let mut head = paint.dim(&head);
        for line in text.split_inclusive('\n') {
            printed.push_str(std::mem::replace(&mut head, rest.clone()).as_str());
            printed.push_str(line);
        }
        printed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{EVENT_VERSION, EventBody, Principal, SessionId, Timestamp};

    #[test]
    fn each_event_has_its_number_and_moment_and_each_day_its_line() {
        let mut margin = Margin::new(true, true).unwrap();
        let mut beside = |seq, at, text| {
            let event = Event {
                v: EVENT_VERSION,
                session: SessionId::NIL,
                seq,
                at: Timestamp(at),
                by: Principal::user("ana"),
                turn: None,
                body: EventBody::Unknown,
            };
            margin.beside(&event, text, Paint::new(false))
        };
        let noon = 1_763_636_400_000;
        assert_eq!(
            beside(7, noon, "one\ntwo\n"),
            "2025-11-20\n    7  11:00:00Z  one\n                  two\n"
        );
        assert_eq!(beside(8, noon + 1_000, "three\n"), "    8  11:00:01Z  three\n");
        let tomorrow = beside(9, noon + 86_400_000, "four\n");
        assert_eq!(tomorrow, "2025-11-21\n    9  11:00:00Z  four\n");
        assert!(Margin::new(false, false).is_none());
    }
}
