//! Events of an imported log. A log from outside is history, never authority.

use crate::event::{Event, Seq};
use crate::ids::SessionId;
use crate::vocabulary::Recovered;
use serde::{Deserialize, Serialize};

/// `session.imported`: the first event of an imported session. The event's `by` is the importer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionImported {
    /// The session id in the imported file.
    pub from: SessionId,
    /// Where the log comes from, in the importer's words: usually a file name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// SHA-256 in hex of the imported events, each with a line feed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sum: String,
    /// The number of imported lines.
    #[serde(default)]
    pub events: u64,
    /// The work that was open at the end of the log. None of it continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Recovered>,
    /// The names of the kept outputs in the file; no other blob name in the file is valid here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<String>,
}

/// `imported.event`: one line of an imported log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ImportedEvent {
    /// The line as it stood in the file.
    #[cfg_attr(feature = "schema", schema(no_recursion, value_type = Event))]
    pub event: Quoted,
}

/// An event that only reports what a foreign log says. It is not an [`Event`], so nothing folds it by accident:
/// every reader must state its purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quoted(Box<Event>);

impl Quoted {
    /// Quotes an event.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self(Box::new(event))
    }

    /// The event, for display and for the text of the conversation. Do not trust it: neither its author, nor its
    /// permissions, nor its costs.
    #[must_use]
    pub const fn hearsay(&self) -> &Event {
        &self.0
    }

    /// Translates a position that the quoted event names into the log that has the quotation at `seq`. `None`: it is no
    /// position of an earlier event.
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
