//! Following a session.

use crate::harness::Harness;
use agentd_actor_kit::FeedMsg;
use agentd_api::{Push, Pushed};
use agentd_protocol::*;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

struct Viewer {
    pushes: mpsc::Receiver<Pushed>,
    _task: tokio::task::JoinHandle<()>,
}

impl Viewer {
    async fn attach(h: &Harness, params: Value) -> Self {
        let (_, attachment) = h.api.attach(&Harness::ana(), params).await.unwrap();
        let (out, pushes) = mpsc::channel(1);
        Self {
            pushes,
            _task: tokio::spawn(attachment.run(out)),
        }
    }

    async fn next(&mut self) -> Push {
        timeout(Duration::from_secs(60), self.pushes.recv())
            .await
            .unwrap()
            .unwrap()
            .push
    }

    async fn seq(&mut self) -> Seq {
        match self.next().await {
            Push::Event { json, .. } => seq_of(&json),
            other => panic!("not an event: {other:?}"),
        }
    }

    async fn synced(&mut self) -> Synced {
        match self.next().await {
            Push::Synced(synced) => *synced,
            other => panic!("not synced: {other:?}"),
        }
    }
}

fn seq_of(json: &[u8]) -> Seq {
    serde_json::from_slice::<Event>(json).unwrap().seq
}

fn text(text: &str, offset: u64) -> Delta {
    Delta::Text(Fragment {
        call: CallId::NIL,
        attempt: 1,
        block: 0,
        offset,
        text: text.to_owned(),
    })
}

#[tokio::test]
async fn an_attach_replays_then_syncs_then_follows_live() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    h.log.note(session, "one").await;
    let approval = h.log.ask(session, "run x").await;
    let mut viewer = Viewer::attach(&h, json!({ "session": "a" })).await;
    assert_eq!(
        [viewer.seq().await, viewer.seq().await, viewer.seq().await],
        [1, 2, 3]
    );
    let synced = viewer.synced().await;
    assert_eq!((synced.seq, synced.partial), (3, None));
    assert_eq!(synced.status.state, RunState::Waiting(WaitReason::Approval));
    assert_eq!(
        synced
            .approvals
            .iter()
            .map(|open| open.approval)
            .collect::<Vec<_>>(),
        [approval]
    );
    h.log.note(session, "two").await;
    assert_eq!(viewer.seq().await, 4);
    assert_eq!(h.played.lock().unwrap().routed, 1, "following wakes no session");
}

#[tokio::test]
async fn an_attach_continues_after_a_seq_or_starts_near_the_end() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    for n in 0..5 {
        h.log.note(session, &n.to_string()).await;
    }
    let mut after = Viewer::attach(&h, json!({ "session": "a", "after_seq": 5 })).await;
    assert_eq!((after.seq().await, after.synced().await.seq), (6, 6));
    let mut tail = Viewer::attach(&h, json!({ "session": "a", "tail": 2, "after_seq": 1 })).await;
    assert_eq!(
        (tail.seq().await, tail.seq().await, tail.synced().await.seq),
        (5, 6, 6)
    );
    let mut live = Viewer::attach(&h, json!({ "session": "a", "tail": 0 })).await;
    assert_eq!(live.synced().await.seq, 6);
    let ahead = h
        .api
        .attach(&Harness::ana(), json!({ "session": "a", "after_seq": 7 }))
        .await
        .unwrap_err();
    assert_eq!(ahead.code, "seq_ahead");
}

#[tokio::test]
async fn a_late_joiner_gets_the_text_so_far_and_then_the_rest() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    h.feed.cast(FeedMsg::Delta {
        session,
        delta: text("so f", 0),
    });
    let mut viewer = Viewer::attach(&h, json!({ "session": "a", "tail": 0, "deltas": true })).await;
    assert_eq!(viewer.synced().await.partial.as_deref(), Some("so f"));
    h.feed.cast(FeedMsg::Delta {
        session,
        delta: text("ar", 4),
    });
    match viewer.next().await {
        Push::Delta(delta) => assert_eq!(*delta, text("ar", 4)),
        other => panic!("not a delta: {other:?}"),
    }
}

#[tokio::test]
async fn i2_attaching_during_writes_sees_every_event_once() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    let log = h.log.clone();
    let writer = tokio::spawn(async move {
        for n in 0..400 {
            log.note(session, &n.to_string()).await;
        }
    });
    let mut viewers = Vec::new();
    for _ in 0..8 {
        viewers.push(Viewer::attach(&h, json!({ "session": "a", "deltas": true })).await);
        tokio::task::yield_now().await;
    }
    for viewer in &mut viewers {
        let mut expected = 1;
        while expected <= 401 {
            if let Push::Event { json, .. } = viewer.next().await {
                assert_eq!(seq_of(&json), expected);
                expected += 1;
            }
        }
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn i2_a_stalled_viewer_lags_and_catches_up_without_gap_or_duplicate() {
    let h = Harness::with(|settings| settings.limits.attach_ring = 8).await;
    let session = h.session("a").await;
    let mut viewer = Viewer::attach(&h, json!({ "session": "a" })).await;
    assert_eq!((viewer.seq().await, viewer.synced().await.seq), (1, 1));
    for n in 0..200 {
        h.log.note(session, &n.to_string()).await;
    }
    let (mut expected, mut lags, mut syncs) = (2, 0, 0);
    while expected <= 201 || syncs < lags {
        match viewer.next().await {
            Push::Event { json, .. } => {
                assert_eq!(seq_of(&json), expected);
                expected += 1;
            }
            Push::Lagged(Lagged { after_seq }) => {
                assert_eq!(after_seq, expected - 1);
                lags += 1;
            }
            Push::Synced(synced) => {
                assert_eq!(synced.seq, expected - 1);
                syncs += 1;
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert!(lags >= 1);
    h.log.note(session, "after").await;
    assert_eq!(viewer.seq().await, 202);
}

#[tokio::test]
async fn i6_a_stalled_viewer_slows_no_other_viewer() {
    let h = Harness::with(|settings| settings.limits.attach_ring = 8).await;
    let session = h.session("a").await;
    let _stalled = Viewer::attach(&h, json!({ "session": "a", "deltas": true })).await;
    let mut quick = Viewer::attach(&h, json!({ "session": "a", "tail": 0 })).await;
    assert_eq!(quick.synced().await.seq, 1);
    for n in 2..100 {
        assert_eq!(h.log.note(session, "x").await, n);
        assert_eq!(quick.seq().await, n);
    }
}

#[tokio::test]
async fn a_viewer_that_leaves_no_longer_counts_as_a_decider() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    let deciders = || {
        h.feed.call(Duration::from_secs(60), |done| FeedMsg::Deciders {
            sessions: vec![session],
            done,
        })
    };
    let mut viewer = Viewer::attach(&h, json!({ "session": "a", "tail": 0, "decides": true })).await;
    assert_eq!((viewer.synced().await.seq, deciders().await), (1, Ok(1)));
    viewer.pushes.close();
    let gone = async {
        while deciders().await != Ok(0) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.unwrap();
}

/// The clock moves only when all others wait for it, so it shows who pauses.
#[tokio::test(start_paused = true)]
async fn i6_only_the_viewers_of_a_crowded_session_wait_for_each_other() {
    let h = Harness::start().await;
    let (crowded, quiet) = (h.session("a").await, h.session("b").await);
    let mut crowd = Vec::new();
    for _ in 0..20 {
        let mut viewer = Viewer::attach(&h, json!({ "session": "a", "tail": 0 })).await;
        viewer.synced().await;
        crowd.push(viewer);
    }
    let mut alone = Viewer::attach(&h, json!({ "session": "b", "tail": 0 })).await;
    alone.synced().await;
    let follow = async |viewer: &mut Viewer, session| {
        let begun = tokio::time::Instant::now();
        for seq in 2..5 {
            h.log.note(session, "more").await;
            assert_eq!(viewer.seq().await, seq);
        }
        begun.elapsed()
    };
    assert_eq!(follow(&mut alone, quiet).await, Duration::ZERO);
    let (one, others) = crowd.split_first_mut().unwrap();
    assert!(follow(one, crowded).await > Duration::from_millis(10));
    for viewer in others {
        assert_eq!(viewer.seq().await, 2);
    }
}
