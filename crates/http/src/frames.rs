//! Pushed frames as server-sent events. An event travels as its stored JSON line.

use agentd_api::Push;
use bytes::{BufMut as _, BytesMut};
use serde::Serialize;
use serde_json::json;

/// Numbers the events of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ids {
    /// By seq: each event has the one after the last.
    Session(u64),
    /// By the fleet's cursor.
    Fleet,
}

impl Ids {
    /// Adds a frame; returns whether it is the last one.
    pub(crate) fn add(&mut self, out: &mut BytesMut, push: &Push) -> bool {
        match push {
            Push::Event { json, cursor } => {
                let id = match self {
                    Self::Session(seq) => {
                        *seq += 1;
                        Some(*seq)
                    }
                    Self::Fleet => *cursor,
                };
                if let Some(id) = id {
                    out.put_slice(format!("id: {id}\n").as_bytes());
                }
                out.put_slice(b"data: ");
                out.put_slice(json);
                out.put_slice(b"\n\n");
            }
            Push::Delta(delta) => named(out, "delta", delta.as_ref()),
            Push::Synced(synced) => named(out, "synced", synced),
            Push::CaughtUp(caught_up) => named(out, "synced", caught_up),
            Push::Lagged(lagged) => named(out, "lagged", lagged),
            Push::Ended { code, message, .. } => {
                ended(out, code, message);
                return true;
            }
        }
        false
    }
}

/// Adds the last frame of a stream.
pub(crate) fn ended(out: &mut BytesMut, code: &str, message: &str) {
    named(out, "ended", &json!({"code": code, "message": message}));
}

fn named(out: &mut BytesMut, name: &str, data: &impl Serialize) {
    out.put_slice(b"event: ");
    out.put_slice(name.as_bytes());
    out.put_slice(b"\ndata: ");
    // Data that cannot be written is a bug; the client sees an event without all its data.
    let _ = serde_json::to_writer((&mut *out).writer(), data);
    out.put_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::Lagged;
    use bytes::Bytes;

    #[test]
    fn i2_an_event_is_its_stored_line_with_its_seq_as_id() {
        let mut out = BytesMut::new();
        let mut ids = Ids::Session(7);
        let event = |cursor| Push::Event {
            json: Bytes::from_static(b"{\"seq\":8}"),
            cursor,
        };
        assert!(!ids.add(&mut out, &event(None)));
        assert!(!ids.add(&mut out, &Push::Lagged(Lagged { after_seq: 8 })));
        assert!(!Ids::Fleet.add(&mut out, &event(Some(99))));
        let text = String::from_utf8(out.to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 8\ndata: {\"seq\":8}\n\nevent: lagged\ndata: {\"after_seq\":8}\n\nid: 99\ndata: {\"seq\":8}\n\n"
        );
    }
}
