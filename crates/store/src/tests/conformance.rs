//! One suite for all backends: the guarantees of the traits.

use super::kit::{Kit, key};
use agentd_protocol::{ListPlace, Listed, Principal, RunState, SessionId, SortBy, Timestamp, WaitReason};
use agentd_store::{
    Blob, Charge, Direction, Filter, IdempotencyKey, Integrity, Outcome, Page, Range, StoreError, StoredKey,
};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;

conformance!(
    i1_what_was_committed_is_read_back_byte_for_byte,
    i2_a_repeated_append_writes_once,
    i2_a_repeated_append_is_known_even_after_later_ones,
    i2_a_gap_in_an_append_is_refused,
    i2_replay_from_any_seq_misses_nothing,
    i2_a_backward_load_is_the_forward_one_reversed,
    i2_the_fleet_stream_has_every_event_once_in_commit_order,
    i2_fifty_sessions_at_once_have_logs_without_gaps,
    i9_a_stale_epoch_is_fenced,
    i9_a_stale_head_is_fenced,
    i9_two_appends_on_one_head_commit_once,
    i9_a_deleted_session_fences_its_owner,
    i9_a_claim_of_an_unknown_session_is_not_found,
    i9_a_node_that_was_replaced_cannot_renew,
    a_page_ends_at_its_limits,
    an_unknown_session_is_not_found,
    lists_filter_by_state_label_and_wake,
    lists_page_newest_first,
    lists_page_in_every_order,
    lists_go_on_behind_a_changed_value_and_search,
    a_session_without_a_summary_is_hidden,
    an_idempotency_key_gives_its_answer_or_a_conflict,
    an_idempotency_key_is_forgotten_after_a_day,
    blobs_are_named_by_content_and_small_or_large_alike,
    charges_add_up,
    what_deleted_sessions_spent_stays_summed_up,
    words_resolve_to_ids_names_and_prefixes_of_either_end,
    a_deleted_session_is_gone,
    a_purge_removes_what_was_deleted_before_and_nothing_else,
    a_blob_lives_as_long_as_a_session_that_uses_it,
    a_cursor_is_never_used_again,
    a_sound_store_checks_clean,
    a_closed_store_refuses,
);

async fn i1_what_was_committed_is_read_back_byte_for_byte(kit: Kit) {
    let session = kit.session();
    let append = kit.create(session, "one", 3);
    let lines: Vec<_> = append
        .events
        .iter()
        .map(|event| (event.seq, event.body.clone()))
        .collect();
    assert_eq!(
        kit.log.append(append).await,
        Outcome::Committed { head: 3, cursor: 3 }
    );
    let page = kit.log.load(session, Range::default()).await.unwrap();
    assert_eq!(
        page,
        Page {
            events: lines,
            head: 3,
            more: false,
            damaged: None
        }
    );
}

async fn i2_a_repeated_append_writes_once(kit: Kit) {
    let session = kit.session();
    let append = kit.create(session, "one", 3);
    assert_eq!(
        kit.log.append(append.clone()).await,
        Outcome::Committed { head: 3, cursor: 3 }
    );
    assert_eq!(kit.log.append(append).await, Outcome::Duplicate { head: 3 });
    assert_eq!(kit.seqs(session).await, [1, 2, 3]);
}

async fn i2_a_repeated_append_is_known_even_after_later_ones(kit: Kit) {
    let session = kit.created(2).await;
    let second = kit.more(session, 1, 2, 2);
    assert_eq!(
        kit.log.append(second.clone()).await,
        Outcome::Committed { head: 4, cursor: 4 }
    );
    assert_eq!(
        kit.log.append(kit.more(session, 1, 4, 2)).await,
        Outcome::Committed { head: 6, cursor: 6 }
    );
    assert_eq!(kit.log.append(second).await, Outcome::Duplicate { head: 4 });
    assert_eq!(kit.seqs(session).await, [1, 2, 3, 4, 5, 6]);
}

async fn i2_a_gap_in_an_append_is_refused(kit: Kit) {
    let session = kit.created(2).await;
    let mut append = kit.more(session, 1, 2, 3);
    append.events.remove(1);
    let refused = Outcome::Failed("the append has a gap: event 4 is missing".to_owned());
    assert_eq!(kit.log.append(append).await, refused);
    assert_eq!(kit.seqs(session).await, [1, 2]);
}

async fn i2_replay_from_any_seq_misses_nothing(kit: Kit) {
    let session = kit.created(7).await;
    for after in 0..=8 {
        let page = kit
            .log
            .load(
                session,
                Range {
                    limit: 100,
                    ..Range::after(after)
                },
            )
            .await
            .unwrap();
        let seqs: Vec<_> = page.events.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (after + 1..=7).collect::<Vec<_>>());
    }
}

async fn i2_a_backward_load_is_the_forward_one_reversed(kit: Kit) {
    let session = kit.created(9).await;
    let range = Range {
        after: 2,
        upto: Some(8),
        ..Range::default()
    };
    let mut forward = kit.log.load(session, range).await.unwrap();
    let backward = kit
        .log
        .load(
            session,
            Range {
                direction: Direction::Backward,
                ..range
            },
        )
        .await
        .unwrap();
    forward.events.reverse();
    assert_eq!(backward, forward);
    let last = kit.log.load(session, Range::last(2)).await.unwrap();
    assert_eq!(
        last.events.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        [9, 8]
    );
    assert!(last.more);
}

async fn i2_the_fleet_stream_has_every_event_once_in_commit_order(kit: Kit) {
    let (a, b) = (kit.created(2).await, kit.created(1).await);
    assert!(kit.commits(kit.more(a, 1, 2, 2)).await);
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        let watched = kit.log.watch(Some(cursor), 2).await.unwrap();
        if watched.events.is_empty() {
            break;
        }
        cursor = watched.cursor;
        seen.extend(
            watched
                .events
                .into_iter()
                .map(|event| (event.cursor, event.session, event.seq, event.kind)),
        );
    }
    let (created, paused) = ("session.created".to_owned(), "session.paused".to_owned());
    let expected = [
        (1, a, 1, created.clone()),
        (2, a, 2, paused.clone()),
        (3, b, 1, created),
        (4, a, 3, paused.clone()),
        (5, a, 4, paused),
    ];
    assert_eq!(seen, expected);
    assert_eq!(kit.log.watch(None, 10).await.unwrap().cursor, 5);
    assert_eq!(*kit.log.committed().borrow(), 5);
    assert!(kit.log.delete(a).await.unwrap());
    let left = kit.log.watch(Some(0), 1).await.unwrap();
    let left: Vec<_> = left.events.iter().map(|event| event.session).collect();
    assert_eq!(left, [b], "the first page is not full of what was deleted");
}

async fn i2_fifty_sessions_at_once_have_logs_without_gaps(kit: Kit) {
    let sessions: Vec<_> = (0..50).map(|_| kit.session()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for session in sessions.clone() {
        let kit = kit.clone();
        tasks.spawn(async move {
            assert!(kit.commits(kit.create(session, "many", 2)).await);
            for step in 1..=10 {
                assert!(kit.commits(kit.more(session, 1, step * 2, 2)).await);
            }
        });
    }
    assert!(tasks.join_all().await.len() == 50);
    for session in sessions {
        assert_eq!(kit.seqs(session).await, (1..=22).collect::<Vec<_>>());
    }
    let cursors: BTreeSet<_> = kit
        .log
        .watch(Some(0), 0)
        .await
        .unwrap()
        .events
        .iter()
        .map(|event| event.cursor)
        .collect();
    assert_eq!(cursors.len(), 50 * 22);
}

async fn i9_a_stale_epoch_is_fenced(kit: Kit) {
    let session = kit.created(2).await;
    let claim = kit.log.claim(session).await.unwrap();
    assert_eq!((claim.epoch, claim.head), (2, 2));
    let fenced = Outcome::Fenced { epoch: 2, head: 2 };
    assert_eq!(kit.log.append(kit.more(session, 1, 2, 1)).await, fenced);
    assert_eq!(kit.log.append(kit.more(session, 3, 2, 1)).await, fenced);
    assert!(kit.commits(kit.more(session, 2, 2, 1)).await);
    kit.log.release(session, 2).await.unwrap();
    assert_eq!(kit.log.claim(session).await.unwrap().epoch, 3);
}

async fn i9_a_stale_head_is_fenced(kit: Kit) {
    let session = kit.created(3).await;
    let fenced = Outcome::Fenced { epoch: 1, head: 3 };
    assert_eq!(kit.log.append(kit.more(session, 1, 2, 1)).await, fenced);
    assert_eq!(kit.log.append(kit.more(session, 1, 4, 1)).await, fenced);
    assert_eq!(kit.log.append(kit.create(session, "again", 1)).await, fenced);
    let unknown = kit.session();
    assert_eq!(
        kit.log.append(kit.more(unknown, 1, 3, 1)).await,
        Outcome::Fenced { epoch: 0, head: 0 }
    );
    assert_eq!(
        kit.log.append(kit.more(unknown, 2, 0, 1)).await,
        Outcome::Fenced { epoch: 0, head: 0 }
    );
}

async fn i9_two_appends_on_one_head_commit_once(kit: Kit) {
    let session = kit.created(1).await;
    let (a, b) = tokio::join!(
        kit.log.append(kit.more(session, 1, 1, 1)),
        kit.log.append(kit.more(session, 1, 1, 2)),
    );
    let won = [&a, &b]
        .into_iter()
        .filter(|outcome| matches!(outcome, Outcome::Committed { .. }))
        .count();
    let lost = [&a, &b]
        .into_iter()
        .filter(|outcome| matches!(outcome, Outcome::Fenced { .. }))
        .count();
    assert_eq!((won, lost), (1, 1), "{a:?} {b:?}");
}

async fn i9_a_deleted_session_fences_its_owner(kit: Kit) {
    let session = kit.created(1).await;
    assert!(kit.log.delete(session).await.unwrap());
    assert_eq!(
        kit.log.append(kit.more(session, 1, 1, 1)).await,
        Outcome::Fenced { epoch: 2, head: 1 }
    );
    assert_eq!(
        kit.log.append(kit.more(session, 2, 1, 1)).await,
        Outcome::Fenced { epoch: 2, head: 1 }
    );
    assert!(matches!(kit.log.claim(session).await, Err(StoreError::NotFound(id)) if id == session));
}

async fn i9_a_claim_of_an_unknown_session_is_not_found(kit: Kit) {
    let session = kit.session();
    assert!(matches!(kit.log.claim(session).await, Err(StoreError::NotFound(id)) if id == session));
}

async fn i9_a_node_that_was_replaced_cannot_renew(kit: Kit) {
    let ttl = Duration::from_secs(10);
    let old = kit.log.register_node("a", ttl).await.unwrap();
    kit.log.renew(old, ttl).await.unwrap();
    let new = kit.log.register_node("a", ttl).await.unwrap();
    assert!(new > old);
    assert!(matches!(kit.log.renew(old, ttl).await, Err(StoreError::NodeLost)));
    kit.log.renew(new, ttl).await.unwrap();
}

async fn a_page_ends_at_its_limits(kit: Kit) {
    let session = kit.created(6).await;
    let page = kit
        .log
        .load(
            session,
            Range {
                limit: 4,
                ..Range::default()
            },
        )
        .await
        .unwrap();
    assert_eq!((page.events.len(), page.more), (4, true));
    let page = kit
        .log
        .load(
            session,
            Range {
                limit: 6,
                ..Range::default()
            },
        )
        .await
        .unwrap();
    assert_eq!((page.events.len(), page.more), (6, false));
    let page = kit
        .log
        .load(
            session,
            Range {
                max_bytes: 1,
                ..Range::after(2)
            },
        )
        .await
        .unwrap();
    assert_eq!(
        (
            page.events.first().map(|(seq, _)| *seq),
            page.events.len(),
            page.more
        ),
        (Some(3), 1, true)
    );
}

async fn an_unknown_session_is_not_found(kit: Kit) {
    let session = kit.session();
    assert!(matches!(
        kit.log.load(session, Range::default()).await,
        Err(StoreError::NotFound(_))
    ));
    assert_eq!(kit.log.row(session).await.unwrap(), None);
    assert!(!kit.log.delete(session).await.unwrap());
}

async fn lists_filter_by_state_label_and_wake(kit: Kit) {
    let sessions = [kit.session(), kit.session(), kit.session(), kit.session()];
    let [idle, asks, closed, model] = sessions;
    let states = [
        RunState::Idle,
        RunState::Waiting(WaitReason::Approval),
        RunState::Closed,
        RunState::RunningModel,
    ];
    for (session, state) in sessions.into_iter().zip(states) {
        let mut append = kit.create(session, "row", 1);
        let summary = append.summary.as_mut().unwrap();
        let team = if state.blocked() { "red" } else { "it's \"blue\"" };
        summary.status.state = state;
        summary.labels.insert("team".to_owned(), team.to_owned());
        summary.resumable = state == RunState::RunningModel;
        summary.wake_at = (state == RunState::Idle).then_some(Timestamp(99));
        assert!(kit.commits(append).await);
    }
    let state = |text: &str| Filter {
        states: vec![text.to_owned()],
        ..Filter::default()
    };
    let label = |team: &str| Filter {
        labels: [("team".to_owned(), team.to_owned())].into(),
        ..Filter::default()
    };
    let cases = [
        (Filter::default(), vec![model, asks, idle]),
        (
            Filter {
                all: true,
                ..Filter::default()
            },
            vec![model, closed, asks, idle],
        ),
        (state("waiting"), vec![asks]),
        (state("waiting(approval)"), vec![asks]),
        (state("closed"), vec![closed]),
        (state("wait"), vec![]),
        (label("red"), vec![asks]),
        (label("it's \"blue\""), vec![model, idle]),
        (
            Filter {
                resumable_or_timed: true,
                ..Filter::default()
            },
            vec![model, idle],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(kit.listed(filter.clone()).await, expected, "{filter:?}");
    }
    let counts = |states: &[&str]| states.iter().map(|state| ((*state).to_owned(), 1)).collect();
    let all = kit.log.states(None).await.unwrap();
    assert_eq!(all, counts(&["idle", "running(model)", "waiting(approval)"]));
    let some = kit.log.states(Some(vec![idle, closed])).await.unwrap();
    assert_eq!(some, counts(&["idle"]));
}

async fn lists_page_newest_first(kit: Kit) {
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(kit.created(1).await);
    }
    sessions.reverse();
    let first = kit
        .listed(Filter {
            limit: 3,
            ..Filter::default()
        })
        .await;
    let rest = kit
        .listed(Filter {
            limit: 3,
            after: first.last().copied().map(Into::into),
            ..Filter::default()
        })
        .await;
    assert_eq!([first, rest].concat(), sessions);
    assert_eq!(kit.log.count().await.unwrap(), 5);
}

/// Four sessions with titles beta, Alpha, gamma and delta, and other values that grow with the numbers 3, 1, 2 and 2.
async fn different(kit: &Kit) -> [SessionId; 4] {
    let rows = [("beta", 3), ("Alpha", 1), ("gamma", 2), ("delta", 2)];
    let states = [
        RunState::Closed,
        RunState::Idle,
        RunState::RunningModel,
        RunState::Failed,
    ];
    let mut sessions = Vec::new();
    for (name, number) in rows {
        let session = kit.session();
        let mut append = kit.create(session, "row", 1);
        let summary = append.summary.as_mut().unwrap();
        summary.name = name.to_owned();
        summary.model = format!("model-{number}");
        summary.status.state = states[number];
        summary.steps = number as u64;
        summary.usage.output = 10 * number as u64;
        summary.cost_usd = 0.1 * number as f64;
        summary.updated_at = Timestamp(1_000 - 100 * number as u64);
        assert!(kit.commits(append).await);
        sessions.push(session);
    }
    sessions.try_into().unwrap()
}

async fn lists_page_in_every_order(kit: Kit) {
    let [beta, alpha, gamma, delta] = different(&kit).await;
    let (numbers, reverse) = ([alpha, gamma, delta, beta], [beta, gamma, delta, alpha]);
    for (sort, ascending) in [
        (SortBy::Created, [beta, alpha, gamma, delta]),
        (SortBy::Name, [alpha, beta, delta, gamma]),
        (SortBy::Updated, reverse),
        (SortBy::Model, numbers),
        (SortBy::State, numbers),
        (SortBy::Steps, numbers),
        (SortBy::Tokens, numbers),
        (SortBy::Cost, numbers),
    ] {
        let all = |ascending, after| Filter {
            sort,
            ascending,
            after,
            limit: 3,
            ..Filter::default()
        };
        let mut expected = ascending;
        for up in [true, false] {
            let first = kit.log.list(all(up, None)).await.unwrap();
            let last = &first.last().unwrap().summary;
            let mut pages: Vec<SessionId> = first.iter().map(|row| row.summary.session).collect();
            let rest = kit.listed(all(up, Some(Listed::from(last).place(sort)))).await;
            assert_eq!(
                rest,
                kit.listed(all(up, Some(last.session.into()))).await,
                "{sort:?}"
            );
            pages.extend(rest);
            assert_eq!(pages, expected, "{sort:?}, ascending: {up}");
            expected.reverse();
        }
    }
}

async fn lists_go_on_behind_a_changed_value_and_search(kit: Kit) {
    let [beta, alpha, gamma, delta] = different(&kit).await;
    // A value that has changed since: the page begins where the session stood.
    let was = ListPlace {
        session: beta,
        key: Some("1.5".to_owned()),
    };
    let behind = |search: &str, after| Filter {
        sort: SortBy::Steps,
        search: search.to_owned(),
        after,
        ..Filter::default()
    };
    assert_eq!(kit.listed(behind("", Some(was))).await, [alpha]);
    assert_eq!(kit.listed(behind("model-2 l", None)).await, [delta, gamma]);
    assert_eq!(kit.listed(behind("alpha idle", None)).await, [alpha]);
    let unknown = kit.log.list(behind("", Some(kit.session().into()))).await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))), "{unknown:?}");
}

async fn a_session_without_a_summary_is_hidden(kit: Kit) {
    let mut append = kit.create(SessionId::NIL, "", 1);
    append.summary = None;
    assert!(kit.commits(append).await);
    assert_eq!(kit.log.row(SessionId::NIL).await.unwrap(), None);
    assert_eq!(
        kit.listed(Filter {
            all: true,
            ..Filter::default()
        })
        .await,
        []
    );
    assert_eq!(kit.log.count().await.unwrap(), 0);
    assert_eq!(kit.seqs(SessionId::NIL).await, [1]);
    assert_eq!(kit.log.claim(SessionId::NIL).await.unwrap().head, 1);
}

async fn an_idempotency_key_gives_its_answer_or_a_conflict(kit: Kit) {
    let session = kit.created(1).await;
    let send = |head, key: IdempotencyKey| {
        let mut append = kit.more(session, 1, head, 1);
        append.keys.push(key);
        kit.log.append(append)
    };
    assert_eq!(send(1, key(1)).await, Outcome::Committed { head: 2, cursor: 2 });
    let answer = "{\"hash\":1}".to_owned();
    assert_eq!(
        send(2, key(1)).await,
        Outcome::KeyTaken {
            answer: answer.clone(),
            same_body: true
        }
    );
    assert_eq!(
        send(2, key(2)).await,
        Outcome::KeyTaken {
            answer: answer.clone(),
            same_body: false
        }
    );
    let other = IdempotencyKey {
        method: "session.create".to_owned(),
        ..key(1)
    };
    assert_eq!(
        send(2, other).await,
        Outcome::KeyTaken {
            answer: answer.clone(),
            same_body: false
        }
    );
    let bob = IdempotencyKey {
        principal: Principal::user("bob"),
        ..key(2)
    };
    assert_eq!(send(2, bob).await, Outcome::Committed { head: 3, cursor: 3 });
    let stored = StoredKey {
        method: "input.send".to_owned(),
        body_hash: [1; 32],
        answer,
    };
    assert_eq!(
        kit.log.key(&Principal::user("ana"), "k1").await.unwrap(),
        Some(stored)
    );
    assert_eq!(kit.log.key(&Principal::user("eve"), "k1").await.unwrap(), None);
    assert_eq!(kit.seqs(session).await, [1, 2, 3]);
}

async fn an_idempotency_key_is_forgotten_after_a_day(kit: Kit) {
    let session = kit.created(1).await;
    let mut append = kit.more(session, 1, 1, 1);
    append.keys.push(key(1));
    assert!(kit.commits(append).await);
    kit.pass(24 * 60 * 60 * 1000);
    assert_eq!(kit.log.key(&Principal::user("ana"), "k1").await.unwrap(), None);
    let mut append = kit.more(session, 1, 2, 1);
    append.keys.push(key(2));
    assert!(kit.commits(append).await);
    let stored = kit.log.key(&Principal::user("ana"), "k1").await.unwrap().unwrap();
    assert_eq!(stored.body_hash, [2; 32]);
}

async fn blobs_are_named_by_content_and_small_or_large_alike(kit: Kit) {
    let session = kit.created(1).await;
    let (small, large) = (Bytes::from_static(b"abc"), Bytes::from(vec![7_u8; 300 * 1024]));
    let mut append = kit.more(session, 1, 1, 1);
    append.blobs = vec![Blob::new(small.clone()), Blob::new(large.clone())];
    let names: Vec<_> = append.blobs.iter().map(|blob| blob.name().to_owned()).collect();
    assert_eq!(
        names[0],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert!(kit.commits(append).await);
    assert_eq!(kit.log.blob(&names[0]).await.unwrap(), Some(small.clone()));
    assert_eq!(kit.log.blob(&names[1]).await.unwrap(), Some(large.clone()));
    assert_eq!(kit.log.put_blob(session, small).await.unwrap(), names[0]);
    assert_eq!(kit.log.put_blob(session, large).await.unwrap(), names[1]);
    let nobody = kit.log.put_blob(kit.session(), Bytes::from_static(b"x")).await;
    assert!(matches!(nobody, Err(StoreError::NotFound(_))));
    assert_eq!(kit.log.blob("../../etc/passwd").await.unwrap(), None);
    assert_eq!(kit.log.blob(&"0".repeat(64)).await.unwrap(), None);
}

async fn charges_add_up(kit: Kit) {
    let session = kit.created(1).await;
    let charge = |tokens, micro_usd| Charge {
        account: "team=red".to_owned(),
        tokens,
        micro_usd,
    };
    assert_eq!(kit.log.charged("team=red").await.unwrap(), charge(0, 0));
    for head in 1..3 {
        let mut append = kit.more(session, 1, head, 1);
        append.charges = vec![charge(10, 3)];
        assert!(kit.commits(append.clone()).await);
        assert_eq!(
            kit.log.append(append).await,
            Outcome::Duplicate { head: head + 1 }
        );
    }
    assert_eq!(kit.log.charged("team=red").await.unwrap(), charge(20, 6));
}

async fn spends(kit: &Kit, model: &str, labels: &[(&str, &str)], usd: f64) -> SessionId {
    let session = kit.session();
    let mut append = kit.create(session, "spender", 1);
    let summary = append.summary.as_mut().unwrap();
    summary.model = model.to_owned();
    summary.labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    (summary.steps, summary.usage.input, summary.cost_usd) = (3, 100, usd);
    assert!(kit.commits(append).await);
    session
}

async fn what_deleted_sessions_spent_stays_summed_up(kit: Kit) {
    let red = [("team", "red")];
    for (model, labels) in [("a", &red[..]), ("a", &red), ("b", &red), ("a", &[])] {
        let session = spends(&kit, model, labels, 0.5).await;
        assert!(kit.log.delete(session).await.unwrap());
        assert!(!kit.log.delete(session).await.unwrap(), "it counts once");
    }
    let kept = spends(&kit, "a", &red, 9.0).await;
    let idle = kit.created(1).await;
    kit.log.delete(idle).await.unwrap();
    kit.pass(1);
    kit.log.purge(kit.now()).await.unwrap();
    assert!(kit.log.row(kept).await.unwrap().is_some());
    let mut seen: Vec<_> = kit
        .log
        .spent()
        .await
        .unwrap()
        .into_iter()
        .map(|sum| {
            let team = sum.labels.get("team").cloned();
            (
                sum.model,
                team,
                sum.sessions,
                sum.steps,
                sum.usage.input,
                sum.cost_usd,
            )
        })
        .collect();
    seen.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let of = |model: &str, team: Option<&str>, sessions| {
        let (steps, input) = (3 * sessions, 100 * sessions);
        let usd = if sessions == 2 { 1.0 } else { 0.5 };
        (
            model.to_owned(),
            team.map(str::to_owned),
            sessions,
            steps,
            input,
            usd,
        )
    };
    assert_eq!(
        seen,
        [of("a", None, 1), of("a", Some("red"), 2), of("b", Some("red"), 1)]
    );
}

async fn words_resolve_to_ids_names_and_prefixes_of_either_end(kit: Kit) {
    let at = |ms, random| SessionId::from_parts(ms, random);
    let (a, b, c) = (
        at(0x1111_0000_0000, [0xaa; 10]),
        at(0x1111_0000_0001, [0xbb; 10]),
        at(
            0x2222_0000_0000,
            [0xcc, 0xcc, 0xcc, 0xcc, 0xcd, 0xef, 0xcc, 0xcc, 0xcc, 0xcc],
        ),
    );
    for (session, name) in [(a, "red"), (b, "red"), (c, "bb")] {
        assert!(kit.commits(kit.create(session, name, 1)).await);
    }
    let resolve = async |text: &str| {
        let found = kit.log.resolve(text, &[].into()).await.unwrap();
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(
        kit.log.resolve(&a.to_string(), &[].into()).await.unwrap(),
        [(a, "red".to_owned())]
    );
    assert_eq!(resolve(&c.short()).await, [c]);
    assert_eq!(resolve("cdef").await, [c], "as people see it");
    assert_eq!(resolve("1111").await, [b, a]);
    assert_eq!(resolve("11110000-0001").await, [b]);
    assert_eq!(resolve("CCCC").await, [c]);
    assert_eq!(resolve("red").await, [b, a]);
    assert_eq!(resolve("bb").await, [c], "a name beats a prefix");
    for nobody in ["re", "", "%"] {
        assert_eq!(resolve(nobody).await, []);
    }
}

async fn a_deleted_session_is_gone(kit: Kit) {
    let (session, kept) = (kit.created(3).await, kit.created(1).await);
    assert!(kit.log.delete(session).await.unwrap());
    assert!(!kit.log.delete(session).await.unwrap());
    assert!(matches!(
        kit.log.load(session, Range::default()).await,
        Err(StoreError::NotFound(_))
    ));
    assert_eq!(kit.log.row(session).await.unwrap(), None);
    assert_eq!(
        kit.listed(Filter {
            all: true,
            ..Filter::default()
        })
        .await,
        [kept]
    );
    assert_eq!(
        kit.log.resolve(&session.to_string(), &[].into()).await.unwrap(),
        []
    );
    let watched = kit.log.watch(Some(0), 0).await.unwrap().events;
    assert_eq!(
        watched.iter().map(|event| event.session).collect::<Vec<_>>(),
        [kept]
    );
}

async fn a_purge_removes_what_was_deleted_before_and_nothing_else(kit: Kit) {
    let (session, kept) = (kit.session(), kit.session());
    let shared = Blob::new(Bytes::from_static(b"shared"));
    let mut append = kit.create(session, "gone", 3);
    append.blobs = vec![Blob::new(Bytes::from(vec![1; 300 * 1024])), shared.clone()];
    assert!(kit.commits(append).await);
    let mut append = kit.create(kept, "kept", 1);
    append.blobs = vec![shared.clone()];
    assert!(kit.commits(append).await);
    assert!(kit.log.delete(session).await.unwrap());
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 0, "deleted just now");
    kit.pass(1);
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
    assert_eq!(
        kit.log.blob(shared.name()).await.unwrap(),
        Some(shared.bytes().clone())
    );
    assert_eq!(kit.seqs(kept).await, [1]);
    assert!(kit.commits(kit.create(session, "new under an old id", 1)).await);
}

async fn a_blob_lives_as_long_as_a_session_that_uses_it(kit: Kit) {
    let (session, copy) = (kit.created(1).await, kit.created(1).await);
    let contents = [Bytes::from(vec![5; 300 * 1024]), Bytes::from_static(b"small")];
    let mut names = Vec::new();
    for content in &contents {
        names.push(kit.log.put_blob(session, content.clone()).await.unwrap());
    }
    let alone = kit
        .log
        .put_blob(copy, Bytes::from_static(b"alone"))
        .await
        .unwrap();
    kit.log.share_blobs(session, copy).await.unwrap();
    // A newer event elsewhere, because the purge always keeps the newest one.
    let _newest = kit.created(1).await;
    for (gone, left) in [(session, true), (copy, false)] {
        assert!(kit.log.delete(gone).await.unwrap());
        kit.pass(1);
        assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
        for (name, content) in names.iter().zip(&contents) {
            let found = kit.log.blob(name).await.unwrap();
            assert_eq!(found, left.then(|| content.clone()), "after {gone}");
        }
        assert_eq!(kit.log.blob(&alone).await.unwrap().is_some(), left);
    }
    assert!(matches!(
        kit.log.share_blobs(session, copy).await,
        Err(StoreError::NotFound(_))
    ));
}

async fn a_cursor_is_never_used_again(kit: Kit) {
    let session = kit.created(3).await;
    assert!(kit.log.delete(session).await.unwrap());
    kit.pass(1);
    kit.log.purge(kit.now()).await.unwrap();
    let next = kit.session();
    let outcome = kit.log.append(kit.create(next, "next", 1)).await;
    assert_eq!(outcome, Outcome::Committed { head: 1, cursor: 4 });
}

async fn a_sound_store_checks_clean(kit: Kit) {
    kit.created(3).await;
    kit.created(2).await;
    let found = kit.log.check().await.unwrap();
    assert!(found.bytes > 0);
    assert_eq!(
        found,
        Integrity {
            problems: Vec::new(),
            warnings: Vec::new(),
            sessions: 2,
            events: 5,
            bytes: found.bytes
        }
    );
}

async fn a_closed_store_refuses(kit: Kit) {
    let session = kit.created(1).await;
    kit.log.close().await.unwrap();
    let refused = Outcome::Failed("the store has stopped: it was closed".to_owned());
    assert_eq!(kit.log.append(kit.more(session, 1, 1, 1)).await, refused);
    assert!(matches!(kit.log.row(session).await, Err(StoreError::Stopped(_))));
    kit.log.close().await.unwrap();
}
