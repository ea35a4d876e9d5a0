//! One suite for all backends: tokens, and what labels reach.

use super::kit::{Kit, summary};
use agentd_protocol::{Labels, PermissionMode, Principal, SessionId, Timestamp, TokenRights};
use agentd_store::{Append, MAX_TOKENS, StoredToken};
use bytes::Bytes;

conformance!(
    a_token_is_kept_by_its_hash_until_it_is_revoked,
    a_token_records_its_last_use,
    i7_a_token_without_rights_gets_the_narrowest_once,
    an_ended_token_keeps_its_name_until_it_is_forgotten,
    the_number_of_tokens_is_bounded,
    a_word_resolves_among_the_sessions_with_the_labels,
    a_blob_is_within_the_labels_of_a_session_that_keeps_it,
);

fn labels(team: &str) -> Labels {
    Labels::from([("team".to_owned(), team.to_owned())])
}

fn token(kit: &Kit, name: &str) -> StoredToken {
    let mut hash = [0; 32];
    for (place, byte) in hash.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    StoredToken {
        name: name.to_owned(),
        hash,
        scopes: vec!["read".to_owned(), "steer".to_owned()],
        labels: labels("infra"),
        rights: Some(TokenRights {
            dirs: vec!["/srv/app".to_owned()],
            sources: vec!["https://git.example/team".to_owned()],
            mode: PermissionMode::AcceptEdits,
        }),
        created: kit.now(),
        by: Principal::user("ana"),
        expires: Some(kit.now().plus_ms(1_000)),
        used: None,
        revoked: None,
    }
}

async fn labelled(kit: &Kit, name: &str, team: &str) -> SessionId {
    let session = kit.session();
    let mut row = summary(session, name);
    row.labels = labels(team);
    let create = Append {
        summary: Some(row),
        ..kit.create(session, name, 1)
    };
    assert!(kit.commits(create).await);
    session
}

async fn a_token_is_kept_by_its_hash_until_it_is_revoked(kit: Kit) {
    let ci = token(&kit, "ci");
    assert!(kit.log.add_token(ci.clone(), Timestamp(0)).await.unwrap());
    assert!(
        !kit.log.add_token(ci.clone(), Timestamp(0)).await.unwrap(),
        "the name is taken"
    );
    assert_eq!(kit.log.tokens().await.unwrap(), std::slice::from_ref(&ci));
    assert!(ci.is_live(kit.now()) && !ci.is_live(kit.now().plus_ms(1_000)));
    assert!(kit.log.revoke_token("ci", kit.now()).await.unwrap());
    assert!(!kit.log.revoke_token("ci", kit.now()).await.unwrap());
    assert!(!kit.log.revoke_token("other", kit.now()).await.unwrap());
    let revoked = StoredToken {
        revoked: Some(kit.now()),
        ..ci
    };
    assert!(!revoked.is_live(kit.now()));
    assert_eq!(kit.log.tokens().await.unwrap(), [revoked]);
}

async fn a_token_records_its_last_use(kit: Kit) {
    kit.log.add_token(token(&kit, "ci"), Timestamp(0)).await.unwrap();
    let (early, late) = (kit.now(), kit.now().plus_ms(60_000));
    for used in [late, early] {
        kit.log.token_used("ci", used).await.unwrap();
    }
    kit.log.token_used("other", late).await.unwrap();
    assert_eq!(kit.log.tokens().await.unwrap()[0].used, Some(late));
}

async fn i7_a_token_without_rights_gets_the_narrowest_once(kit: Kit) {
    let with = token(&kit, "with");
    let without = StoredToken {
        rights: None,
        ..token(&kit, "without")
    };
    for token in [&with, &without] {
        assert!(kit.log.add_token(token.clone(), Timestamp(0)).await.unwrap());
    }
    let tokens = async || kit.log.tokens().await.unwrap();
    assert_eq!(tokens().await, [with.clone(), without.clone()]);
    assert_eq!(kit.log.settle_token_rights().await.unwrap(), ["without"]);
    assert_eq!(kit.log.settle_token_rights().await.unwrap(), Vec::<String>::new());
    let settled = StoredToken {
        rights: Some(TokenRights::default()),
        ..without
    };
    assert_eq!(tokens().await, [with, settled]);
}

async fn an_ended_token_keeps_its_name_until_it_is_forgotten(kit: Kit) {
    let (expires, lasting) = (token(&kit, "expires"), token(&kit, "lasting"));
    let lasting = StoredToken {
        expires: None,
        ..lasting
    };
    let names = async || -> Vec<String> {
        let tokens = kit.log.tokens().await.unwrap();
        tokens.into_iter().map(|token| token.name).collect()
    };
    for token in [&expires, &lasting] {
        assert!(kit.log.add_token(token.clone(), Timestamp(0)).await.unwrap());
    }
    let end = expires.expires.unwrap();
    assert!(!kit.log.add_token(expires.clone(), end).await.unwrap());
    assert_eq!(names().await, ["expires", "lasting"]);
    let later = end.plus_ms(1);
    let again = StoredToken {
        expires: Some(later.plus_ms(5)),
        ..expires
    };
    assert!(kit.log.add_token(again, later).await.unwrap());
    assert_eq!(names().await, ["expires", "lasting"]);
}

async fn the_number_of_tokens_is_bounded(kit: Kit) {
    let adds = (0..MAX_TOKENS).map(|n| {
        let (log, token) = (kit.log.clone(), token(&kit, &format!("t{n}")));
        async move { log.add_token(token, Timestamp(0)).await.unwrap() }
    });
    let adds: Vec<_> = adds.map(tokio::spawn).collect();
    for add in adds {
        assert!(add.await.unwrap());
    }
    assert!(
        !kit.log
            .add_token(token(&kit, "more"), Timestamp(0))
            .await
            .unwrap()
    );
}

async fn a_word_resolves_among_the_sessions_with_the_labels(kit: Kit) {
    let mine = labelled(&kit, "nightly", "infra").await;
    let mut theirs = Vec::new();
    for _ in 0..12 {
        theirs.push(labelled(&kit, "nightly", "web").await);
    }
    let resolve = async |text: &str, team: &str| {
        let found = kit.log.resolve(text, &labels(team)).await.unwrap();
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(
        resolve("nightly", "infra").await,
        [mine],
        "others do not crowd it out"
    );
    assert_eq!(resolve("nightly", "web").await.len(), 10);
    assert_eq!(resolve(&theirs[0].to_string(), "infra").await, []);
    assert_eq!(resolve(&mine.to_string(), "infra").await, [mine]);
    assert_eq!(
        kit.log.resolve("nightly", &Labels::new()).await.unwrap().len(),
        10
    );
}

async fn a_blob_is_within_the_labels_of_a_session_that_keeps_it(kit: Kit) {
    let (mine, theirs) = (
        labelled(&kit, "mine", "infra").await,
        labelled(&kit, "theirs", "web").await,
    );
    let content = Bytes::from_static(b"content");
    let name = kit.log.put_blob(theirs, content.clone()).await.unwrap();
    let within = async |team: &str| kit.log.blob_within(&name, &labels(team)).await.unwrap();
    assert!(within("web").await && !within("infra").await);
    assert!(kit.log.blob_within(&name, &Labels::new()).await.unwrap());
    kit.log.put_blob(mine, content).await.unwrap();
    assert!(within("infra").await);
    kit.log.delete(mine).await.unwrap();
    assert!(within("web").await && !within("infra").await);
}
