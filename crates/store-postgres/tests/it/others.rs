//! What the reader of the fleet's log gets of other nodes.

use crate::kit::Kit;
use crate::server::Database;
use agentd_store::{Options, Watched};

async fn node(database: &Database) -> Kit {
    let backend = database.open(Options::default()).await.unwrap();
    let (_, now) = crate::kit::moving_clock();
    Kit::new(tempfile::tempdir().unwrap(), backend, now)
}

fn cursors(page: &Watched) -> Vec<u64> {
    page.events.iter().map(|event| event.cursor).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_a_node_reads_what_others_committed_and_not_its_own() {
    let Some(database) = Database::create("others") else {
        return;
    };
    let (a, b) = (node(&database).await, node(&database).await);
    for (node, events) in [(&a, 3), (&b, 2), (&a, 1), (&b, 1)] {
        let new = a.create(a.session(), "new", events);
        assert!(node.commits(new).await);
    }
    let end = a
        .log
        .committed()
        .wait_for(|cursor| *cursor >= 7)
        .await
        .map(|cursor| *cursor);
    assert_eq!(end.unwrap(), 7);
    for (node, after, others) in [
        (&a, 0, &[4, 5, 7][..]),
        (&a, 4, &[5, 7]),
        (&a, 5, &[7]),
        (&b, 0, &[1, 2, 3, 6]),
        (&b, 3, &[6]),
        (&b, 6, &[]),
    ] {
        let page = node.log.watch_others(after, 0).await.unwrap();
        assert_eq!(cursors(&page), others, "after {after}");
        assert_eq!(page.cursor, others.last().copied().unwrap_or(7), "after {after}");
        // Whoever asks for everything gets it.
        let all = node.log.watch(Some(after), 0).await.unwrap();
        assert_eq!(cursors(&all), (after + 1..=7).collect::<Vec<_>>());
    }
}
