//! Third-party programs that read docs/openapi.json, against the real daemon: Schemathesis, and two generated clients. Their
//! files live in `target/api`; CI puts them there.

use crate::daemon;
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, DaemonOptions, skipped};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// The command that installs the files.
const INSTALL: &str = "python3 -m venv target/api/venv && target/api/venv/bin/pip install -r tests/api/requirements.txt && \
                       cp tests/api/package*.json target/api/ && npm ci --prefix target/api --ignore-scripts";
/// Far more than needed even on a slow machine.
const LIMIT: Duration = Duration::from_secs(1800);
/// The model asks before it writes.
const ASKS: &str = "[model]\ndefault = \"claude\"\n[http]\nlisten = \"127.0.0.1:0\"\n";
/// No model server, and no limit that many requests would meet.
const ALONE: &str =
    "[model]\ndefault = \"scripted\"\n[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_second = 1000000\n";

const OPENAPI: &str = include_str!("../../docs/openapi.json");
const SCHEMATHESIS: &str = r#"
cd "$REPOSITORY/tests/api"
schemathesis --config-file schemathesis.toml run "$AGENTD_URL/v1/openapi.json"
"#;
const PYTHON: &str = r#"
curl -sS "$AGENTD_URL/v1/openapi.json" > openapi.json
openapi-python-client generate --path openapi.json --output-path agentd_client --meta none --fail-on-warning
PYTHONPATH=. python "$REPOSITORY/tests/api/session.py"
"#;
const TYPESCRIPT: &str = r#"
curl -sS "$AGENTD_URL/v1/openapi.json" > openapi.json
cp "$REPOSITORY/tests/api/session.ts" .
echo '{"type": "module"}' > package.json
ln -s "$TOOLS/node_modules" node_modules
openapi-typescript openapi.json --default-non-nullable=false -o schema.ts
tsc --strict --module nodenext --target es2022 --skipLibCheck --types node session.ts
node session.js
"#;

/// The file with the links that Schemathesis followed.
fn links(daemon: &Daemon) -> PathBuf {
    daemon.dir.path().join("links")
}

/// Runs a script with a token for the daemon; `None`: its programs are not installed.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness runs the programs of others"
)]
async fn run(test: &str, daemon: &Daemon, script: &str) -> Option<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tools = repository.join("target/api");
    let (python, node) = (tools.join("venv/bin"), tools.join("node_modules/.bin"));
    if !python.join("schemathesis").is_file() || !node.join("tsc").exists() {
        let reason = format!(
            "the programs are not in {}; install them with: {INSTALL}",
            tools.display()
        );
        skipped(test, &reason);
        return None;
    }
    let made = daemon
        .agentctl(&[
            "token",
            "create",
            "schemathesis",
            "--scope",
            "read,steer,approve,import,admin",
            "--dir",
            "/",
            "--mode",
            "yolo",
        ])
        .await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let path = std::env::var("PATH").unwrap();
    let (workdir, here) = (daemon.workdir("work"), daemon.workdir("client"));
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(here)
        .env("PATH", format!("{}:{}:{path}", python.display(), node.display()))
        .env("HOME", daemon.dir.path())
        .env("REPOSITORY", repository)
        .env("TOOLS", &tools)
        .env("AGENTD_URL", daemon.http().await)
        .env("AGENTD_TOKEN", made.stdout.trim())
        .env("AGENTD_WORKDIR", workdir)
        .env("AGENTD_LINKS", links(daemon))
        .env(
            "AGENTD_PROMPT",
            format!("plan:{test} steps=1 tool=write text=Rain_falls;"),
        )
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(LIMIT, output).await.expect("the programs end").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let trace = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{trace}\n{}", daemon.said());
    Some(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_difference_from_the_description() {
    let _heavy = agentd_tests::Heavy::begin().await;
    let mut daemon = Daemon::start(DaemonOptions {
        config: ALONE.to_owned(),
        ..DaemonOptions::default()
    })
    .await;
    let test = "schemathesis_finds_no_difference_from_the_description";
    let ran = run(test, &daemon, SCHEMATHESIS).await;
    assert!(!daemon.is_over(), "{}", daemon.said());
    if ran.is_none() {
        return;
    }
    // It followed links: some of the kinds that a new session has, from any answer. How many it follows, from a fifth to
    // nearly all, depends on chance and on the time that other tests leave.
    let followed = std::fs::read_to_string(links(&daemon)).unwrap();
    let description: Value = serde_json::from_str(OPENAPI).unwrap();
    let declared = &description["paths"]["/v1/sessions"]["post"]["responses"]["201"]["links"];
    let declared = declared
        .as_object()
        .expect("a new session leads to other operations");
    let used = declared.keys().filter(|link| {
        let link = format!("] {link} -> ");
        followed.lines().any(|line| line.contains(&link))
    });
    let (used, all) = (used.count(), declared.len());
    assert!(
        used * 10 > all,
        "{used} of {all} links were followed:\n{followed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_python_client_drives_a_session_to_its_end() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKS).await;
    if let Some(said) = run("python", &daemon, PYTHON).await {
        assert!(said.ends_with("completed\n"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_typescript_client_drives_a_session_to_its_end() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKS).await;
    if let Some(said) = run("typescript", &daemon, TYPESCRIPT).await {
        assert!(said.ends_with("completed\n"), "{said}");
    }
}
