use crate::salvage::tests::{PAGE, damaged, pages};
use crate::tests::kit::Kit;
use agentd_protocol::{Labels, Principal, Timestamp, TokenRights};
use agentd_store::{Backend, Options, Outcome, StoreError, StoredToken};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn token(number: u8, name: &str) -> StoredToken {
    StoredToken {
        name: name.to_owned(),
        hash: [number; 32],
        scopes: vec!["read".to_owned()],
        labels: Labels::new(),
        rights: Some(TokenRights::default()),
        created: Timestamp(5),
        by: Principal::user("ana"),
        expires: None,
        used: None,
        revoked: None,
    }
}

async fn names(store: &dyn Backend) -> BTreeSet<String> {
    let tokens = store.tokens().await.unwrap();
    tokens.into_iter().map(|token| token.name).collect()
}

fn is_damaged<T>(done: &Result<T, StoreError>) -> bool {
    matches!(done, Err(StoreError::Damaged(_)))
}

/// Ends one of the tokens and adds one. Returns how many of these changes met a damaged page.
async fn changes(store: &dyn Backend, found: &BTreeSet<String>, page: u64) -> usize {
    let settled = store.settle_token_rights().await;
    let used = store.token_used("t3", Timestamp(9)).await;
    let mut met = usize::from(is_damaged(&settled)) + usize::from(is_damaged(&used));
    assert!(
        settled.is_ok() || is_damaged(&settled),
        "page {page}: {settled:?}"
    );
    assert!(used.is_ok() || is_damaged(&used), "page {page}: {used:?}");
    match store.add_token(token(201, "new"), Timestamp(0)).await {
        Ok(added) => assert!(added && names(store).await.contains("new"), "page {page}"),
        refused => {
            assert!(is_damaged(&refused), "page {page}: {refused:?}");
            met += 1;
        }
    }
    let one = found.first().map_or("t1", String::as_str);
    match store.revoke_token(one, Timestamp(10)).await {
        Ok(revoked) => {
            let tokens = store.tokens().await.unwrap();
            let ended = tokens
                .iter()
                .any(|token| token.name == one && token.revoked.is_some());
            assert!(revoked && ended, "page {page}");
        }
        refused => {
            assert!(is_damaged(&refused), "page {page}: {refused:?}");
            met += 1;
        }
    }
    met
}

#[tokio::test]
async fn i6_i7_a_damaged_page_costs_its_own_tokens_and_sessions_and_stops_nothing() {
    let kit = Kit::sqlite();
    let session = kit.created(2).await;
    for _ in 0..59 {
        kit.created(2).await;
    }
    let all: BTreeSet<String> = (1..=200).map(|number| format!("t{number}")).collect();
    for number in 1..=200 {
        let token = token(number, &format!("t{number}"));
        assert!(kit.log.add_token(token, Timestamp(0)).await.unwrap());
    }
    kit.log.close().await.unwrap();
    let (mut unread, mut met, mut refused) = (0, 0, 0);
    for page in 1..pages(kit.dir()) {
        let Ok((_dir, store)) = damaged(&kit, page) else {
            continue;
        };
        let found = names(store.as_ref()).await;
        let named = store.damaged_tokens().await.unwrap().into_iter().collect();
        // Each token can be read, or is named: the table and its index are on different pages.
        assert_eq!(&found | &named, all, "page {page}");
        assert!(found.is_disjoint(&named), "page {page}");
        unread += usize::from(!named.is_empty());
        met += changes(store.as_ref(), &found, page).await;
        // The same holds for what is appended.
        for append in [kit.create(kit.session(), "new", 1), kit.more(session, 1, 2, 1)] {
            match store.append(append).await {
                Outcome::Failed(why) => {
                    assert!(why.contains("damaged pages"), "page {page}: {why}");
                    refused += 1;
                }
                // The row of the session is set aside.
                outcome => assert!(
                    matches!(outcome, Outcome::Committed { .. } | Outcome::Fenced { .. }),
                    "page {page}: {outcome:?}"
                ),
            }
        }
        assert_eq!(*store.fatal().borrow(), None, "page {page}");
    }
    assert!(unread > 2 && met > 2 && refused > 2, "{unread} {met} {refused}");
}

#[tokio::test]
async fn i7_a_damaged_token_is_named_and_can_be_removed() {
    let kit = Kit::sqlite();
    for (number, name) in [(1, "a"), (2, "b")] {
        assert!(
            kit.log
                .add_token(token(number, name), Timestamp(0))
                .await
                .unwrap()
        );
    }
    let connection = rusqlite::Connection::open(kit.dir().join("agentd.db")).unwrap();
    // By its name, or by its hash if the name cannot be one.
    for (change, called) in [
        ("scopes = '[\"admin\"]'", "a"),
        ("hash = x'0105'", "a"),
        ("sum = 0", "a"),
        ("name = 'a b'", "#010101010101"),
        ("name = char(27) || '[2J'", "#010101010101"),
        ("name = '', hash = x'0102'", "#0102"),
    ] {
        let sql = format!("UPDATE token SET {change} WHERE name = 'a'");
        assert_eq!(connection.execute(&sql, []).unwrap(), 1);
        assert_eq!(kit.log.damaged_tokens().await.unwrap(), [called], "{change}");
        assert_eq!(names(kit.log.as_ref()).await, ["b".to_owned()].into(), "{change}");
        let taken = !kit.log.add_token(token(3, called), Timestamp(0)).await.unwrap();
        assert_eq!(taken, called == "a", "{change}");
        if !taken {
            let whole = format!("DELETE FROM token WHERE name = '{called}'");
            assert_eq!(connection.execute(&whole, []).unwrap(), 1);
        }
        assert!(kit.log.revoke_token(called, kit.now()).await.unwrap(), "{change}");
        assert!(
            !kit.log.revoke_token(called, kit.now()).await.unwrap(),
            "{change}"
        );
        assert_eq!(kit.log.damaged_tokens().await.unwrap(), [""; 0], "{change}");
        assert_eq!(kit.log.check().await.unwrap().problems, [""; 0], "{change}");
        assert!(kit.log.add_token(token(1, "a"), Timestamp(0)).await.unwrap());
    }
}

/// Changes the last letter of a token's name in the row, but not in the index.
fn flip(file: &Path, name: &str) {
    let mut bytes = fs::read(file).unwrap();
    let page = usize::try_from(PAGE).unwrap();
    let is_row = |at: &usize| bytes[at / page * page] == 13;
    let mut places = bytes.windows(name.len()).enumerate();
    let places = places.by_ref().filter(|(_, found)| *found == name.as_bytes());
    let at = places.map(|(at, _)| at).find(is_row).unwrap();
    bytes[at + name.len() - 1] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn i7_a_token_whose_name_changed_on_the_disk_can_be_removed() {
    let kit = Kit::sqlite();
    for (number, name) in [(1, "a-long-name-b"), (2, "another")] {
        let token = token(number, name);
        assert!(kit.log.add_token(token, Timestamp(0)).await.unwrap());
    }
    kit.log.close().await.unwrap();
    flip(&kit.dir().join("agentd.db"), "a-long-name-b");
    let store: Arc<dyn Backend> = {
        let dir = tempfile::tempdir().unwrap();
        for name in ["agentd.db", "agentd.db.witness"] {
            fs::copy(kit.dir().join(name), dir.path().join(name)).unwrap();
        }
        crate::open("sqlite:agentd.db", &dir.keep(), Options::default()).unwrap()
    };
    assert_eq!(store.damaged_tokens().await.unwrap(), ["a-long-name-c"]);
    assert!(!store.check().await.unwrap().problems.is_empty());
    assert!(store.revoke_token("a-long-name-c", kit.now()).await.unwrap());
    assert_eq!(store.check().await.unwrap().problems, [""; 0]);
    assert_eq!(names(store.as_ref()).await, ["another".to_owned()].into());
    assert_eq!(*store.fatal().borrow(), None);
}
