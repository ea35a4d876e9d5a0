//! Viewers: they attach, read the log, follow the feed, are slow, lag, and catch up. Each must receive every event of
//! its session once and in order (I2).

use crate::messages::Happening;
use crate::options::{Flaw, Knob};
use crate::world::World;
use agentd_actor_kit::{FeedFrame, Viewer};
use agentd_protocol::{Seq, SessionId};
use agentd_turn::{Order, Violation};
use bytes::Bytes;
use tokio::sync::mpsc::{self, Receiver, error::TryRecvError};

/// Events per page of a replay.
const PAGE: u64 = 16;

/// A viewer that follows a session.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) session: SessionId,
    order: Order,
    /// Its subscription to the feed.
    place: Option<Receiver<FeedFrame>>,
    /// It follows the feed; otherwise it reads the log.
    live: bool,
}

impl Watcher {
    /// Creates a viewer that wants the events after `after`.
    pub(crate) const fn new(session: SessionId, after: Seq) -> Self {
        Self {
            session,
            order: Order::after(after),
            place: None,
            live: false,
        }
    }

    pub(crate) const fn seen(&self) -> Seq {
        self.order.seen
    }
}

impl World {
    /// A viewer reads what has arrived.
    pub(crate) fn look_of(&mut self, number: u64) {
        let Some(mut viewer) = self.viewers.remove(&number) else {
            return;
        };
        if self.here.alive {
            if viewer.place.is_none() {
                self.attach(number, &mut viewer);
            } else if viewer.live {
                self.follow(number, &mut viewer);
            } else {
                self.catch_up(&mut viewer);
            }
        } else {
            (viewer.place, viewer.live) = (None, false);
        }
        self.viewers.insert(number, viewer);
        let after = match self.chance(Knob::Slow, 100) || self.calm {
            true => self.dice.between(1_000, 30_000),
            false => self.dice.between(5, 700),
        };
        self.post(after, Happening::Viewer(number));
    }

    /// Subscribes to the feed before reading the log, so that no event can be missed between the two.
    fn attach(&mut self, number: u64, viewer: &mut Watcher) {
        let (queue, frames) = mpsc::channel(self.options.get(Knob::Queue).max(2) as usize);
        let decides = number.is_multiple_of(2);
        let place = Viewer {
            id: number,
            queue,
            deltas: true,
            decides,
        };
        self.here.feed.attach(viewer.session, place);
        (viewer.place, viewer.live) = (Some(frames), false);
    }

    fn catch_up(&mut self, viewer: &mut Watcher) {
        let Some(row) = self.disk.row(viewer.session) else {
            return;
        };
        let after = viewer.order.seen;
        if row.head <= after {
            viewer.live = true;
            return;
        }
        let upto = row.head.min(after + PAGE);
        match self.disk.lines(viewer.session, after, upto) {
            Ok(lines) => {
                for (seq, line) in lines {
                    self.shown(viewer, seq, &line);
                }
            }
            Err(error) => self.fail(Violation::of("I2", error.to_string())),
        }
    }

    /// Follows the feed until that fails: too slow, restarted, or a seq is missing.
    fn follow(&mut self, number: u64, viewer: &mut Watcher) {
        let most = self.dice.between(1, 40);
        for _ in 0..most {
            let frame = viewer
                .place
                .as_mut()
                .map_or(Err(TryRecvError::Disconnected), Receiver::try_recv);
            match frame {
                Err(TryRecvError::Empty) => return,
                Ok(FeedFrame::Event(told)) if told.event.seq <= viewer.order.seen => {}
                Ok(FeedFrame::Event(told))
                    if told.event.seq == viewer.order.seen + 1 || self.disk.flaw == Flaw::LostFrame =>
                {
                    if self.disk.flaw == Flaw::LostFrame && self.dice.percent(3) {
                        continue;
                    }
                    self.shown(viewer, told.event.seq, &told.event.body);
                }
                Ok(FeedFrame::Delta(_)) => {}
                Ok(FeedFrame::Event(_) | FeedFrame::Lagged) | Err(TryRecvError::Disconnected) => {
                    self.say(|| format!("viewer {number} lags after {}", viewer.order.seen));
                    self.here.feed.detach(viewer.session, number);
                    (viewer.place, viewer.live) = (None, false);
                    return;
                }
            }
        }
    }

    fn shown(&mut self, viewer: &mut Watcher, seq: Seq, line: &Bytes) {
        if let Err(violation) = viewer.order.next(seq) {
            return self.fail(violation);
        }
        if self.disk.line(viewer.session, seq) != Some(line) {
            let what = format!("a viewer was shown another event {seq} than the log has");
            self.fail(Violation::of("I2", what));
        }
    }
}
