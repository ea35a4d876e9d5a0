use super::*;
use crate::pool::Limits;
use std::sync::mpsc::{Sender, channel};

const LONG: Duration = Duration::from_secs(600);

/// Work that blocks until the sender is dropped, together with that sender.
fn stuck() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (hold, held) = channel::<()>();
    (hold, move || {
        let _ = held.recv();
    })
}

/// A requester that no other test uses.
fn requester(name: &str) -> FileWork {
    FileWork::of_session(name)
}

#[tokio::test]
async fn results_and_panics_are_returned() {
    let work = requester("results");
    let dir = Path::new("/");
    assert_eq!(work.run(dir, LONG, || 7).await.unwrap(), 7);
    let panicked = work.run(dir, LONG, || panic!("on purpose")).await;
    assert!(matches!(panicked, Err(Failed::Panicked(_))));
    assert_eq!(
        work.run(dir, LONG, || 8).await.unwrap(),
        8,
        "the slot is free again"
    );
}

#[tokio::test]
async fn i6_an_abandoned_call_keeps_its_slot_until_its_thread_ends() {
    let work = requester("late");
    let dir = Path::new("/");
    let (hold, block) = stuck();
    let late = work.run(dir, Duration::from_millis(20), block).await;
    assert!(matches!(late, Err(Failed::Late { .. })), "{late:?}");
    let (slots, limit) = pool().requester(&work.requester);
    assert_eq!(slots.available_permits(), limit - 1);
    drop(hold);
    let all = slots.acquire_many(u32::try_from(limit).unwrap()).await;
    assert!(all.is_ok(), "the slot came back");
}

#[tokio::test]
async fn i6_a_requester_waits_only_for_its_own_calls() {
    let (mine, other) = (requester("greedy"), requester("modest"));
    let dir = Path::new("/");
    let limit = Limits::default().requester;
    let held: Vec<_> = (0..limit).map(|_| stuck()).collect();
    let mut holds = Vec::new();
    for (hold, block) in held {
        holds.push(hold);
        let work = mine.clone();
        tokio::spawn(async move { work.run(Path::new("/"), LONG, block).await });
    }
    let (slots, _) = pool().requester(&mine.requester);
    while slots.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let more = mine.run(dir, Duration::from_millis(20), || ()).await;
    assert!(matches!(more, Err(Failed::Busy { .. })), "{more:?}");
    other.run(dir, LONG, || ()).await.unwrap();
    drop(holds);
    mine.run(dir, LONG, || ()).await.unwrap();
}
