//! `fleet.watch`: the events of all sessions in commit order, by cursor (I2).

use crate::api::{Api, READ, fault_of, read_from};
use crate::live::{Out, Push, Pushed, Stop, patiently};
use crate::params::read_params;
use crate::sight::Caller;
use agentd_actor_kit::{FeedFrame, FeedMsg, Handle, Read, StoreMsg, Viewer};
use agentd_protocol::{
    CaughtUp, EVENT_KINDS, Fault, Lagged, Principal, Selector, SessionId, Subscribed, WatchParams, nearest,
};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Events in one page of a catch-up.
const PAGE: u32 = 256;
/// The maximum number of sessions whose match with the labels is cached.
const REMEMBERED: usize = 10_000;
const MAX_KINDS: usize = 64;

/// A viewer of the fleet. [`Self::run`] does the work; dropping it ends the subscription.
#[derive(Debug)]
pub struct Watching {
    who: Caller,
    store: Handle<StoreMsg>,
    feed: Handle<FeedMsg>,
    viewer: u64,
    queue: usize,
    /// `None` when the viewer only wants existing events.
    frames: Option<mpsc::Receiver<FeedFrame>>,
    /// The last cursor that was read.
    seen: u64,
    filter: Filter,
}

#[derive(Debug)]
struct Filter {
    labels: Selector,
    kinds: Vec<String>,
    chosen: BTreeMap<SessionId, bool>,
}

impl Api {
    /// Starts following the fleet. `head` of the answer is the current last cursor.
    ///
    /// # Errors
    /// The fault that the client gets.
    pub async fn watch(&self, who: &Principal, params: Value) -> Result<(Subscribed, Watching), Fault> {
        let who = self.allow(who, "fleet.watch")?;
        let params: WatchParams = read_params(params)?;
        if params.kinds.len() > MAX_KINDS {
            return Err(Fault::invalid(
                "too_many_kinds",
                format!("at most {MAX_KINDS} kinds are allowed"),
            ));
        }
        params.kinds.iter().try_for_each(|kind| known(kind))?;
        let queue = usize::try_from(self.loaded().settings.limits.attach_ring)
            .unwrap_or(usize::MAX)
            .clamp(8, 65_536);
        let viewer = self.next_viewer();
        let frames = if params.once {
            None
        } else {
            Some(place(&self.parts.feed, viewer, queue).await?)
        };
        let newest = |done| Read::Watch {
            after: None,
            limit: 1,
            done,
        };
        let head = self.read(newest).await?.cursor;
        let seen = params.after.unwrap_or(head);
        if seen > head {
            let message = format!("the fleet's log ends at cursor {head}; cannot continue after {seen}");
            return Err(Fault::invalid("cursor_ahead", message).hint("watch from the start: after = 0"));
        }
        let filter = Filter {
            labels: params
                .labels
                .and(who.limits().cloned().unwrap_or_default().into()),
            kinds: params.kinds,
            chosen: BTreeMap::new(),
        };
        let (store, feed) = (self.parts.store.clone(), self.parts.feed.clone());
        Ok((
            Subscribed { sub: viewer, head },
            Watching {
                who,
                store,
                feed,
                viewer,
                queue,
                frames,
                seen,
                filter,
            },
        ))
    }
}

/// Refuses a name that is neither a type of event nor a family of types: it would never match anything.
fn known(kind: &str) -> Result<(), Fault> {
    let families = EVENT_KINDS
        .iter()
        .filter_map(|kind| Some(kind.split_once('.')?.0));
    if EVENT_KINDS.contains(&kind) || families.clone().any(|family| family == kind) {
        return Ok(());
    }
    let message = format!("unknown event type {:?}", crate::words::cut(kind));
    let hint = match nearest(kind, EVENT_KINDS.iter().copied().chain(families)) {
        Some(near) => format!("did you mean {near}?"),
        None => "name a type such as tool.finished, or a family such as tool".to_owned(),
    };
    Err(Fault::invalid("unknown_kind", message).hint(hint))
}

async fn place(feed: &Handle<FeedMsg>, id: u64, length: usize) -> Result<mpsc::Receiver<FeedFrame>, Fault> {
    let (queue, frames) = mpsc::channel(length);
    let viewer = Viewer {
        id,
        queue,
        deltas: false,
        decides: false,
    };
    let watch = |done| FeedMsg::Watch {
        viewer,
        patient: false,
        done,
    };
    feed.call(READ, watch).await.map_err(fault_of)?;
    Ok(frames)
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.feed.cast(FeedMsg::Unwatch { viewer: self.viewer });
    }
}

impl Watching {
    /// The id of the subscription.
    #[must_use]
    pub const fn sub(&self) -> u64 {
        self.viewer
    }

    /// Pushes until the viewer is gone or the subscription ends.
    pub async fn run(mut self, queue: mpsc::Sender<Pushed>) {
        let gone = queue.clone();
        let out = Out {
            sub: self.viewer,
            queue,
        };
        let who = self.who.clone();
        let stop = tokio::select! {
            () = who.ended() => Stop::revoked(),
            followed = self.follow(&out) => match followed {
                Ok(()) => Stop::Ended("end", "there are no more events now".to_owned()),
                Err(stop) => stop,
            },
            () = gone.closed() => Stop::ViewerGone,
        };
        if let Stop::Ended(code, message) = stop {
            // The viewer may be gone by now.
            let _ = out
                .push(Push::Ended {
                    code,
                    message,
                    cursor: Some(self.seen),
                })
                .await;
        }
    }

    async fn follow(&mut self, out: &Out) -> Result<(), Stop> {
        loop {
            self.catch_up(out).await?;
            out.push(Push::CaughtUp(CaughtUp { cursor: self.seen })).await?;
            let Some(mut frames) = self.frames.take() else {
                return Ok(());
            };
            self.stay(&mut frames, out).await?;
            out.push(Push::Lagged(Lagged { after_seq: self.seen })).await?;
            let (feed, viewer, queue) = (self.feed.clone(), self.viewer, self.queue);
            feed.cast(FeedMsg::Unwatch { viewer });
            self.frames = Some(patiently(|| place(&feed, viewer, queue)).await?);
        }
    }

    async fn catch_up(&mut self, out: &Out) -> Result<(), Stop> {
        loop {
            let after = Some(self.seen);
            let read = || {
                read_from(&self.store, |done| Read::Watch {
                    after,
                    limit: PAGE,
                    done,
                })
            };
            let page = patiently(read).await?;
            let last = page.events.len() < PAGE as usize;
            for event in page.events {
                self.show(event.cursor, event.session, &event.kind, event.body, out)
                    .await?;
            }
            self.seen = self.seen.max(page.cursor);
            if last {
                return Ok(());
            }
        }
    }

    async fn stay(&mut self, frames: &mut mpsc::Receiver<FeedFrame>, out: &Out) -> Result<(), Stop> {
        while let Some(frame) = frames.recv().await {
            match frame {
                FeedFrame::Event(told) if told.cursor > self.seen => {
                    let (kind, json) = (&told.event.kind, told.event.body.clone());
                    self.show(told.cursor, told.session, kind, json, out).await?;
                }
                FeedFrame::Event(_) | FeedFrame::Delta(_) => {}
                FeedFrame::Lagged => break,
            }
        }
        Ok(())
    }

    async fn show(
        &mut self,
        cursor: u64,
        session: SessionId,
        kind: &str,
        json: Bytes,
        out: &Out,
    ) -> Result<(), Stop> {
        if self.wanted(session, kind).await? {
            out.push(Push::Event {
                json,
                cursor: Some(cursor),
            })
            .await?;
        }
        self.seen = cursor;
        Ok(())
    }

    async fn wanted(&mut self, session: SessionId, kind: &str) -> Result<bool, Stop> {
        if kind == "session.updated" {
            self.filter.chosen.remove(&session);
        }
        if !self.filter.takes(kind) {
            return Ok(false);
        }
        if self.filter.labels.is_empty() {
            return Ok(true);
        }
        if let Some(chosen) = self.filter.chosen.get(&session) {
            return Ok(*chosen);
        }
        let row = patiently(|| read_from(&self.store, |done| Read::Row { session, done })).await?;
        let carried = row.map(|row| row.summary.labels).unwrap_or_default();
        let chosen = self.filter.labels.matches(&carried);
        if self.filter.chosen.len() >= REMEMBERED {
            self.filter.chosen.clear();
        }
        self.filter.chosen.insert(session, chosen);
        Ok(chosen)
    }
}

impl Filter {
    /// Whether the filter accepts a type of event: `tool` also accepts `tool.finished`.
    fn takes(&self, kind: &str) -> bool {
        let is = |want: &String| {
            kind.strip_prefix(want.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.kinds.is_empty() || self.kinds.iter().any(is)
    }
}
