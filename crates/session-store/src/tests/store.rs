//! Tests of the session store's actor.

use super::kit::{Kit, SOON, viewer, waiting};
use crate::{FeedLimits, StoreLimits};
use agentd_actor_core::{Done, Read, StoreMsg};
use agentd_protocol::Principal;
use agentd_store::{Claim, Filter, Outcome, Range, StoreError};
use bytes::Bytes;

#[tokio::test(start_paused = true)]
async fn i1_an_append_is_answered_after_its_commit_and_after_its_announcement() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (watching, mut frames) = viewer(1, 8);
    kit.attach(session, watching).await;
    let outcome = kit.store(kit.append(session, 0, 2)).await;
    assert_eq!(outcome, Outcome::Committed { head: 2, cursor: 2 });
    let load = |done| {
        StoreMsg::Read(Read::Load {
            session,
            range: Range::default(),
            done,
        })
    };
    assert_eq!(kit.store.call(SOON, load).await.unwrap().unwrap().head, 2);
    kit.deciders(session).await;
    assert_eq!(waiting(&mut frames), ["e1 c1", "e2 c2"]);
}

#[tokio::test(start_paused = true)]
async fn i2_a_lost_answer_is_settled_by_asking_again_and_the_viewer_gets_the_event() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (watching, mut frames) = viewer(1, 8);
    kit.attach(session, watching).await;
    kit.log.lose_answers(1);
    assert_eq!(
        kit.store(kit.append(session, 0, 1)).await,
        Outcome::Duplicate { head: 1 }
    );
    assert_eq!(kit.log.appends(session), 2);
    kit.deciders(session).await;
    assert_eq!(waiting(&mut frames), ["e1 c0"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stays_lost_is_unknown() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.log.lose_answers(3);
    assert_eq!(kit.store(kit.append(session, 0, 1)).await, Outcome::Unknown);
}

#[tokio::test(start_paused = true)]
async fn i9_a_fenced_append_is_not_announced() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.stored(session, 0, 1).await;
    let claim = kit
        .store
        .call(SOON, |done| StoreMsg::Claim {
            session,
            without_files: false,
            done,
        })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        claim,
        Claim {
            epoch: 2,
            head: 1,
            row_damaged: false,
            moved_to: None,
            away: None
        }
    );
    let (watching, mut frames) = viewer(1, 8);
    kit.attach(session, watching).await;
    let outcome = kit.store(kit.append(session, 1, 1)).await;
    assert_eq!(outcome, Outcome::Fenced { epoch: 2, head: 1 });
    kit.deciders(session).await;
    assert_eq!(waiting(&mut frames), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn i6_too_much_at_once_is_refused_and_everybody_is_answered() {
    let kit = Kit::with(StoreLimits { changes: 0, reads: 0 }, FeedLimits::default()).await;
    let session = kit.session();
    assert_eq!(kit.store(kit.append(session, 0, 1)).await, Outcome::Full);
    let claim = kit
        .store
        .call(SOON, |done| StoreMsg::Claim {
            session,
            without_files: false,
            done,
        })
        .await
        .unwrap();
    assert!(matches!(claim, Err(StoreError::Busy("too many changes at once"))));
    let count = kit
        .store
        .call(SOON, |done| StoreMsg::Read(Read::Count { done }))
        .await
        .unwrap();
    assert!(matches!(count, Err(StoreError::Busy("too many reads at once"))));
}

#[tokio::test(start_paused = true)]
async fn i1_the_owner_is_told_when_the_store_has_stopped_for_good() {
    let mut kit = Kit::new().await;
    kit.log.break_down("disk on fire");
    assert_eq!(kit.fatal.recv().await.as_deref(), Some("disk on fire"));
    let session = kit.session();
    assert_eq!(
        kit.store(kit.append(session, 0, 1)).await,
        Outcome::Failed("disk on fire".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn i6_what_was_admitted_is_answered_although_the_actor_was_killed() {
    let kit = Kit::new().await;
    let session = kit.session();
    let (done, answer) = Done::channel();
    kit.store.cast(StoreMsg::Append {
        append: kit.append(session, 0, 1),
        done,
    });
    kit.store
        .call(SOON, |done| StoreMsg::Read(Read::Count { done }))
        .await
        .unwrap()
        .unwrap();
    kit.actor().kill();
    assert_eq!(answer.await, Ok(Outcome::Committed { head: 1, cursor: 1 }));
}

#[tokio::test(start_paused = true)]
async fn i6_what_the_killed_actor_had_not_admitted_is_reported_lost() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.actor().stop_and_wait(None, None).await.unwrap();
    let (done, answer) = Done::channel();
    kit.store.cast(StoreMsg::Append {
        append: kit.append(session, 0, 1),
        done,
    });
    assert!(answer.await.is_err());
}

/// Sends one read to the actor.
macro_rules! read {
    ($kit:expr, $read:ident { $($field:ident $(: $value:expr)?),* }) => {
        $kit.store
            .call(SOON, |done| StoreMsg::Read(Read::$read { $($field $(: $value)?,)* done }))
            .await
            .unwrap()
            .unwrap()
    };
}

#[tokio::test(start_paused = true)]
async fn every_read_is_answered() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.stored(session, 0, 1).await;
    assert_eq!(read!(kit, Row { session }), None);
    assert_eq!(
        read!(
            kit,
            List {
                filter: Filter::default()
            }
        ),
        []
    );
    assert_eq!(
        read!(
            kit,
            Resolve {
                word: session.to_string(),
                labels: [].into()
            }
        ),
        []
    );
    assert_eq!(read!(kit, Count {}), 0);
    assert_eq!(
        read!(
            kit,
            Key {
                principal: Principal::agentd(),
                key: "k".to_owned()
            }
        ),
        None
    );
    assert_eq!(read!(kit, Blob { name: "0".repeat(64) }), None);
    assert_eq!(
        read!(
            kit,
            Watch {
                after: Some(0),
                limit: 1
            }
        )
        .cursor,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn every_small_change_is_answered() {
    let kit = Kit::new().await;
    let session = kit.session();
    kit.stored(session, 0, 1).await;
    let bytes = Bytes::from_static(b"x");
    let name = kit
        .store
        .call(SOON, |done| StoreMsg::PutBlob {
            session,
            bytes: bytes.clone(),
            done,
        })
        .await;
    assert_eq!(
        read!(
            kit,
            Blob {
                name: name.unwrap().unwrap()
            }
        ),
        Some(bytes)
    );
    assert_eq!(read!(kit, Count {}), 0);
    let delete = async || {
        kit.store
            .call(SOON, |done| StoreMsg::Delete { session, done })
            .await
            .unwrap()
    };
    assert!(delete().await.is_ok());
    assert!(matches!(delete().await, Err(StoreError::NotFound(id)) if id == session));
}
