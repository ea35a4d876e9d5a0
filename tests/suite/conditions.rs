//! `If-Match` against the real daemon.

use crate::daemon;
use agentd_bench::model_server::ModelServer;
use agentd_tests::within;
use std::process::Stdio;
use tokio::process::Command;

const CONFIG: &str = "[model]\ndefault = \"claude\"\n[http]\nlisten = \"127.0.0.1:0\"\n";
/// Two clients read the same session and change it at the same time, several times.
const RACE: &str = r#"
authorization="Authorization: Bearer $TOKEN"
session=$(curl -sS --json "{\"workdir\": \"$WORKDIR\"}" -H "$authorization" "$AGENTD/v1/sessions" | jq -r .session)
place=$AGENTD/v1/sessions/$session
change() {
  curl -sS -o /dev/null -w '%{http_code}\n' -X PATCH --json "{\"title\": \"$1\"}" \
    -H "$authorization" -H "If-Match: $tag" "$place"
}
for round in $(seq 20); do
  tag=$(curl -sS -o /dev/null -w '%header{etag}' -H "$authorization" "$place")
  change "a$round" > one & change "b$round" > other; wait
  sort one other | paste -sd ' '
done
"#;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "two clients are processes of their own")]
async fn of_two_updates_with_the_same_tag_exactly_one_is_carried_out() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, CONFIG).await;
    let made = daemon
        .agentctl(&[
            "token",
            "create",
            "racer",
            "--scope",
            "read,steer",
            "--dir",
            &daemon.workdir("work"),
        ])
        .await;
    let output = Command::new("bash")
        .args(["-euc", RACE])
        .current_dir(daemon.workdir("racer"))
        .env("AGENTD", daemon.http().await)
        .env("TOKEN", made.stdout.trim())
        .env("WORKDIR", daemon.workdir("work"))
        .stdin(Stdio::null())
        .output();
    let output = within("the race ends", output).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let trace = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "200 412\n".repeat(20), "{trace}");
}
