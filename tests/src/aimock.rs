//! A third-party mock of model servers: `@copilotkit/aimock` from npm. Its files are in `target/aimock`; CI puts them there.

use crate::daemon::CANARY;
use crate::follow::within;
use crate::skip::skipped;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// How its files get here.
const INSTALL: &str = "mkdir -p target/aimock && cp tests/aimock/package*.json target/aimock/ && \
                       npm ci --prefix target/aimock --ignore-scripts";

/// A running mock; killed when dropped.
#[derive(Debug)]
pub struct Aimock {
    url: String,
    _child: Child,
}

impl Aimock {
    /// Starts it in strict mode with the fixtures of these tests. `None`, and a loud word about it: it is not installed.
    #[expect(clippy::disallowed_methods, reason = "the harness starts the mock")]
    pub async fn start(test: &str, args: &[&str]) -> Option<Self> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let cli = installed(tests);
        if !cli.is_file() {
            skipped(
                test,
                &format!("aimock is not at {}; install it with: {INSTALL}", cli.display()),
            );
            return None;
        }
        let spawned = Command::new("node")
            .arg(&cli)
            .args(["--strict", "--port", "0", "--journal-max", "0", "--fixtures"])
            .arg(tests.join("aimock/fixtures.json"))
            .args(args)
            .env("AIMOCK_API_KEYS", CANARY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut child) = spawned else {
            skipped(test, "node is not installed, and aimock needs it");
            return None;
        };
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("its output can be read") {
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.trim().to_owned();
                }
            }
            panic!("aimock ended early");
        };
        let url = within("aimock listens", listening).await;
        // It goes on talking; a full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Some(Self { url, _child: child })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The requests so far and their answers: path and status of each.
    pub async fn journal(&self) -> Vec<(String, u64)> {
        let answer = within("the journal comes", get(&self.url, "/__aimock/journal"))
            .await
            .expect("aimock answers");
        let entries: Vec<serde_json::Value> = serde_json::from_str(&answer).expect("a journal is JSON");
        let entry = |entry: &serde_json::Value| {
            let path = entry
                .get("path")
                .and_then(|path| path.as_str())
                .unwrap_or_default();
            let status = entry
                .pointer("/response/status")
                .and_then(serde_json::Value::as_u64);
            (path.to_owned(), status.unwrap_or(0))
        };
        entries.iter().map(entry).collect()
    }
}

fn installed(tests: &Path) -> PathBuf {
    tests
        .parent()
        .expect("the tests live in the workspace")
        .join("target/aimock/node_modules/@copilotkit/aimock/dist/cli.js")
}

async fn get(url: &str, path: &str) -> std::io::Result<String> {
    let address = url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {CANARY}\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await?;
    Ok(answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned())
        .unwrap_or_default())
}
