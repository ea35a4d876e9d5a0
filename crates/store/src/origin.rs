//! The origin of log lines decides their use: a log of this daemon is restored as a log, a log from elsewhere is only
//! quoted. Two types prevent storing one as the other by mistake.

use crate::blob::name_of;
use crate::{EncodedEvent, StoreError};
use agentd_protocol::{EVENT_VERSION, Event, Principal, Seq, SessionId, Timestamp};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

const IMPORTED: &str = "imported.event";

/// Lines that a daemon of the same operator wrote: a fork of a stored log, or files of the mirror. Their content is
/// trusted: calls, approvals, grants, sums.
#[derive(Debug, Clone)]
pub struct OwnLog(Vec<Bytes>);

impl OwnLog {
    /// Vouches for these lines. Never use it for bytes that a client sent: those are a [`ForeignLog`].
    #[must_use]
    pub const fn vouched(lines: Vec<Bytes>) -> Self {
        Self(lines)
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Bytes] {
        &self.0
    }
}

/// Lines from an untrusted source. They are well-formed and numbered, and nothing else about them is known.
#[derive(Debug, Clone)]
pub struct ForeignLog {
    lines: Vec<Bytes>,
    from: SessionId,
}

impl ForeignLog {
    /// Checks that each line is an event of one log, none longer than `max_line` bytes.
    ///
    /// # Errors
    /// [`StoreError::BadImport`] with the number of the first invalid line.
    pub fn read(lines: Vec<Bytes>, max_line: usize) -> Result<Self, StoreError> {
        let from = session_of(lines.first(), 1)?;
        for (number, line) in (1..).zip(&lines) {
            if line.len() > max_line {
                let reason = format!("it has {} bytes, the limit is {max_line}", line.len());
                return Err(bad(number, reason));
            }
            read_line(line, number, from, from)?;
        }
        Ok(Self { lines, from })
    }

    /// The session that the lines name.
    #[must_use]
    pub const fn from(&self) -> SessionId {
        self.from
    }

    /// The number of lines.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are no lines.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The SHA-256 of the lines, each with a line feed. For an export, this is the checksum of the file.
    #[must_use]
    pub fn sum(&self) -> String {
        let whole: Vec<&[u8]> = self
            .lines
            .iter()
            .flat_map(|line| [line.as_ref(), b"\n"])
            .collect();
        name_of(&whole.concat())
    }

    /// The events in order.
    pub fn events(&self) -> impl Iterator<Item = Result<Event, StoreError>> {
        let decode = |(number, line): (Seq, &Bytes)| {
            EncodedEvent::decode(line).map_err(|error| bad(number, error.to_string()))
        };
        (1..).zip(&self.lines).map(decode)
    }

    /// The log of a new session: the importer's `head`, then each line as a quotation that decides nothing.
    ///
    /// # Errors
    /// [`StoreError::BadImport`] with the number of a line that cannot be quoted.
    pub fn quoted(
        &self,
        head: &[Event],
        session: SessionId,
        by: &Principal,
        at: Timestamp,
    ) -> Result<OwnLog, StoreError> {
        let mut own = Vec::with_capacity(head.len().saturating_add(self.lines.len()));
        for event in head {
            own.push(EncodedEvent::encode(event)?.body);
        }
        let (by, at) = (serde_json::to_string(by)?, serde_json::to_string(&at)?);
        for (number, line) in (1..).zip(&self.lines) {
            let seq = own.len() as Seq + 1;
            let text = innermost(line, number)?;
            let quoted = format!(
                r#"{{"v":{EVENT_VERSION},"session":"{session}","seq":{seq},"at":{at},"by":{by},"type":"{IMPORTED}","event":{text}}}"#
            );
            // Quoting nests a line one level deeper than in the file. It must still be readable when the session is loaded.
            EncodedEvent::decode(quoted.as_bytes()).map_err(|error| bad(number, error.to_string()))?;
            own.push(quoted.into());
        }
        Ok(OwnLog(own))
    }
}

/// The text of an event. For a line that an earlier import quoted, the text of the quoted event.
fn innermost(line: &Bytes, number: Seq) -> Result<&str, StoreError> {
    #[derive(Deserialize)]
    struct Quotation<'a> {
        #[serde(rename = "type")]
        kind: String,
        #[serde(borrow)]
        event: Option<&'a RawValue>,
    }
    let mut text = str::from_utf8(line).map_err(|error| bad(number, error.to_string()))?;
    loop {
        let read: Quotation<'_> =
            serde_json::from_str(text).map_err(|error| bad(number, error.to_string()))?;
        match read.event {
            Some(inner) if read.kind == IMPORTED => text = inner.get(),
            _ => return Ok(text),
        }
    }
}

/// The fields that the store reads; everything else stays unchanged.
#[derive(Deserialize)]
struct Envelope<'a> {
    v: u8,
    #[serde(borrow)]
    session: &'a RawValue,
    seq: Seq,
    at: Timestamp,
    #[serde(rename = "type")]
    kind: String,
}

pub(crate) fn bad(line: Seq, reason: impl Into<String>) -> StoreError {
    StoreError::BadImport {
        line,
        reason: reason.into(),
    }
}

fn envelope(line: &Bytes, number: Seq) -> Result<Envelope<'_>, StoreError> {
    serde_json::from_slice(line).map_err(|error| bad(number, format!("not an event: {error}")))
}

pub(crate) fn session_of(line: Option<&Bytes>, number: Seq) -> Result<SessionId, StoreError> {
    let line = line.ok_or_else(|| bad(number, "there are no lines"))?;
    let text = envelope(line, number)?.session.get();
    serde_json::from_str(text).map_err(|error| bad(number, format!("session: {error}")))
}

/// Checks every line and replaces its session id.
pub(crate) fn read_lines(
    lines: &[Bytes],
    from: SessionId,
    to: SessionId,
) -> Result<Vec<EncodedEvent>, StoreError> {
    (1..)
        .zip(lines)
        .map(|(number, line)| read_line(line, number, from, to))
        .collect()
}

fn read_line(line: &Bytes, number: Seq, from: SessionId, to: SessionId) -> Result<EncodedEvent, StoreError> {
    let event = envelope(line, number)?;
    if event.v > EVENT_VERSION {
        return Err(bad(
            number,
            format!("format version {} is newer than {EVENT_VERSION}", event.v),
        ));
    }
    if event.seq != number {
        return Err(bad(number, format!("seq is {}, expected {number}", event.seq)));
    }
    let begins = matches!(event.kind.as_str(), "session.created" | "session.imported");
    if number == 1 && !begins && from != SessionId::NIL {
        return Err(bad(
            number,
            format!("the first event is {}, expected session.created", event.kind),
        ));
    }
    if session_of(Some(line), number)? != from {
        return Err(bad(
            number,
            "it belongs to a different session than the first line",
        ));
    }
    if line.contains(&b'\n') {
        return Err(bad(number, "it contains a line break"));
    }
    let body = if from == to {
        line.clone()
    } else {
        with_session(line, event.session, to)
    };
    Ok(EncodedEvent {
        seq: number,
        at: event.at,
        kind: event.kind.into(),
        body,
    })
}

/// The same line with another session id. Every other byte stays the same.
fn with_session(line: &Bytes, old: &RawValue, to: SessionId) -> Bytes {
    let start = old.get().as_ptr().addr().saturating_sub(line.as_ptr().addr());
    let end = start + old.get().len();
    let (head, tail) = (
        line.get(..start).unwrap_or_default(),
        line.get(end..).unwrap_or_default(),
    );
    [head, format!("\"{to}\"").as_bytes(), tail].concat().into()
}
