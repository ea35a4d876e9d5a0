//! The state of the in-memory backend, and how an append changes it. Pure.

use crate::access::{MAX_TOKENS, carries};
use crate::backend::{KEY_LIFE_MS, PageBuilder, WatchedBuilder, id_part};
use crate::{
    Append, Blob, Charge, Claim, Direction, EncodedEvent, IdempotencyKey, Outcome, Page, Range, Row,
    Spending, StoreError, StoredKey, StoredToken, Watched, WatchedEvent,
};
use agentd_protocol::{AppendId, Labels, Principal, RunState, Seq, SessionId, Summary, Timestamp};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sessions: BTreeMap<SessionId, Session>,
    stream: BTreeMap<u64, (SessionId, Seq)>,
    cursor: u64,
    keys: BTreeMap<(Principal, String), (StoredKey, Timestamp)>,
    pub(super) blobs: BTreeMap<String, Bytes>,
    charges: BTreeMap<String, Charge>,
    pub(super) spent: Vec<Spending>,
    pub(super) tokens: BTreeMap<String, StoredToken>,
    pub(super) node: u64,
    pub(super) node_expires: Timestamp,
    pub(super) closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    epoch: u64,
    events: BTreeMap<Seq, EncodedEvent>,
    appends: BTreeMap<AppendId, Seq>,
    summary: Option<Summary>,
    deleted: Option<Timestamp>,
    /// The names of the blobs that the session keeps alive.
    blobs: BTreeSet<String>,
}

impl Session {
    fn head(&self) -> Seq {
        self.events.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    pub(super) fn row(&self) -> Option<Row> {
        let summary = self.summary.clone()?;
        Some(Row {
            summary,
            epoch: self.epoch,
            head: self.head(),
            damaged: false,
        })
    }
}

impl State {
    fn live(&self, session: SessionId) -> Option<&Session> {
        self.sessions
            .get(&session)
            .filter(|found| found.deleted.is_none())
    }

    fn live_mut(&mut self, session: SessionId) -> Result<&mut Session, StoreError> {
        let found = self
            .sessions
            .get_mut(&session)
            .filter(|found| found.deleted.is_none());
        found.ok_or(StoreError::NotFound(session))
    }

    pub(super) const fn cursor(&self) -> u64 {
        self.cursor
    }

    pub(super) fn append(&mut self, append: Append, now: Timestamp) -> Outcome {
        match self.sessions.get(&append.session) {
            None if append.epoch == 1 && append.expected_head == 0 => {}
            None => return Outcome::Fenced { epoch: 0, head: 0 },
            Some(found) => {
                if let Some(head) = found.appends.get(&append.append_id) {
                    return Outcome::Duplicate { head: *head };
                }
                let (epoch, head) = (found.epoch, found.head());
                if found.deleted.is_some() || epoch != append.epoch || head != append.expected_head {
                    return Outcome::Fenced { epoch, head };
                }
            }
        }
        if let Some(taken) = append.keys.iter().find_map(|key| self.taken(key, now)) {
            return taken;
        }
        self.write(append, now)
    }

    fn taken(&self, key: &IdempotencyKey, now: Timestamp) -> Option<Outcome> {
        let stored = self.key(&key.principal, &key.key, now)?;
        let same_body = stored.method == key.method && stored.body_hash == key.body_hash;
        Some(Outcome::KeyTaken {
            answer: stored.answer,
            same_body,
        })
    }

    fn write(&mut self, append: Append, now: Timestamp) -> Outcome {
        let head = append.head();
        for event in &append.events {
            self.cursor += 1;
            self.stream.insert(self.cursor, (append.session, event.seq));
        }
        let names: BTreeSet<String> = append.blobs.iter().map(|blob| blob.name().to_owned()).collect();
        for blob in append.blobs {
            self.blobs.insert(blob.name().to_owned(), blob.bytes().clone());
        }
        for charge in append.charges {
            let account = self.charges.entry(charge.account.clone()).or_default();
            account.tokens = account.tokens.saturating_add(charge.tokens);
            account.micro_usd = account.micro_usd.saturating_add(charge.micro_usd);
            account.account = charge.account;
        }
        for key in append.keys {
            let stored = StoredKey {
                method: key.method,
                body_hash: key.body_hash,
                answer: key.answer,
            };
            self.keys.insert((key.principal, key.key), (stored, now));
        }
        let session = self.sessions.entry(append.session).or_insert_with(|| Session {
            epoch: 1,
            ..Session::default()
        });
        session.blobs.extend(names);
        session
            .events
            .extend(append.events.into_iter().map(|event| (event.seq, event)));
        session.appends.insert(append.append_id, head);
        session.summary = append.summary.or_else(|| session.summary.take());
        Outcome::Committed {
            head,
            cursor: self.cursor,
        }
    }

    pub(super) fn load(&self, session: SessionId, range: Range) -> Result<Page, StoreError> {
        let found = self.live(session).ok_or(StoreError::NotFound(session))?;
        let mut page = PageBuilder::new(found.head(), &range);
        let upto = range.upto.unwrap_or(found.head());
        if upto <= range.after {
            return Ok(page.done());
        }
        let part = found.events.range(range.after + 1..=upto);
        let part: Box<dyn Iterator<Item = (&Seq, &EncodedEvent)>> = match range.direction {
            Direction::Forward => Box::new(part),
            Direction::Backward => Box::new(part.rev()),
        };
        for (seq, event) in part {
            if !page.add(*seq, event.body.clone(), true) {
                break;
            }
        }
        Ok(page.done())
    }

    pub(super) fn row(&self, session: SessionId) -> Option<Row> {
        self.live(session)?.row()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (SessionId, &Session, &Summary)> {
        let live = self
            .sessions
            .iter()
            .rev()
            .filter(|(_, session)| session.deleted.is_none());
        live.filter_map(|(id, session)| Some((*id, session, session.summary.as_ref()?)))
    }

    pub(super) fn resolve(&self, text: &str, labels: &Labels) -> Vec<(SessionId, String)> {
        let hex = id_part(text);
        let rank = |id: &SessionId, summary: &Summary| {
            let uid = id.to_string().replace('-', "");
            match &hex {
                Some(hex) if uid == *hex => 3,
                _ if summary.name == text => 2,
                Some(hex) if uid.starts_with(hex) || uid.ends_with(hex) || shown_begins(&uid, hex) => 1,
                _ => 0,
            }
        };
        let ranked = self
            .rows()
            .filter(|(_, _, summary)| carries(&summary.labels, labels))
            .map(|(id, _, summary)| (rank(&id, summary), id, summary.name.clone()));
        let ranked: Vec<_> = ranked.filter(|(rank, _, _)| *rank > 0).collect();
        let best = ranked.iter().map(|(rank, _, _)| *rank).max();
        let best = ranked.into_iter().filter(|(rank, _, _)| Some(*rank) == best);
        best.map(|(_, id, name)| (id, name)).take(10).collect()
    }

    pub(super) fn count(&self) -> u64 {
        self.rows().count() as u64
    }

    pub(super) fn states(&self, of: Option<&[SessionId]>) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (id, _, summary) in self.rows() {
            let state = summary.status.state;
            if state != RunState::Closed && of.is_none_or(|of| of.contains(&id)) {
                *counts.entry(state.as_str().to_owned()).or_default() += 1;
            }
        }
        counts
    }

    pub(super) fn key(&self, principal: &Principal, key: &str, now: Timestamp) -> Option<StoredKey> {
        let (stored, at) = self.keys.get(&(principal.clone(), key.to_owned()))?;
        (now.since_ms(*at) < KEY_LIFE_MS).then(|| stored.clone())
    }

    pub(super) fn add_token(&mut self, token: StoredToken, forget: Timestamp) -> bool {
        self.tokens.retain(|_, kept| !kept.ended_before(forget));
        let full = self.tokens.len() >= MAX_TOKENS;
        let taken = self.tokens.contains_key(&token.name);
        if !full && !taken {
            self.tokens.insert(token.name.clone(), token);
        }
        !full && !taken
    }

    pub(super) fn blob_within(&self, name: &str, labels: &Labels) -> bool {
        let mut users = self.sessions.values();
        users.any(|session| {
            let summary = session.summary.as_ref().filter(|_| session.deleted.is_none());
            session.blobs.contains(name) && summary.is_some_and(|it| carries(&it.labels, labels))
        })
    }

    pub(super) fn put_blob(&mut self, session: SessionId, blob: &Blob) -> Result<(), StoreError> {
        self.live_mut(session)?.blobs.insert(blob.name().to_owned());
        self.blobs.insert(blob.name().to_owned(), blob.bytes().clone());
        Ok(())
    }

    pub(super) fn share_blobs(&mut self, from: SessionId, to: SessionId) -> Result<(), StoreError> {
        let shared = self.live_mut(from)?.blobs.clone();
        self.live_mut(to)?.blobs.extend(shared);
        Ok(())
    }

    pub(super) fn watch(&self, after: Option<u64>, limit: u32) -> Watched {
        let Some(after) = after else {
            return Watched {
                events: Vec::new(),
                cursor: self.cursor,
            };
        };
        let mut watched = WatchedBuilder::new(after, limit);
        for (cursor, (id, seq)) in self.stream.range(after.saturating_add(1)..) {
            let Some(event) = self.live(*id).and_then(|session| session.events.get(seq)) else {
                continue;
            };
            let event = WatchedEvent {
                cursor: *cursor,
                session: *id,
                seq: *seq,
                kind: event.kind.clone().into_owned(),
                body: event.body.clone(),
            };
            if !watched.add(event) {
                break;
            }
        }
        watched.done()
    }

    pub(super) fn charged(&self, account: &str) -> Charge {
        let none = || Charge {
            account: account.to_owned(),
            ..Charge::default()
        };
        self.charges.get(account).cloned().unwrap_or_else(none)
    }

    pub(super) fn delete(&mut self, session: SessionId, now: Timestamp) -> bool {
        let Ok(found) = self.live_mut(session) else {
            return false;
        };
        found.deleted = Some(now);
        found.epoch += 1;
        let spent = found.summary.as_ref().map(Spending::of);
        if let Some(spent) = spent.filter(|spent| !spent.is_nothing()) {
            self.remember(spent);
        }
        true
    }

    fn remember(&mut self, spent: Spending) {
        let same = |a: &Spending, b: &Spending| a.model == b.model && a.labels == b.labels;
        let sums = &self.spent;
        let placed = spent.placed(sums.len(), |spent| {
            Ok::<_, Infallible>(sums.iter().any(|sum| same(sum, spent)))
        });
        let Ok(spent) = placed;
        match self.spent.iter_mut().find(|sum| same(sum, &spent)) {
            Some(sum) => sum.add(&spent),
            None => self.spent.push(spent),
        }
    }

    /// Blobs stay: this backend ends with its process.
    pub(super) fn purge(&mut self, before: Timestamp, now: Timestamp) -> u64 {
        self.keys.retain(|_, (_, at)| now.since_ms(*at) < KEY_LIFE_MS);
        let held = self.sessions.len();
        self.sessions
            .retain(|_, session| session.deleted.is_none_or(|at| at >= before));
        let sessions = &self.sessions;
        self.stream.retain(|_, (id, _)| sessions.contains_key(id));
        let used: BTreeSet<&String> = sessions.values().flat_map(|session| &session.blobs).collect();
        self.blobs.retain(|name, _| used.contains(name));
        (held - self.sessions.len()) as u64
    }

    pub(super) fn events(&self) -> u64 {
        self.sessions
            .values()
            .map(|session| session.events.len() as u64)
            .sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        let events = self.sessions.values().flat_map(|session| session.events.values());
        events.map(|event| event.body.len() as u64).sum()
    }

    pub(super) fn claim(&mut self, session: SessionId) -> Result<Claim, StoreError> {
        let found = self.live_mut(session)?;
        found.epoch += 1;
        Ok(Claim {
            epoch: found.epoch,
            head: found.head(),
            row_damaged: false,
            moved_to: None,
            away: None,
        })
    }
}

/// Whether the last 12 digits, which the user interfaces show, begin with this text.
fn shown_begins(uid: &str, hex: &str) -> bool {
    uid.get(20..).is_some_and(|shown| shown.starts_with(hex))
}
