//! Tests of the feed's actor.

use super::kit::{Kit, event, text, viewer, waiting, word};
use crate::state::FeedState;
use crate::{FeedLimits, StoreLimits};
use agentd_actor_core::{Attached, FeedMsg, Published};
use agentd_protocol::{Delta, RunState, SessionId, Status, Timestamp};
use agentd_store::{EncodedEvent, SessionLog as _};

fn published(session: SessionId, cursor: u64, seqs: std::ops::RangeInclusive<u64>) -> FeedMsg {
    FeedMsg::Committed(vec![commit(session, cursor, seqs)])
}

fn commit(session: SessionId, cursor: u64, seqs: std::ops::RangeInclusive<u64>) -> Published {
    Published {
        session,
        cursor,
        events: seqs.map(|seq| event(session, seq)).collect(),
    }
}

fn status(state: RunState) -> Delta {
    Delta::Status(Status {
        state,
        reason: "why".to_owned(),
        since: Timestamp(1),
        until: None,
        attempt: None,
        position: None,
    })
}

#[tokio::test(start_paused = true)]
async fn i2_every_viewer_gets_each_event_once_and_in_order() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (a, mut seen_by_a) = viewer(1, 16);
    let (b, mut seen_by_b) = viewer(2, 16);
    assert_eq!(
        kit.attach(session, a).await,
        Attached {
            seq: 0,
            status: None,
            partial: None
        }
    );
    kit.stored(session, 0, 2).await;
    assert_eq!(kit.attach(session, b).await.seq, 2);
    kit.stored(session, 2, 1).await;
    // A commit that is announced twice is delivered once.
    kit.feed.cast(published(session, 3, 3..=3));
    assert_eq!(kit.deciders(session).await, 2);
    assert_eq!(waiting(&mut seen_by_a), ["e1 c1", "e2 c2", "e3 c3"]);
    assert_eq!(waiting(&mut seen_by_b), ["e3 c3"]);
}

#[tokio::test(start_paused = true)]
async fn the_reader_of_the_fleets_log_hears_whether_a_viewer_waits() {
    let kit = Kit::new().await;
    let session = kit.session();
    assert!(!kit.others(vec![]).await);
    let (patient, mut seen_by_patient) = viewer(1, 16);
    kit.watch_as(patient, true).await;
    assert!(
        !kit.others(vec![commit(session, 1, 1..=1)]).await,
        "a patient viewer"
    );
    let (attached, mut seen_by_attached) = viewer(2, 16);
    kit.attach(session, attached).await;
    assert!(kit.others(vec![commit(session, 2, 2..=2)]).await);
    kit.feed.cast(FeedMsg::Detach { session, viewer: 2 });
    assert!(!kit.others(vec![]).await);
    let (watching, mut seen_by_watching) = viewer(3, 16);
    kit.watch(watching).await;
    assert!(kit.others(vec![commit(session, 3, 3..=3)]).await);
    kit.feed.cast(FeedMsg::Unwatch { viewer: 3 });
    assert!(!kit.others(vec![]).await);
    assert_eq!(waiting(&mut seen_by_patient), ["e1 c1", "e2 c2", "e3 c3"]);
    assert_eq!(waiting(&mut seen_by_attached), ["e2 c2"]);
    assert_eq!(waiting(&mut seen_by_watching), ["e3 c3"]);
}

#[tokio::test(start_paused = true)]
async fn i6_a_stalled_viewer_lags_and_the_others_miss_nothing() {
    let kit = Kit::new().await;
    let session = kit.session();
    // One frame tells it that there is another viewer.
    let (slow, mut seen_by_slow) = viewer(1, 5);
    let (quick, mut seen_by_quick) = viewer(2, 16);
    kit.attach(session, slow).await;
    kit.attach(session, quick).await;
    for head in 0..6 {
        kit.stored(session, head, 1).await;
    }
    assert_eq!(kit.deciders(session).await, 1, "the slow one must attach again");
    assert_eq!(waiting(&mut seen_by_slow), ["e1 c1", "e2 c2", "e3 c3", "lagged"]);
    assert_eq!(waiting(&mut seen_by_quick).len(), 6);
    assert!(seen_by_slow.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_slow_viewer_loses_deltas_before_it_lags() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (slow, mut frames) = viewer(1, 8);
    kit.attach(session, slow).await;
    for offset in 0..10 {
        kit.feed.cast(FeedMsg::Delta {
            session,
            delta: text(1, offset, "x"),
        });
    }
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: status(RunState::Idle),
    });
    assert_eq!(kit.deciders(session).await, 1);
    assert_eq!(waiting(&mut frames), ["dx", "dx", "dx", "dx", "dx", "dx", "idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_bounded_in_bytes_too() {
    let limits = FeedLimits {
        viewer_bytes: 600,
        ..FeedLimits::default()
    };
    let kit = Kit::with(StoreLimits::default(), limits).await;
    let session = kit.session();
    let (slow, mut frames) = viewer(1, 100);
    kit.attach(session, slow).await;
    kit.stored(session, 0, 1).await;
    kit.deciders(session).await;
    assert_eq!(waiting(&mut frames), ["e1 c1"]);
    // Frames that the viewer has received no longer count.
    for head in 1..6 {
        kit.stored(session, head, 1).await;
    }
    assert_eq!(kit.deciders(session).await, 0);
    assert_eq!(waiting(&mut frames), ["e2 c2", "e3 c3", "lagged"]);
}

#[tokio::test(start_paused = true)]
async fn who_joins_late_gets_the_text_so_far_and_the_status() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: status(RunState::RunningModel),
    });
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: text(1, 0, "lost "),
    });
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: text(2, 0, "Hel"),
    });
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: text(2, 3, "lo"),
    });
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: text(2, 3, "lo"),
    });
    let (late, mut frames) = viewer(1, 8);
    let attached = kit.attach(session, late).await;
    assert_eq!(attached.partial.as_deref(), Some("Hello"));
    assert_eq!(
        attached.status.map(|status| status.state),
        Some(RunState::RunningModel)
    );
    kit.feed.cast(FeedMsg::Delta {
        session,
        delta: text(2, 5, "!"),
    });
    assert_eq!(
        frames.recv().await.map(|frame| word(&frame)).as_deref(),
        Some("d!")
    );

    let finished = EncodedEvent {
        kind: "model.finished".into(),
        ..event(session, 1)
    };
    kit.feed.cast(FeedMsg::Committed(vec![Published {
        session,
        cursor: 1,
        events: vec![finished],
    }]));
    let (later, _frames) = viewer(2, 8);
    let attached = kit.attach(session, later).await;
    assert_eq!((attached.seq, attached.partial), (1, None));
    kit.feed.cast(FeedMsg::Cold { session });
    let (last, _frames) = viewer(3, 8);
    assert_eq!(kit.attach(session, last).await.status, None);
}

#[tokio::test(start_paused = true)]
async fn who_may_decide_is_counted_while_it_is_there() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (a, frames_of_a) = viewer(1, 8);
    let (mut b, _frames_of_b) = viewer(2, 8);
    let (c, _frames_of_c) = viewer(3, 8);
    b.decides = false;
    for viewer in [a, b, c] {
        kit.attach(session, viewer).await;
    }
    assert_eq!(kit.deciders(session).await, 2);
    drop(frames_of_a);
    assert_eq!(kit.deciders(session).await, 1);
    kit.feed.cast(FeedMsg::Detach { session, viewer: 3 });
    assert_eq!(kit.deciders(session).await, 0);
}

#[tokio::test(start_paused = true)]
async fn i2_a_commit_that_never_came_by_makes_the_viewer_read_the_log() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (watching, mut frames) = viewer(1, 8);
    kit.attach(session, watching).await;
    kit.feed.cast(published(session, 1, 1..=1));
    kit.feed.cast(published(session, 3, 3..=3));
    kit.deciders(session).await;
    assert_eq!(waiting(&mut frames), ["e1 c1", "lagged"]);
}

#[tokio::test(start_paused = true)]
async fn i2_the_fleet_is_shown_in_the_order_of_cursors_however_commits_are_announced() {
    let kit = Kit::new().await;
    let (a, b) = (kit.session(), kit.session());
    let (watching, mut frames) = viewer(1, 16);
    assert_eq!(kit.watch(watching).await, 0);
    kit.feed.cast(published(b, 5, 1..=2));
    kit.feed.cast(published(a, 3, 2..=3));
    kit.feed.cast(published(a, 1, 1..=1));
    kit.deciders(a).await;
    assert_eq!(
        waiting(&mut frames),
        ["e1 c1", "e2 c2", "e3 c3", "e1 c4", "e2 c5"]
    );
    let (second, _frames) = viewer(2, 16);
    assert_eq!(kit.watch(second).await, 5);
    kit.feed.cast(FeedMsg::Unwatch { viewer: 1 });
    kit.deciders(a).await;
    assert!(frames.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn i2_what_bypassed_the_actor_sends_the_fleets_watchers_to_the_log() {
    let kit = Kit::new().await;
    let (a, b) = (kit.session(), kit.session());
    let (watching, mut frames) = viewer(1, 16);
    kit.watch(watching).await;
    kit.stored(a, 0, 1).await;
    kit.log.append(kit.append(b, 0, 2)).await;
    kit.stored(a, 1, 1).await;
    let mut words = Vec::new();
    while let Some(frame) = frames.recv().await {
        words.push(word(&frame));
    }
    assert_eq!(words, ["e1 c1", "lagged"]);
    let (again, mut frames) = viewer(1, 16);
    assert_eq!(kit.watch(again).await, 4);
    kit.stored(a, 2, 1).await;
    assert_eq!(
        frames.recv().await.map(|frame| word(&frame)).as_deref(),
        Some("e3 c5")
    );
}

#[test]
fn a_session_that_nobody_follows_and_that_went_cold_costs_nothing() {
    let mut feed = FeedState::new(0, FeedLimits::default());
    let session = SessionId::NIL;
    let commit = Published {
        session,
        cursor: 1,
        events: vec![event(session, 1)],
    };
    feed.committed(commit);
    assert_eq!(feed.channels(), 0);
    feed.delta(session, text(1, 0, "x"));
    let (watching, _frames) = viewer(1, 8);
    feed.attach(session, watching);
    feed.cold(session);
    assert_eq!(feed.channels(), 1);
    feed.detach(session, 1);
    assert_eq!(feed.channels(), 0);
}

#[test]
fn the_text_so_far_is_bounded() {
    let mut feed = FeedState::new(
        0,
        FeedLimits {
            partial_bytes: 5,
            ..FeedLimits::default()
        },
    );
    let session = SessionId::NIL;
    for (offset, part) in [(0, "abc"), (3, "def"), (6, "g")] {
        feed.delta(session, text(1, offset, part));
    }
    let (watching, _frames) = viewer(1, 8);
    assert_eq!(feed.attach(session, watching).partial.as_deref(), Some("abc"));
}

#[tokio::test(start_paused = true)]
async fn i2_an_append_that_nobody_announced_is_told_of_when_the_log_is_read_again() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (a, mut seen) = viewer(1, 16);
    kit.attach(session, a).await;
    kit.stored(session, 0, 2).await;
    // As long as no event is missing, no follower is sent to the log.
    kit.feed.cast(FeedMsg::Loaded { session, head: 2 });
    kit.feed.cast(FeedMsg::Unsure { session });
    kit.feed.cast(FeedMsg::Loaded { session, head: 2 });
    assert_eq!(kit.deciders(session).await, 1);
    assert_eq!(waiting(&mut seen), ["e1 c1", "e2 c2"]);
    kit.feed.cast(FeedMsg::Unsure { session });
    kit.feed.cast(FeedMsg::Loaded { session, head: 3 });
    // The announcement may still arrive late.
    let (again, mut seen_again) = viewer(2, 16);
    assert_eq!(kit.attach(session, again).await.seq, 3);
    assert_eq!(waiting(&mut seen), ["lagged"]);
    kit.feed.cast(published(session, 3, 3..=3));
    kit.feed.cast(published(session, 4, 4..=4));
    assert_eq!(kit.deciders(session).await, 1);
    assert_eq!(waiting(&mut seen_again), ["e4 c4"]);
}
