use crate::tests::kit::Kit;
use agentd_protocol::SessionId;
use bytes::Bytes;
use std::fs;

/// Stores this many different blobs of 200 KiB for a session.
async fn fill(kit: &Kit, session: SessionId, blobs: u8) {
    for n in 0..blobs {
        let mut bytes = vec![n; 200 << 10];
        bytes.extend_from_slice(session.as_bytes());
        kit.log.put_blob(session, Bytes::from(bytes)).await.unwrap();
    }
}

#[tokio::test]
async fn the_space_of_removed_sessions_goes_back_to_the_disk_and_the_store_goes_on() {
    let kit = Kit::sqlite();
    let (removed, kept) = (kit.created(1).await, kit.created(1).await);
    fill(&kit, removed, 100).await;
    assert!(kit.commits(kit.more(kept, 1, 1, 1)).await);
    let length = || fs::metadata(kit.dir().join("agentd.db")).unwrap().len();
    let before = length();
    assert!(before > 15 << 20, "{before}");
    assert!(kit.log.delete(removed).await.unwrap());
    kit.pass(1_000);
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
    // More than SQLite keeps in its log, so that it writes to the database.
    fill(&kit, kept, 25).await;
    let after = length();
    assert!(after < before / 2, "{before} bytes became {after}");
    assert!(
        kit.commits(kit.more(kept, 1, 2, 1)).await,
        "a file that SQLite has cut is no lost one"
    );
    assert_eq!(kit.seqs(kept).await, [1, 2, 3]);
    assert!(kit.log.check().await.unwrap().problems.is_empty());
}
