//! Tokens whose rows in the store are damaged.

use crate::harness::Harness;
use agentd_protocol::{FaultClass, TokenCreated, TokenRow};
use agentd_store::testing::CountingLog;
use agentd_store::{Backend, MemoryStore};
use serde_json::json;
use std::sync::Arc;

async fn made(h: &Harness, name: &str) -> TokenCreated {
    let params = json!({ "name": name, "scopes": ["read"] });
    serde_json::from_value(h.call("token.create", params).await.unwrap()).unwrap()
}

async fn states(h: &Harness) -> Vec<(String, String)> {
    let list = h.call("token.list", json!({})).await.unwrap();
    let rows: Vec<TokenRow> = serde_json::from_value(list).unwrap();
    rows.into_iter().map(|row| (row.name, row.state)).collect()
}

fn row(name: &str, state: &str) -> (String, String) {
    (name.to_owned(), state.to_owned())
}

#[tokio::test]
async fn i7_a_damaged_token_opens_nothing_and_costs_no_other_one() {
    let memory: Arc<dyn Backend> = Arc::new(MemoryStore::default());
    let h = Harness::over(Arc::clone(&memory), |_| {}).await;
    let (broken, good) = (made(&h, "broken").await, made(&h, "good").await);
    let log = Arc::new(CountingLog::new(memory));
    log.damage_tokens(&["broken"]);
    // A daemon that starts now.
    let backend: Arc<dyn Backend> = log;
    let h = Harness::over(backend, |_| {}).await;
    for text in [broken.token.expose(), "agentd_00"] {
        let fault = h.api.authenticate(text).await.unwrap_err();
        assert_eq!(
            (fault.class, fault.code.as_str()),
            (FaultClass::Denied, "bad_token")
        );
    }
    assert!(h.api.authenticate(good.token.expose()).await.is_ok());
    assert_eq!(states(&h).await, [row("good", "live"), row("broken", "damaged")]);
}

#[tokio::test]
async fn i7_a_damaged_token_keeps_its_name_until_it_is_revoked() {
    let log = Arc::new(CountingLog::new(Arc::new(MemoryStore::default())));
    let backend: Arc<dyn Backend> = Arc::<CountingLog>::clone(&log);
    let h = Harness::over(backend, |_| {}).await;
    made(&h, "broken").await;
    log.damage_tokens(&["broken", "#0102"]);
    let params = json!({ "name": "broken", "scopes": ["read"] });
    let fault = h.call("token.create", params.clone()).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Conflict, "token_damaged")
    );
    assert!(fault.hint.unwrap().contains("agentctl token revoke broken"));
    for name in ["broken", "#0102"] {
        let revoked = h.call("token.revoke", json!({ "name": name })).await.unwrap();
        assert_eq!(
            (&revoked["name"], &revoked["state"]),
            (&json!(name), &json!("revoked"))
        );
    }
    assert!(h.call("token.revoke", json!({ "name": "#0102" })).await.is_err());
    assert!(states(&h).await.iter().all(|(_, state)| state != "damaged"));
}
