//! Pushed frames as server-sent events. An event travels as its stored JSON line.

use agentd_api::{Push, Pushed};
use agentd_protocol::Fault;
use bytes::{BufMut as _, BytesMut};
use serde::Serialize;
use serde_json::json;

/// Numbers the events of a stream.
#[derive(Debug)]
pub(crate) enum Ids {
    /// By seq: each event has the one after the last.
    Session(u64),
    /// By the fleet's cursor.
    Fleet,
    /// By the positions of all that it follows.
    Several(Several),
}

impl Ids {
    /// Adds a frame; returns whether it is the last one.
    pub(crate) fn add(&mut self, out: &mut BytesMut, Pushed { sub, push }: &Pushed) -> bool {
        let id = match (self, push) {
            (Self::Several(several), _) => return several.frame(out, *sub, push),
            (Self::Session(seq), Push::Event { .. }) => {
                *seq += 1;
                Some(*seq)
            }
            (Self::Fleet, Push::Event { cursor, .. }) => *cursor,
            _ => None,
        };
        if let Some(id) = id {
            out.put_slice(format!("id: {id}\n").as_bytes());
        }
        match push {
            Push::Event { json, .. } => event(out, json),
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

/// The feeds of a stream of several sessions and the fleet, and the client's position in each.
#[derive(Debug)]
pub(crate) struct Several {
    mark: String,
    all: Vec<Followed>,
}

/// A session, or the fleet.
#[derive(Debug)]
pub(crate) struct Followed {
    sub: u64,
    session: Option<String>,
    at: u64,
    open: bool,
}

/// A frame about one of several sessions.
#[derive(Serialize)]
struct Of<'a, T> {
    session: &'a str,
    #[serde(flatten)]
    frame: &'a T,
}

impl Followed {
    pub(crate) const fn session(sub: u64, session: String, at: u64) -> Self {
        Self {
            sub,
            session: Some(session),
            at,
            open: true,
        }
    }

    pub(crate) const fn fleet(sub: u64, at: u64) -> Self {
        Self {
            sub,
            session: None,
            at,
            open: true,
        }
    }

    /// Adds a frame with its session, or as one of the fleet.
    fn named(&self, out: &mut BytesMut, name: &str, frame: &impl Serialize) {
        match &self.session {
            Some(session) => named(out, name, &Of { session, frame }),
            None => named(out, &format!("fleet.{name}"), frame),
        }
    }
}

impl Several {
    pub(crate) const fn new(mark: String) -> Self {
        Self {
            mark,
            all: Vec::new(),
        }
    }

    /// Adds what is followed, in the order of the query.
    pub(crate) fn add(&mut self, new: Followed) -> Result<(), Fault> {
        if let Some(session) = &new.session
            && self.all.iter().any(|known| known.session == new.session)
        {
            let message = format!("params: sessions: {session} is named twice");
            return Err(Fault::invalid("bad_params", message));
        }
        self.all.push(new);
        Ok(())
    }

    /// Adds the frame of a subscription; returns whether it is the last one of all.
    fn frame(&mut self, out: &mut BytesMut, sub: u64, push: &Push) -> bool {
        let Some(one) = self.all.iter_mut().find(|one| one.sub == sub) else {
            return false;
        };
        match push {
            Push::Event { cursor, .. } => one.at = cursor.unwrap_or(one.at + 1),
            Push::CaughtUp(caught_up) => one.at = caught_up.cursor,
            Push::Ended { .. } => one.open = false,
            _ => {}
        }
        if matches!(push, Push::Event { .. } | Push::CaughtUp(_)) {
            self.id(out);
        }
        let Some(one) = self.all.iter().find(|one| one.sub == sub) else {
            return false;
        };
        match push {
            Push::Event { json, .. } => {
                if one.session.is_none() {
                    out.put_slice(b"event: fleet\n");
                }
                event(out, json);
            }
            Push::Delta(delta) => one.named(out, "delta", delta.as_ref()),
            Push::Synced(synced) => one.named(out, "synced", synced),
            Push::CaughtUp(caught_up) => one.named(out, "synced", caught_up),
            Push::Lagged(lagged) => one.named(out, "lagged", lagged),
            // It ends all of them.
            Push::Ended {
                code: code @ "revoked",
                message,
                ..
            } => {
                ended(out, code, message);
                return true;
            }
            Push::Ended { code, message, .. } => {
                one.named(out, "ended", &json!({"code": code, "message": message}));
            }
        }
        self.all.iter().all(|one| !one.open)
    }

    /// Adds the positions of all, in the order of the query.
    fn id(&self, out: &mut BytesMut) {
        out.put_slice(format!("id: {}", self.mark).as_bytes());
        for one in &self.all {
            out.put_slice(format!(".{}", one.at).as_bytes());
        }
        out.put_u8(b'\n');
    }
}

fn event(out: &mut BytesMut, json: &[u8]) {
    out.put_slice(b"data: ");
    out.put_slice(json);
    out.put_slice(b"\n\n");
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
    use agentd_protocol::CaughtUp;
    use agentd_protocol::Lagged;
    use bytes::Bytes;

    const fn pushed(sub: u64, push: Push) -> Pushed {
        Pushed { sub, push }
    }

    const fn event(cursor: Option<u64>) -> Push {
        Push::Event {
            json: Bytes::from_static(b"{\"seq\":8}"),
            cursor,
        }
    }

    const fn over(code: &'static str) -> Push {
        Push::Ended {
            code,
            message: String::new(),
            cursor: None,
        }
    }

    #[test]
    fn i2_an_event_is_its_stored_line_with_its_seq_as_id() {
        let mut out = BytesMut::new();
        let mut ids = Ids::Session(7);
        assert!(!ids.add(&mut out, &pushed(1, event(None))));
        assert!(!ids.add(&mut out, &pushed(1, Push::Lagged(Lagged { after_seq: 8 }))));
        assert!(!Ids::Fleet.add(&mut out, &pushed(1, event(Some(99)))));
        let text = String::from_utf8(out.to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 8\ndata: {\"seq\":8}\n\nevent: lagged\ndata: {\"after_seq\":8}\n\nid: 99\ndata: {\"seq\":8}\n\n"
        );
    }

    #[test]
    fn i2_ids_of_a_combined_stream_hold_all_positions_and_frames_name_their_session() {
        let mut several = Several::new("m".to_owned());
        several.add(Followed::session(1, "a".to_owned(), 7)).unwrap();
        several.add(Followed::session(2, "b".to_owned(), 0)).unwrap();
        several.add(Followed::fleet(3, 50)).unwrap();
        let twice = several.add(Followed::session(4, "a".to_owned(), 7));
        assert_eq!(twice.unwrap_err().code, "bad_params");
        let mut ids = Ids::Several(several);
        let mut out = BytesMut::new();
        for (sub, push) in [
            (1, event(None)),
            (3, event(Some(99))),
            (2, Push::Lagged(Lagged { after_seq: 0 })),
            (2, event(None)),
            (3, Push::CaughtUp(CaughtUp { cursor: 120 })),
            (1, over("deleted")),
            (2, over("deleted")),
        ] {
            assert!(!ids.add(&mut out, &pushed(sub, push)));
        }
        assert!(
            ids.add(&mut out, &pushed(3, over("failed"))),
            "nothing is left to follow"
        );
        let text = String::from_utf8(out.to_vec()).unwrap();
        let seen: Vec<&str> = text.trim().split("\n\n").collect();
        assert_eq!(
            seen,
            [
                "id: m.8.0.50\ndata: {\"seq\":8}",
                "id: m.8.0.99\nevent: fleet\ndata: {\"seq\":8}",
                "event: lagged\ndata: {\"session\":\"b\",\"after_seq\":0}",
                "id: m.8.1.99\ndata: {\"seq\":8}",
                "id: m.8.1.120\nevent: fleet.synced\ndata: {\"cursor\":120}",
                "event: ended\ndata: {\"session\":\"a\",\"code\":\"deleted\",\"message\":\"\"}",
                "event: ended\ndata: {\"session\":\"b\",\"code\":\"deleted\",\"message\":\"\"}",
                "event: fleet.ended\ndata: {\"code\":\"failed\",\"message\":\"\"}",
            ]
        );
    }

    #[test]
    fn the_end_of_the_token_ends_the_stream() {
        let mut several = Several::new("m".to_owned());
        several.add(Followed::session(1, "a".to_owned(), 7)).unwrap();
        several.add(Followed::fleet(3, 50)).unwrap();
        let mut out = BytesMut::new();
        assert!(several.frame(&mut out, 3, &over("revoked")));
        assert!(out.starts_with(b"event: ended\ndata: {\"code\""), "{out:?}");
    }
}
