use crate::tests::kit::Kit;
use agentd_protocol::SessionId;
use agentd_store::{Backend, Filter, Options, Range, StoreError};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

pub(crate) const PAGE: u64 = 4_096;

/// A copy of a database in which one page was overwritten.
pub(crate) fn damaged(kit: &Kit, page: u64) -> Result<(tempfile::TempDir, Arc<dyn Backend>), StoreError> {
    let dir = tempfile::tempdir().unwrap();
    for name in ["agentd.db", "agentd.db.witness"] {
        fs::copy(kit.dir().join(name), dir.path().join(name)).unwrap();
    }
    let file = fs::File::options()
        .write(true)
        .open(dir.path().join("agentd.db"))
        .unwrap();
    file.write_all_at(&[0xa5; 4_096], page * PAGE).unwrap();
    let store = crate::open("sqlite:agentd.db", dir.path(), Options::default())?;
    Ok((dir, store))
}

pub(crate) fn pages(dir: &Path) -> u64 {
    fs::metadata(dir.join("agentd.db")).unwrap().len() / PAGE
}

/// Whether a start was refused because of the events.
fn is_of_events(refused: &StoreError, page: u64) -> bool {
    assert!(
        matches!(refused, StoreError::Damaged(_)),
        "page {page}: {refused}"
    );
    refused.to_string().contains("in the table event:")
}

#[tokio::test]
async fn i6_a_damaged_page_hides_no_other_session_and_doctor_names_it() {
    let kit = Kit::sqlite();
    let mut sessions: Vec<SessionId> = Vec::new();
    for _ in 0..60 {
        sessions.push(kit.created(2).await);
    }
    kit.log.close().await.unwrap();
    let (mut opened, mut partly, mut named, mut of_events) = (0, 0, 0, 0);
    let pages = pages(kit.dir());
    for page in 1..pages {
        let (_dir, store) = match damaged(&kit, page) {
            Ok(opened) => opened,
            Err(refused) => {
                of_events += usize::from(is_of_events(&refused, page));
                continue;
            }
        };
        opened += 1;
        let rows = store
            .list(Filter {
                all: true,
                ..Filter::default()
            })
            .await
            .unwrap();
        let (bad, good): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.damaged);
        assert_eq!(rows.len(), 60, "page {page}");
        assert_eq!(store.count().await.unwrap(), 60, "page {page}");
        if !bad.is_empty() {
            named += 1;
            partly += usize::from(!good.is_empty());
            let problems = store.check().await.unwrap().problems;
            assert!(!problems.is_empty(), "page {page}");
            // Reading, claiming and finding the others works; a damaged one stops nothing.
            let session = bad[0].summary.session;
            assert!(
                matches!(store.row(session).await, Err(StoreError::Aside(_))),
                "page {page}"
            );
            assert!(
                matches!(store.claim(session).await, Err(StoreError::Aside(_))),
                "page {page}"
            );
            assert_eq!(*store.fatal().borrow(), None, "page {page}");
        }
        if let Some(row) = good.last() {
            let session = row.summary.session;
            let whole = session.to_string();
            let found = store.resolve(&whole, &[].into()).await.unwrap();
            assert_eq!(
                found.first().map(|(found, _)| *found),
                Some(session),
                "page {page}"
            );
            let _ = store.load(session, Range::default()).await;
        }
        let _ = store.check().await.unwrap();
    }
    assert!(
        opened * 2 > pages && partly > 2 && named >= partly && of_events > 0,
        "{opened} {partly} {named} {of_events} of {pages}"
    );
}
