//! One suite for all backends: export, import, rebuild and mirror.

use super::kit::{Kit, event, summary};
use agentd_protocol::{Seq, SessionId, Summary};
use agentd_store::{EncodedEvent, Filter, Mirror, OwnLog, Restored, StoreError, export, rebuild, restore};
use bytes::Bytes;
use std::io::Write as _;
use std::sync::Arc;

jsonl!(
    i2_an_export_imported_elsewhere_is_the_same_bytes,
    an_import_under_a_taken_id_changes_the_id_and_nothing_else,
    i2_an_import_with_a_gap_or_a_stranger_is_refused_and_leaves_nothing,
    an_unknown_event_type_survives_an_import,
    the_mirror_follows_and_a_store_is_rebuilt_from_it,
    the_mirror_mends_a_torn_line_and_a_lost_file,
    i1_the_mirror_keeps_a_file_that_goes_further_than_the_log,
);

fn row(session: SessionId, _: &[EncodedEvent]) -> Result<Option<Summary>, String> {
    Ok((session != SessionId::NIL).then(|| summary(session, "imported")))
}

fn lines(session: SessionId, events: Seq) -> Vec<Bytes> {
    (1..=events).map(|seq| event(session, seq).body).collect()
}

async fn follows(mirror: &Mirror, kit: &Kit) {
    let end = kit.log.watch(None, 1).await.unwrap().cursor;
    mirror.written().wait_for(|cursor| *cursor >= end).await.unwrap();
}

async fn i2_an_export_imported_elsewhere_is_the_same_bytes(fresh: fn() -> Kit) {
    for (here, there) in [(Kit::memory(), fresh()), (fresh(), Kit::memory())] {
        let session = here.created(1_200).await;
        let exported = export(&*here.log, session, 0, 0).await.unwrap();
        let imported = restore(
            &*there.log,
            &OwnLog::vouched(exported.clone()),
            &mut there.stamp(),
            row,
        )
        .await
        .unwrap();
        assert_eq!(
            imported,
            Restored {
                session,
                from: session,
                head: 1_200
            }
        );
        assert_eq!(export(&*there.log, session, 0, 0).await.unwrap(), exported);
        assert_eq!(there.listed(Filter::default()).await, [session]);
    }
}

async fn an_import_under_a_taken_id_changes_the_id_and_nothing_else(fresh: fn() -> Kit) {
    for deleted in [false, true] {
        let kit = fresh();
        let session = kit.created(3).await;
        let exported = export(&*kit.log, session, 0, 0).await.unwrap();
        if deleted {
            assert!(kit.log.delete(session).await.unwrap());
        }
        let imported = restore(
            &*kit.log,
            &OwnLog::vouched(exported.clone()),
            &mut kit.stamp(),
            row,
        )
        .await
        .unwrap();
        assert_ne!(imported.session, session);
        let copy = export(&*kit.log, imported.session, 0, 0).await.unwrap();
        assert_eq!(copy, lines(imported.session, 3));
    }
}

/// The line of an import that is refused, and the reason.
async fn refusal(kit: &Kit, lines: Vec<Bytes>) -> (Seq, String) {
    match restore(&*kit.log, &OwnLog::vouched(lines), &mut kit.stamp(), row).await {
        Err(StoreError::BadImport { line, reason }) => (line, reason),
        other => panic!("{other:?}"),
    }
}

async fn i2_an_import_with_a_gap_or_a_stranger_is_refused_and_leaves_nothing(fresh: fn() -> Kit) {
    let kit = fresh();
    let (a, b) = (kit.session(), kit.session());
    let reason = async |lines: Vec<Bytes>| refusal(&kit, lines).await;
    let mut gap = lines(a, 4);
    gap.remove(2);
    assert_eq!(reason(gap).await, (3, "seq is 4, expected 3".to_owned()));
    let mixed = [lines(a, 2), lines(b, 3)[2..].to_vec()].concat();
    assert_eq!(
        reason(mixed).await,
        (
            3,
            "it belongs to a different session than the first line".to_owned()
        )
    );
    let late = vec![Bytes::from(
        lines(a, 2)[1]
            .to_vec()
            .iter()
            .map(|b| *b as char)
            .collect::<String>()
            .replace("\"seq\":2", "\"seq\":1"),
    )];
    assert_eq!(
        reason(late).await,
        (
            1,
            "the first event is session.paused, expected session.created".to_owned()
        )
    );
    assert_eq!(reason(Vec::new()).await, (1, "there are no lines".to_owned()));
    assert_eq!(reason(vec![Bytes::from_static(b"{}")]).await.0, 1);
    let refuse = |_, _: &[EncodedEvent]| Err("no".to_owned());
    assert!(
        restore(
            &*kit.log,
            &OwnLog::vouched(lines(a, 2).clone()),
            &mut kit.stamp(),
            refuse
        )
        .await
        .is_err()
    );
    assert_eq!(
        kit.listed(Filter {
            all: true,
            ..Filter::default()
        })
        .await,
        []
    );
}

async fn an_unknown_event_type_survives_an_import(fresh: fn() -> Kit) {
    let kit = fresh();
    let session = kit.session();
    let mut all = lines(session, 1);
    let newer = format!(
        r#"{{"v":1,"session":"{session}","seq":2,"at":"2026-11-20T09:00:00.123Z","by":"agentd","type":"moon.landed","x":1.10}}"#
    );
    all.push(newer.into());
    restore(&*kit.log, &OwnLog::vouched(all.clone()), &mut kit.stamp(), row)
        .await
        .unwrap();
    let watched = kit.log.watch(Some(1), 1).await.unwrap();
    assert_eq!(
        (watched.events[0].kind.as_str(), &watched.events[0].body),
        ("moon.landed", &all[1])
    );
}

async fn the_mirror_follows_and_a_store_is_rebuilt_from_it(fresh: fn() -> Kit) {
    for kit in [Kit::memory(), fresh()] {
        let old = kit.created(3).await;
        let mirrors = kit.dir().join("jsonl");
        let mirror = Mirror::start(Arc::clone(&kit.log), &mirrors).unwrap();
        let new = kit.created(2).await;
        assert!(kit.commits(kit.more(old, 1, 3, 2)).await);
        follows(&mirror, &kit).await;
        let file = |session: SessionId| std::fs::read(mirrors.join(format!("{session}.jsonl"))).unwrap();
        let text = |session, events| {
            lines(session, events)
                .iter()
                .flat_map(|line| [&line[..], b"\n"].concat())
                .collect::<Vec<u8>>()
        };
        assert_eq!(file(old), text(old, 5));
        assert_eq!(file(new), text(new, 2));

        let there = fresh();
        let made = rebuild(&*there.log, &mirrors, &mut there.stamp(), row)
            .await
            .unwrap();
        assert!(made.iter().all(|(_, result)| result.is_ok()), "{made:?}");
        assert_eq!(there.listed(Filter::default()).await, [new, old]);
        assert_eq!(export(&*there.log, old, 0, 0).await.unwrap(), lines(old, 5));
    }
}

async fn the_mirror_mends_a_torn_line_and_a_lost_file(fresh: fn() -> Kit) {
    let kit = fresh();
    let (torn, lost) = (kit.created(2).await, kit.created(2).await);
    let mirrors = kit.dir().join("jsonl");
    let mirror = Mirror::start(Arc::clone(&kit.log), &mirrors).unwrap();
    follows(&mirror, &kit).await;
    drop(mirror);
    let path = |session: SessionId| mirrors.join(format!("{session}.jsonl"));
    let good = [
        std::fs::read(path(torn)).unwrap(),
        std::fs::read(path(lost)).unwrap(),
    ];
    let mut file = std::fs::OpenOptions::new().append(true).open(path(torn)).unwrap();
    file.write_all(b"{\"v\":1,\"sess").unwrap();
    std::fs::remove_file(path(lost)).unwrap();
    let mirror = Mirror::start(Arc::clone(&kit.log), &mirrors).unwrap();
    follows(&mirror, &kit).await;
    assert_eq!(
        [
            std::fs::read(path(torn)).unwrap(),
            std::fs::read(path(lost)).unwrap()
        ],
        good
    );
}

async fn i1_the_mirror_keeps_a_file_that_goes_further_than_the_log(fresh: fn() -> Kit) {
    let (kit, shorter) = (fresh(), fresh());
    let session = kit.created(5).await;
    let mirrors = kit.dir().join("jsonl");
    let mirror = Mirror::start(Arc::clone(&kit.log), &mirrors).unwrap();
    follows(&mirror, &kit).await;
    drop(mirror);
    let path = mirrors.join(format!("{session}.jsonl"));
    let whole = std::fs::read(&path).unwrap();
    assert!(shorter.commits(shorter.create(session, "created", 2)).await);
    let mirror = Mirror::start(Arc::clone(&shorter.log), &mirrors).unwrap();
    follows(&mirror, &shorter).await;
    drop(mirror);
    assert_eq!(std::fs::read(path.with_extension("jsonl.lost-1")).unwrap(), whole);
    let lines = std::fs::read_to_string(&path).unwrap();
    assert_eq!(lines.lines().count(), 2);
}
