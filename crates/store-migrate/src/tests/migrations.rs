//! One suite for migrations between all backends.

use super::kit::{Kit, key, moving_clock, summary};
use agentd_protocol::{Principal, SessionId, Timestamp};
use agentd_store::parts::{Cell, EVENT, Limits, Mark, SESSION, TABLES};
use agentd_store::{
    Append, Backend, Blob, Charge, Filter, Options, Outcome, Purpose, Range, StoreError, StoredToken, Watched,
};
use agentd_store_migrate::{Migrated, Migration, Progress, Task, migrate};
use agentd_store_sqlite::open;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

migrations!(
    i1_i2_a_migration_that_is_cut_off_after_each_batch_copies_everything_once,
    i1_a_daemon_opens_a_destination_only_when_it_is_complete,
    i2_the_stream_goes_on_where_it_was_after_its_newest_session_was_purged,
    a_destination_with_other_data_is_refused,
    a_migration_does_not_continue_from_a_source_that_was_used_since,
    what_differs_is_named_and_the_destination_stays_closed,
    a_blob_that_the_source_has_lost_is_reported,
    a_dry_run_changes_nothing,
    a_finished_migration_is_verified_again,
);

/// A database that tests open and close.
#[async_trait]
pub(crate) trait Side: Sync {
    async fn open_with(&self, options: Options) -> Result<Arc<dyn Backend>, StoreError>;

    async fn opened(&self, purpose: Purpose) -> Result<Arc<dyn Backend>, StoreError> {
        let (clock, _) = moving_clock();
        let options = Options {
            clock,
            purpose,
            ..Options::default()
        };
        self.open_with(options).await
    }

    async fn kit(&self) -> Kit {
        let (clock, now) = moving_clock();
        let options = Options {
            clock,
            ..Options::default()
        };
        let backend = self.open_with(options).await.unwrap();
        Kit::new(tempfile::tempdir().unwrap(), backend, now)
    }
}

/// A database file in a directory of its own.
pub(crate) struct DatabaseFile(tempfile::TempDir);

impl Default for DatabaseFile {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl Side for DatabaseFile {
    async fn open_with(&self, options: Options) -> Result<Arc<dyn Backend>, StoreError> {
        open("sqlite:agentd.db", self.0.path(), options)
    }
}

const LARGE: usize = 700 * 1024;

fn token() -> StoredToken {
    StoredToken {
        name: "ci".to_owned(),
        hash: [3; 32],
        scopes: vec!["read".to_owned()],
        labels: [("team".to_owned(), "infra".to_owned())].into(),
        rights: Some(agentd_protocol::TokenRights::all()),
        created: Timestamp(5),
        by: Principal::user("ana"),
        expires: None,
        used: Some(Timestamp(9)),
        revoked: None,
    }
}

fn blobs() -> [Blob; 3] {
    [
        Blob::new("small".into()),
        Blob::new("".into()),
        Blob::new(vec![b'x'; LARGE].into()),
    ]
}

async fn written(kit: &Kit, append: Append) {
    assert!(kit.commits(append).await);
}

/// A store with some of everything. Returns its first session.
async fn fill(side: &dyn Side) -> SessionId {
    let kit = side.kit().await;
    let first = kit.session();
    let mut append = kit.create(first, "first \"ünïcode\"\0", 3);
    append.blobs = blobs().into();
    append.charges = vec![Charge {
        account: "team=infra".to_owned(),
        tokens: 12,
        micro_usd: 34,
    }];
    append.keys = vec![key(7)];
    written(&kit, append).await;
    let child = kit.session();
    let mut append = kit.create(child, "child", 2);
    append.summary = Some(agentd_protocol::Summary {
        parent: Some(first),
        labels: [("team".to_owned(), "infra\0".to_owned())].into(),
        resumable: true,
        wake_at: Some(Timestamp(77)),
        ..summary(child, "child")
    });
    append.blobs = vec![Blob::new("small".into())];
    written(&kit, append).await;
    // The logs of sessions alternate in the stream.
    written(&kit, kit.more(first, 1, 3, 2)).await;
    let gone = kit.session();
    let mut append = kit.create(gone, "gone", 4);
    append.summary = Some(agentd_protocol::Summary {
        steps: 8,
        cost_usd: 0.1 + 0.2,
        ..summary(gone, "gone")
    });
    written(&kit, append).await;
    assert!(kit.log.delete(gone).await.unwrap());
    // One that is being imported.
    written(&kit, kit.more(kit.session(), 1, 0, 2)).await;
    assert!(kit.log.add_token(token(), Timestamp(0)).await.unwrap());
    assert_eq!(kit.log.claim(first).await.unwrap().epoch, 2);
    for _ in 0..5 {
        kit.created(1).await;
    }
    kit.log.close().await.unwrap();
    first
}

/// The content that a daemon shows.
async fn seen(log: &dyn Backend) -> (String, Watched, Vec<Option<Bytes>>) {
    let filter = Filter {
        all: true,
        ..Filter::default()
    };
    let rows = log.list(filter).await.unwrap();
    let mut text = String::new();
    for row in &rows {
        let page = log.load(row.summary.session, Range::default()).await.unwrap();
        text.push_str(&format!("{row:?} {page:?}\n"));
    }
    let stored = log.key(&Principal::user("ana"), "k1").await.unwrap();
    assert_eq!(
        stored.as_ref().map(|stored| stored.answer.as_str()),
        Some(key(7).answer.as_str())
    );
    let (tokens, spent) = (log.tokens().await.unwrap(), log.spent().await.unwrap());
    let charged = log.charged("team=infra").await.unwrap();
    text.push_str(&format!("{stored:?} {tokens:?} {spent:?} {charged:?}"));
    let mut contents = Vec::new();
    for blob in blobs() {
        contents.push(log.blob(blob.name()).await.unwrap());
    }
    (text, log.watch(Some(0), 0).await.unwrap(), contents)
}

async fn seen_of(side: &dyn Side) -> (String, Watched, Vec<Option<Bytes>>) {
    let log = side.opened(Purpose::Serve).await.unwrap();
    let seen = seen(log.as_ref()).await;
    log.close().await.unwrap();
    seen
}

/// Runs a migration until it ends, or `stop` says so.
async fn run(
    from: &dyn Side,
    to: &dyn Side,
    task: Task,
    mut stop: impl FnMut(Progress) -> bool + Send,
) -> Result<Migrated, StoreError> {
    let from = from.opened(Purpose::Source).await?;
    let to = to.opened(Purpose::Destination).await?;
    let migration = Migration {
        from: from.as_ref(),
        to: to.as_ref(),
        origin: "the source".to_owned(),
        node: None,
        task,
        limits: Limits {
            rows: 3,
            bytes: 2_000,
        },
    };
    let done = migrate(&migration, &mut |progress| match stop(progress) {
        true => Err(StoreError::Refused("cut off".to_owned())),
        false => Ok(()),
    })
    .await;
    from.close().await?;
    to.close().await?;
    done
}

fn is_cut(done: &Result<Migrated, StoreError>) -> bool {
    matches!(done, Err(StoreError::Refused(why)) if why == "cut off")
}

async fn i1_i2_a_migration_that_is_cut_off_after_each_batch_copies_everything_once(
    from: impl Side,
    to: impl Side,
) {
    let first = fill(&from).await;
    let before = seen_of(&from).await;
    let (mut copied, mut batches) = (BTreeMap::new(), 0);
    let done = loop {
        let mut told = None;
        let done = run(&from, &to, Task::Copy, |progress| {
            told = progress.table.map(|table| (table, progress.done, progress.of));
            told.is_some()
        })
        .await;
        if !is_cut(&done) {
            break done.unwrap();
        }
        let (table, rows, of) = told.unwrap();
        batches += 1;
        assert!(
            rows <= of && copied.insert(table, rows) < Some(rows),
            "{table}: {rows} of {of}"
        );
    };
    assert!(batches > 12, "{batches}");
    let rows = |table| done.sums[table].rows;
    assert_eq!((rows("session"), rows("event"), rows("blob_use")), (9, 18, 4));
    assert!(
        copied.iter().all(|(table, copied)| *copied == rows(table)),
        "{copied:?}"
    );
    assert_eq!(
        done.copied.values().sum::<u64>(),
        0,
        "the last run had nothing to copy"
    );
    assert_eq!(done.problems, [] as [String; 0]);
    assert_eq!(seen_of(&from).await, before, "the source is as it was");
    assert_eq!(seen_of(&to).await, before);
    // A daemon goes on with it.
    let kit = to.kit().await;
    assert_eq!(kit.log.check().await.unwrap().problems, [] as [String; 0]);
    assert_eq!(kit.log.claim(first).await.unwrap().epoch, 3);
    let more = kit.more(first, 3, 5, 1);
    let cursor = before.1.cursor.max(18) + 1;
    assert_eq!(kit.log.append(more).await, Outcome::Committed { head: 6, cursor });
    let new = kit.created(1).await;
    assert_eq!(kit.seqs(new).await, [1]);
}

async fn i1_a_daemon_opens_a_destination_only_when_it_is_complete(from: impl Side, to: impl Side) {
    fill(&from).await;
    let cut = run(&from, &to, Task::Copy, |progress| progress.table.is_none()).await;
    assert!(is_cut(&cut), "{cut:?}");
    for purpose in [Purpose::Serve, Purpose::Source] {
        let refused = to.opened(purpose).await.map(drop).unwrap_err();
        assert!(
            matches!(&refused, StoreError::Unfinished { origin } if origin == "the source"),
            "{refused}"
        );
    }
    run(&from, &to, Task::Copy, |_| false).await.unwrap();
    to.opened(Purpose::Serve).await.unwrap().close().await.unwrap();
}

async fn i2_the_stream_goes_on_where_it_was_after_its_newest_session_was_purged(
    from: impl Side,
    to: impl Side,
) {
    let kit = from.kit().await;
    let (kept, newest) = (kit.created(2).await, kit.created(3).await);
    assert!(kit.log.delete(newest).await.unwrap());
    kit.pass(1_000);
    kit.log.purge(kit.now()).await.unwrap();
    kit.log.close().await.unwrap();
    let done = run(&from, &to, Task::Copy, |_| false).await.unwrap();
    assert_eq!(done.cursor, 5);
    run(&from, &to, Task::Verify, |_| false).await.unwrap();
    let kit = to.kit().await;
    assert_eq!(*kit.log.committed().borrow(), 5);
    assert_eq!(kit.log.watch(Some(0), 0).await.unwrap().events.len(), 2);
    let next = kit.more(kept, 1, 2, 1);
    assert_eq!(
        kit.log.append(next).await,
        Outcome::Committed { head: 3, cursor: 6 }
    );
}

async fn a_destination_with_other_data_is_refused(from: impl Side, to: impl Side) {
    fill(&from).await;
    let kit = to.kit().await;
    kit.created(2).await;
    kit.log.close().await.unwrap();
    let refused = run(&from, &to, Task::Copy, |_| false)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("holds other data (2 of event, 1 of session)"),
        "{refused}"
    );
    let kit = to.kit().await;
    assert_eq!(kit.log.count().await.unwrap(), 1);
}

async fn a_migration_does_not_continue_from_a_source_that_was_used_since(from: impl Side, to: impl Side) {
    let first = fill(&from).await;
    assert!(is_cut(&run(&from, &to, Task::Copy, |_| true).await));
    let kit = from.kit().await;
    kit.log.claim(first).await.unwrap();
    kit.log.close().await.unwrap();
    let refused = run(&from, &to, Task::Copy, |_| false)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("a daemon used it since"), "{refused}");
}

async fn what_differs_is_named_and_the_destination_stays_closed(from: impl Side, to: impl Side) {
    let first = fill(&from).await;
    assert!(is_cut(
        &run(&from, &to, Task::Copy, |progress| progress.table.is_none()).await
    ));
    // Rows that the source does not have, with the mark of a complete copy.
    let log = to.opened(Purpose::Destination).await.unwrap();
    let parts = log.parts().unwrap();
    let mark = parts.facts().await.unwrap().mark.unwrap();
    let limits = Limits::default();
    let mut event = parts.page(&EVENT, Vec::new(), limits).await.unwrap().remove(0);
    event[EVENT.place("cursor")] = Cell::Int(99);
    event[EVENT.place("seq")] = Cell::Int(6);
    parts
        .put(&EVENT, vec![event], Mark { ..mark.clone() })
        .await
        .unwrap();
    log.close().await.unwrap();
    let refused = run(&from, &to, Task::Copy, |_| false)
        .await
        .unwrap_err()
        .to_string();
    let uid = first.to_string().replace('-', "");
    assert!(
        refused.contains(&format!("session {uid} differs: the source has 5 events")),
        "{refused}"
    );
    let refused = to.opened(Purpose::Serve).await.map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Unfinished { .. }), "{refused}");
}

async fn a_blob_that_the_source_has_lost_is_reported(from: impl Side, to: impl Side) {
    fill(&from).await;
    // A use of content that is not there.
    let log = from.opened(Purpose::Destination).await.unwrap();
    let parts = log.parts().unwrap();
    let of_use = TABLES[2];
    let mut row = parts
        .page(of_use, Vec::new(), Limits::default())
        .await
        .unwrap()
        .remove(0);
    row[0] = Cell::Text("f".repeat(64));
    let mark = Mark {
        state: String::new(),
        origin: String::new(),
        part: SESSION.name.to_owned(),
        place: String::new(),
    };
    let cursor = parts.facts().await.unwrap().cursor;
    parts.begin(mark.clone()).await.unwrap();
    parts.put(of_use, vec![row], mark).await.unwrap();
    parts.finish(cursor, None).await.unwrap();
    log.close().await.unwrap();
    let done = run(&from, &to, Task::Copy, |_| false).await.unwrap();
    let problem = format!(
        "blob {} was already missing or damaged in the source",
        "f".repeat(64)
    );
    assert_eq!(done.problems, [problem]);
}

async fn a_dry_run_changes_nothing(from: impl Side, to: impl Side) {
    fill(&from).await;
    let told = run(&from, &to, Task::DryRun, |_| false).await.unwrap();
    assert_eq!((told.copied["session"], told.copied["event"]), (9, 18));
    let kit = to.kit().await;
    assert_eq!(kit.log.count().await.unwrap(), 0);
    assert_eq!(kit.log.parts().unwrap().facts().await.unwrap().mark, None);
}

async fn a_finished_migration_is_verified_again(from: impl Side, to: impl Side) {
    fill(&from).await;
    let done = run(&from, &to, Task::Copy, |_| false).await.unwrap();
    let again = run(&from, &to, Task::Verify, |_| false).await.unwrap();
    assert_eq!(again.sums, done.sums);
    let refused = run(&from, &to, Task::Copy, |_| false)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("holds other data"), "{refused}");
    let kit = to.kit().await;
    // Not the ids of the source again.
    kit.pass(60_000);
    kit.created(1).await;
    kit.log.close().await.unwrap();
    let refused = run(&from, &to, Task::Verify, |_| false)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("differs: the source has no session"),
        "{refused}"
    );
}
