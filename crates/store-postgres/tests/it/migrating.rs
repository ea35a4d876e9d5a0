//! Migrations of a PostgreSQL database: live nodes, and rows that only one backend can hold.

use crate::migrations::{DatabaseFile, Side};
use crate::server::Database;
use agentd_store::parts::{Cell, EVENT, Limits, Mark, SESSION};
use agentd_store::{Backend, Joining, Options, Purpose, Range, StoreError};
use agentd_store_migrate::{Migrated, Migration, Task, migrate};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

#[async_trait]
impl Side for Database {
    async fn open_with(&self, options: Options) -> Result<Arc<dyn Backend>, StoreError> {
        self.open(options).await
    }
}

async fn copied(from: &dyn Side, to: &dyn Side) -> Result<Migrated, StoreError> {
    copied_of(from, to, None).await
}

/// The directories of the sessions are on the machine of this node.
async fn copied_of(from: &dyn Side, to: &dyn Side, node: Option<&str>) -> Result<Migrated, StoreError> {
    let from = from.opened(Purpose::Source).await?;
    let to = to.opened(Purpose::Destination).await?;
    let migration = Migration {
        from: from.as_ref(),
        to: to.as_ref(),
        origin: "the source".to_owned(),
        node: node.map(str::to_owned),
        task: Task::Copy,
        limits: Limits::default(),
    };
    let done = migrate(&migration, &mut |_| Ok(())).await;
    from.close().await?;
    to.close().await?;
    done
}

fn joining(name: &str, ttl: Duration) -> Joining {
    Joining {
        name: name.to_owned(),
        identity: format!("directory of {name}"),
        ttl,
        ..Joining::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_live_nodes_are_named_and_none_can_join_during_a_migration() {
    let Some(database) = Database::create("live nodes") else {
        return;
    };
    let file = DatabaseFile::default();
    let node = database.open(Options::default()).await.unwrap();
    let fleet = node.fleet().unwrap();
    fleet
        .join(&joining("web1", Duration::from_secs(3_600)))
        .await
        .unwrap();
    // One that was killed, and whose lease has ended.
    let killed = database.open(Options::default()).await.unwrap();
    killed
        .fleet()
        .unwrap()
        .join(&joining("web2", Duration::ZERO))
        .await
        .unwrap();
    let sides: [(&dyn Side, &dyn Side); 2] = [(&file, &database), (&database, &file)];
    for (from, to) in sides {
        // The file must exist.
        file.opened(Purpose::Serve).await.unwrap().close().await.unwrap();
        let refused = copied(from, to).await.unwrap_err().to_string();
        assert!(refused.contains(": web1; stop them"), "{refused}");
    }
    node.close().await.unwrap();
    let source = database.opened(Purpose::Source).await.unwrap();
    let held = source.parts().unwrap().hold().await.unwrap();
    let second = source
        .parts()
        .unwrap()
        .hold()
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(second.contains("another migration uses it"), "{second}");
    // The lock of `join_3`.
    let joining = "SELECT pg_try_advisory_xact_lock(112603926429699)";
    assert_eq!(database.run(joining), "f");
    drop(held);
    // The server may not know yet that the connection is gone.
    source.parts().unwrap().hold().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_ordered_searched_and_kept_together_as_before() {
    let Some(database) = Database::create("derived columns") else {
        return;
    };
    let file = DatabaseFile::default();
    let kit = file.kit().await;
    let parent = kit.created(1).await;
    let child = kit.session();
    let mut append = kit.create(child, "child", 1);
    append.summary = Some(agentd_protocol::Summary {
        parent: Some(parent),
        steps: 5,
        ..crate::kit::summary(child, "child")
    });
    assert!(kit.commits(append).await);
    kit.log.close().await.unwrap();
    copied(&file, &database).await.unwrap();
    let hex = |session: agentd_protocol::SessionId| session.to_string().replace('-', "");
    let found = database.run(&format!(
        "SELECT root, sort_name, sort_model, sort_steps FROM agentd.session WHERE uid = '{}'",
        hex(child)
    ));
    assert_eq!(found, format!("{}|child|m|5", hex(parent)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_named_node_runs_copied_sessions() {
    let Some(database) = Database::create("the node of copied sessions") else {
        return;
    };
    let file = DatabaseFile::default();
    let kit = file.kit().await;
    let session = kit.created(1).await;
    kit.log.close().await.unwrap();
    copied_of(&file, &database, Some("web2")).await.unwrap();
    let joined = async |name| {
        let node = database.open(Options::default()).await.unwrap();
        let fleet = node.fleet().unwrap();
        fleet
            .join(&joining(name, Duration::from_secs(3_600)))
            .await
            .unwrap();
        node
    };
    let refused = joined("web1").await.claim(session).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Away { away, .. } if away.home == "web2"),
        "{refused:?}"
    );
    joined("web2").await.claim(session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_early_versions_get_their_checksums_and_damage_stays() {
    let Some(database) = Database::create("early rows") else {
        return;
    };
    let [new, file, back] = std::array::from_fn(|_| DatabaseFile::default());
    let kit = new.kit().await;
    let (early, damaged) = (kit.created(2).await, kit.created(2).await);
    let (from, to) = (
        kit.log.parts().unwrap(),
        file.opened(Purpose::Destination).await.unwrap(),
    );
    let mark = Mark {
        state: String::new(),
        origin: String::new(),
        part: String::new(),
        place: String::new(),
    };
    to.parts().unwrap().begin(mark.clone()).await.unwrap();
    for table in [&SESSION, &EVENT] {
        let mut rows = from.page(table, Vec::new(), Limits::default()).await.unwrap();
        let half = rows.len() / 2;
        let (of_early, of_damaged) = rows.split_at_mut(half);
        for row in of_early {
            row[table.place(if table == &SESSION { "row_sum" } else { "sum" })] = Cell::Null;
        }
        let changed = table.place(if table == &SESSION { "name" } else { "body" });
        of_damaged.last_mut().unwrap()[changed] = Cell::Text("{}".to_owned());
        to.parts().unwrap().put(table, rows, mark.clone()).await.unwrap();
    }
    to.parts().unwrap().finish(4, None).await.unwrap();
    to.close().await.unwrap();
    copied(&file, &database).await.unwrap();
    copied(&database, &back).await.unwrap();
    for side in [&database as &dyn Side, &back] {
        let log = side.opened(Purpose::Serve).await.unwrap();
        assert!(log.row(early).await.unwrap().is_some());
        let refused = log.row(damaged).await.unwrap_err();
        assert!(matches!(refused, StoreError::DamagedRow(_)), "{refused}");
        assert_eq!(log.load(early, Range::default()).await.unwrap().damaged, None);
        assert_eq!(
            log.load(damaged, Range::default()).await.unwrap().damaged,
            Some(2)
        );
        log.close().await.unwrap();
    }
}
