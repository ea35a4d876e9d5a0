//! `session.attach`: replays the log, sends `synced`, then follows live; after a lag it replays the log again (I2).

use crate::api::{Api, read_from};
use crate::batch::news;
use crate::crowd::Member;
use crate::family::open_in_tree;
use crate::live::{Out, Push, Pushed, Stop, patiently};
use crate::params::read_params;
use crate::peers::Relay;
use crate::replay::{BATCH, FeedSubscription, Wish};
use crate::sight::Caller;
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg};
use agentd_protocol::{AttachParams, Fault, Lagged, Principal, Seq, SessionId, Subscribed, Synced};
use agentd_store::{Range, Row};
use serde_json::Value;
use std::convert::Infallible;
use tokio::sync::mpsc;

/// One page of a replay.
const PAGE_EVENTS: u32 = 256;
const PAGE_BYTES: u32 = 1 << 20;

/// A viewer of one session. [`Self::run`] does the work; dropping it ends the subscription.
#[derive(Debug)]
pub struct Attachment {
    who: Caller,
    store: Handle<StoreMsg>,
    feed: Handle<FeedMsg>,
    wish: Wish,
    subscription: FeedSubscription,
    /// The last seq that was pushed.
    seen: Seq,
    member: Member,
    /// The session may be, or move, elsewhere.
    _relays: Vec<Relay>,
}

impl Api {
    /// Starts following a session. It subscribes to the feed before it reads anything from the log, so that nothing can be
    /// lost between the two. It never wakes the session.
    ///
    /// # Errors
    /// The fault that the client gets.
    pub async fn attach(&self, who: &Principal, params: Value) -> Result<(Subscribed, Attachment), Fault> {
        let who = self.allow(who, "session.attach")?;
        let params: AttachParams = read_params(params)?;
        let (_, row) = self.row_of(&who, &params.session).await?;
        let head = row.head;
        let seen = match (params.tail, params.after_seq) {
            (Some(tail), _) => head.saturating_sub(u64::from(tail)),
            (None, after) => after.unwrap_or(0),
        };
        if seen > head {
            return Err(Fault::invalid(
                "seq_ahead",
                format!("the log ends at {head}; cannot continue after {seen}"),
            ));
        }
        let queue = usize::try_from(self.loaded().settings.limits.attach_ring).unwrap_or(usize::MAX);
        let wish = Wish {
            session: row.summary.session,
            viewer: self.next_viewer(),
            deltas: params.deltas,
            decides: params.decides,
            queue: queue.clamp(8, 65_536),
        };
        let subscription = FeedSubscription::take(&self.parts.feed, wish, head).await?;
        let (store, feed) = (self.parts.store.clone(), self.parts.feed.clone());
        Ok((
            Subscribed {
                sub: wish.viewer,
                head,
            },
            Attachment {
                who,
                store,
                feed,
                wish,
                subscription,
                seen,
                member: self.crowds.join(wish.session),
                _relays: self.relays(wish.session, params.deltas, params.decides),
            },
        ))
    }
}

impl Attachment {
    /// The id of the subscription.
    #[must_use]
    pub const fn sub(&self) -> u64 {
        self.wish.viewer
    }

    /// The session that it follows.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.wish.session
    }

    /// Pushes until the viewer is gone or the subscription ends.
    pub async fn run(mut self, queue: mpsc::Sender<Pushed>) {
        let gone = queue.clone();
        let out = Out {
            sub: self.sub(),
            queue,
        };
        let who = self.who.clone();
        let stop = tokio::select! {
            Err(stop) = self.follow(&out) => stop,
            () = who.ended() => Stop::revoked(),
            () = gone.closed() => Stop::ViewerGone,
        };
        if let Stop::Ended(code, message) = stop {
            // The viewer may be gone by now.
            let _ = out
                .push(Push::Ended {
                    code,
                    message,
                    cursor: None,
                })
                .await;
        }
    }

    async fn follow(&mut self, out: &Out) -> Result<Infallible, Stop> {
        loop {
            self.catch_up(out).await?;
            self.stay(out).await?;
            out.push(Push::Lagged(Lagged { after_seq: self.seen })).await?;
            self.take_place().await?;
        }
    }

    async fn take_place(&mut self) -> Result<(), Stop> {
        self.subscription.give_up();
        let (feed, wish, seen) = (&self.feed, self.wish, self.seen);
        self.subscription = patiently(|| FeedSubscription::take(feed, wish, seen)).await?;
        Ok(())
    }

    /// Reads the log up to its head and sends the status at that point.
    async fn catch_up(&mut self, out: &Out) -> Result<(), Stop> {
        let row = loop {
            let row = self.row().await?;
            if row.head > self.seen {
                self.replay(row.head, out).await?;
            } else if self.subscription.align(self.seen).await {
                break row;
            } else {
                self.take_place().await?;
            }
        };
        let status = row.summary.status.clone();
        let approvals = patiently(|| open_in_tree(&self.store, &self.who, row.summary.clone())).await?;
        let synced = Synced {
            seq: self.seen,
            status: self.subscription.status.take().unwrap_or(status),
            approvals,
            partial: self.subscription.partial.take(),
        };
        out.push(Push::Synced(Box::new(synced))).await
    }

    async fn row(&self) -> Result<Row, Stop> {
        let session = self.wish.session;
        let found = patiently(|| read_from(&self.store, |done| Read::Row { session, done })).await?;
        let found = found.filter(|row| self.who.sees(&row.summary.labels));
        found.ok_or_else(|| Stop::Ended("deleted", "the session was deleted".to_owned()))
    }

    /// Ends when new labels hide the session from the caller.
    async fn check(&self, kind: &str) -> Result<(), Stop> {
        if kind == "session.updated" && self.who.limits().is_some() {
            self.row().await?;
        }
        Ok(())
    }

    async fn replay(&mut self, upto: Seq, out: &Out) -> Result<(), Stop> {
        let session = self.wish.session;
        while self.seen < upto {
            let range = Range {
                upto: Some(upto),
                limit: PAGE_EVENTS,
                max_bytes: PAGE_BYTES,
                ..Range::after(self.seen)
            };
            let page =
                patiently(|| read_from(&self.store, |done| Read::Load { session, range, done })).await?;
            if page.events.is_empty() {
                return Err(Stop::Ended(
                    "failed",
                    format!("the log has nothing after {}", self.seen),
                ));
            }
            for (seq, json) in page.events {
                out.push(Push::Event { json, cursor: None }).await?;
                self.seen = seq;
            }
        }
        Ok(())
    }

    /// Follows the feed until it is unusable: the viewer is too slow, the feed restarted, or a seq is missing.
    async fn stay(&mut self, out: &Out) -> Result<(), Stop> {
        loop {
            let batch = self.subscription.next().await;
            if batch.is_empty() {
                return Ok(());
            }
            let drained = batch.len() < BATCH;
            for frame in news(batch) {
                match frame {
                    FeedFrame::Event(told) if told.event.seq <= self.seen => {}
                    FeedFrame::Event(told) if told.event.seq == self.seen + 1 => {
                        self.check(&told.event.kind).await?;
                        out.push(Push::Event {
                            json: told.event.body.clone(),
                            cursor: None,
                        })
                        .await?;
                        self.seen = told.event.seq;
                    }
                    FeedFrame::Delta(delta) => out.push(Push::Delta(delta)).await?,
                    FeedFrame::Event(_) | FeedFrame::Lagged => return Ok(()),
                }
            }
            // A viewer that is behind continues immediately; otherwise the pauses themselves would make it lag.
            if drained {
                self.member.pause(self.wish.viewer).await;
            }
        }
    }
}
