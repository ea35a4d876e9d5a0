//! Events of an imported log. A log that comes from outside is history, never authority.

use crate::event::{Event, Seq};
use crate::ids::SessionId;
use crate::vocabulary::Recovered;
use serde::{Deserialize, Serialize};

/// `session.imported`: the first event of an imported session. Whoever imported it is the event's `by`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionImported {
    /// The session that the file names.
    pub from: SessionId,
    /// Where the importer has it from, in their words: usually the file's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// SHA-256 of the imported events, each with a line feed, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sum: String,
    /// How many lines it has.
    #[serde(default)]
    pub events: u64,
    /// What was open in it. None of it goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Recovered>,
    /// The kept outputs that came with it, by their names; no other name in the file means anything here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<String>,
}

/// `imported.event`: one line of an imported log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedEvent {
    /// The line as it was in the file.
    pub event: Quoted,
}

/// An event that only tells what somebody else's log says. It is not an [`Event`], so nothing folds it by accident:
/// whoever reads it has to say what for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quoted(Box<Event>);

impl Quoted {
    /// Quotes an event.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self(Box::new(event))
    }

    /// For people to look at, and for the words of the conversation. Nothing that it says is true here: not who, not
    /// what was allowed, not what was spent.
    #[must_use]
    pub const fn hearsay(&self) -> &Event {
        &self.0
    }

    /// What a position that the quoted event names is in the log that has the quotation at `seq`. `None`: no position of
    /// an earlier event.
    #[must_use]
    pub const fn place(&self, named: Seq, seq: Seq) -> Option<Seq> {
        let Some(back) = self.0.seq.checked_sub(named) else {
            return None;
        };
        seq.checked_sub(back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EVENT_VERSION, EventBody, Principal, SessionPaused, Timestamp};

    #[test]
    fn a_quotation_is_the_line_and_its_places_move_with_it() {
        let event = Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: 10,
            at: Timestamp(0),
            by: Principal::user("eve"),
            turn: None,
            body: EventBody::from(SessionPaused { reason: "x".into() }),
        };
        let quoted = Quoted::new(event.clone());
        let text = serde_json::to_string(&quoted).unwrap();
        assert_eq!(text, serde_json::to_string(&event).unwrap());
        assert_eq!(serde_json::from_str::<Quoted>(&text).unwrap(), quoted);
        assert_eq!(quoted.place(4, 12), Some(6));
        assert_eq!(quoted.place(10, 12), Some(12));
        assert_eq!(quoted.place(11, 12), None, "nothing names what comes later");
        assert_eq!(quoted.place(1, 5), None, "nor what is before the log");
    }
}
