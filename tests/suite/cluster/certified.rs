//! Nodes that show certificates to each other.

use super::fleet::Fleet;
use agentd_provider::client_with_certificate;
use agentd_tests::Follower;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;
use std::time::Duration;

/// A certificate authority.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for this machine and its key, in PEM format.
fn certificate(authority: &CertifiedIssuer<'static, KeyPair>) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let made = params.signed_by(&key, authority).unwrap();
    (made.pem(), key.serialize_pem())
}

/// Writes them where this configuration says.
fn configured(dir: &Path, roots: &str, (cert, key): &(String, String)) -> String {
    for (name, text) in [("nodes.pem", roots), ("cert.pem", cert), ("key.pem", key)] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let dir = dir.display();
    format!(
        "[http]\nlisten = \"127.0.0.1:0\"\ntls = {{ cert = \"{dir}/cert.pem\", key = \"{dir}/key.pem\", nodes = \"{dir}/nodes.pem\" }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_nodes_show_certificates_to_each_other_and_others_are_refused() {
    let (ours, foreign) = (authority(), authority());
    let (roots, own) = (ours.pem(), certificate(&ours));
    let dir = tempfile::tempdir().unwrap();
    let config = configured(dir.path(), &roots, &own);
    let Some(fleet) = Fleet::steady("certificates of nodes", 2, &config).await else {
        return;
    };
    let id = fleet.session(0, "certified", "plan:first steps=0;").await;
    let first = fleet.client(0).await;
    Follower::attach(&first, &id).await.turn_finished(1).await;
    // A command that reaches the owner through the other node.
    let sent = fleet.nodes[1]
        .agentctl(&["send", &id, "plan:second steps=0;"])
        .await;
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    Follower::attach(&first, &id).await.turn_finished(2).await;

    let address = fleet.nodes[0].http().await;
    let url = format!("{address}/v1/node/call");
    let answer = async |identity: &(String, String)| {
        let identity = format!("{}{}", identity.0, identity.1);
        let within = Duration::from_secs(60);
        let client = client_with_certificate(within, identity.as_bytes(), roots.as_bytes()).unwrap();
        client.post(&url).bearer_auth("guess").body("{}").send().await
    };
    let known = answer(&own).await.unwrap();
    assert_eq!(
        known.status(),
        426,
        "the certificate is good, the signature is missing"
    );
    assert!(
        answer(&certificate(&foreign)).await.is_err(),
        "a foreign certificate"
    );
    let root = reqwest::Certificate::from_pem(roots.as_bytes()).unwrap();
    let plain = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    let without = plain
        .post(&url)
        .bearer_auth("guess")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(without.status(), 403);
    assert!(without.text().await.unwrap().contains("http.tls.nodes"));
    // People need no certificate.
    let health = plain.get(format!("{address}/healthz")).send().await.unwrap();
    assert_eq!(health.status(), 200);
}
