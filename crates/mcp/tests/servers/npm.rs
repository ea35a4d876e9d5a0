//! Servers and the conformance suite of the MCP project, from npm.

use crate::cases::{call, pool, stdio};
use agentd_mcp::{Call, OnProgress, Pool, ServerSpec, Transport};
use agentd_protocol::ToolStatus;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const PACKAGES: [&str; 4] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/conformance@0.1.16",
    // The version that the conformance suite requires.
    "node@22",
];
/// The scenarios of the suite for features of this client: the others test OAuth and questions from servers, which this
/// client declines.
const CORE: [&str; 3] = ["initialize", "tools_call", "sse-retry"];

#[expect(clippy::disallowed_methods, reason = "starts the programs of the tests")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Where the packages are installed; `None` if they cannot be installed.
fn installed(test: &str) -> Option<&'static Path> {
    static DIR: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match DIR.get_or_init(install) {
        Ok(dir) => Some(dir),
        Err(why) => {
            skipped(test, why);
            None
        }
    }
}

fn install() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp");
    std::fs::create_dir_all(&dir).unwrap();
    let done = dir.join("installed");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|have| have == wanted) {
        return Ok(dir);
    }
    let output = command("npm")
        .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
        .arg(&dir)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "npm could not install the tool servers: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    std::fs::write(&done, wanted).unwrap();
    Ok(dir)
}

#[expect(
    clippy::disallowed_methods,
    reason = "where CI wants to hear of skipped tests"
)]
pub(crate) fn skipped(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    if let Ok(path) = std::env::var("AGENTD_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let _ = writeln!(file, "{reason} ({test})");
    }
}

fn program(dir: &Path, package: &str) -> String {
    dir.join("node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js")
        .display()
        .to_string()
}

fn server(dir: &Path, package: &str, arguments: &[&str]) -> ServerSpec {
    let argv = ["node".to_owned(), program(dir, package)];
    let arguments = arguments.iter().map(|word| (*word).to_owned());
    stdio("npm", argv.into_iter().chain(arguments).collect())
}

async fn offered(pool: &Pool, workdir: &Path) -> Vec<String> {
    let listings = pool.offers(workdir).await;
    let offers = listings[0].offers.as_ref().unwrap();
    assert_eq!(offers.left_out, []);
    offers.tools.iter().map(|offer| offer.tool.clone()).collect()
}

/// Checks what holds for the everything server over any transport.
async fn everything(pool: &Pool) {
    let here = Path::new("/tmp");
    let tools = offered(pool, here).await;
    assert!(
        tools.len() >= 8 && tools.contains(&"get-sum".to_owned()),
        "{tools:?}"
    );
    let sum = call(pool, here, "mcp__npm__get-sum", &json!({ "a": 2, "b": 40 }))
        .await
        .outcome;
    assert_eq!(
        (sum.status, sum.llm_text.as_str()),
        (ToolStatus::Ok, "The sum of 2 and 40 is 42.")
    );
    let wrong = call(pool, here, "mcp__npm__get-sum", &json!({ "a": "x" }))
        .await
        .outcome;
    assert_eq!(wrong.status, ToolStatus::Error);
    let image = call(pool, here, "mcp__npm__get-tiny-image", &json!({})).await;
    assert_eq!(image.media.len(), 1);
    assert_eq!(image.media[0].media_type, "image/png");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let slow = Call {
        name: "mcp__npm__trigger-long-running-operation".to_owned(),
        arguments: json!({ "duration": 0.2, "steps": 2 })
            .as_object()
            .cloned()
            .unwrap(),
        time: None,
        max_bytes: 1000,
        on_progress: OnProgress::new(move |heard| {
            let _ = tell.send(heard.progress);
        }),
    };
    assert_eq!(pool.call(here, slow).await.outcome.status, ToolStatus::Ok);
    assert_eq!(told.recv().await, Some(1.0));
    let environment = call(pool, here, "mcp__npm__get-env", &json!({})).await.outcome;
    assert!(
        !environment.llm_text.contains("canary"),
        "{}",
        environment.llm_text
    );
}

pub(crate) async fn the_everything_server_works_over_its_pipes() {
    let Some(dir) = installed("the_everything_server_works_over_its_pipes") else {
        return;
    };
    let pool = pool(vec![server(dir, "server-everything", &["stdio"])]);
    everything(&pool).await;
    assert!(pool.close(Duration::from_secs(60)).await);
}

pub(crate) async fn a_call_of_the_everything_server_can_be_given_up() {
    let Some(dir) = installed("a_call_of_the_everything_server_can_be_given_up") else {
        return;
    };
    let pool = pool(vec![server(dir, "server-everything", &["stdio"])]);
    let here = Path::new("/tmp");
    let long = json!({ "duration": 3600, "steps": 36000 });
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let slow = Call {
        name: "mcp__npm__trigger-long-running-operation".to_owned(),
        arguments: long.as_object().cloned().unwrap(),
        time: None,
        max_bytes: 1000,
        on_progress: OnProgress::new(move |heard| {
            let _ = tell.send(heard.progress);
        }),
    };
    tokio::select! {
        answer = pool.call(here, slow) => panic!("{answer:?}"),
        progress = told.recv() => assert_eq!(progress, Some(1.0)),
    }
    let echo = call(&pool, here, "mcp__npm__echo", &json!({ "message": "hi" }))
        .await
        .outcome;
    assert_eq!(echo.llm_text, "Echo: hi");
}

pub(crate) async fn the_everything_server_works_over_http() {
    let Some(dir) = installed("the_everything_server_works_over_http") else {
        return;
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut child = command("node")
        .args([&program(dir, "server-everything"), "streamableHttp"])
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let ready = BufReader::new(stderr)
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("listening"));
    assert!(ready);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let pool = pool(vec![at(&url)]);
    everything(&pool).await;
    // The pool notices and reports its end.
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = call(
        &pool,
        Path::new("/tmp"),
        "mcp__npm__echo",
        &json!({ "message": "hi" }),
    )
    .await
    .outcome;
    assert_eq!(answer.status, ToolStatus::Error);
}

fn at(url: &str) -> ServerSpec {
    let transport = Transport::Http {
        url: url.to_owned(),
        headers: BTreeMap::from([("x-test".to_owned(), "yes".to_owned())]),
    };
    ServerSpec::new("npm", transport)
}

pub(crate) async fn the_filesystem_server_works() {
    let Some(dir) = installed("the_filesystem_server_works") else {
        return;
    };
    let workdir = tempfile::tempdir().unwrap();
    std::fs::write(workdir.path().join("hello.txt"), "hello\n").unwrap();
    let pool = pool(vec![server(dir, "server-filesystem", &["{workdir}"])]);
    assert!(
        offered(&pool, workdir.path())
            .await
            .contains(&"read_text_file".to_owned())
    );
    let path = workdir.path().join("hello.txt");
    let read = json!({ "path": path });
    let read = call(&pool, workdir.path(), "mcp__npm__read_text_file", &read)
        .await
        .outcome;
    assert_eq!(read.llm_text, "hello\n");
    let outside = json!({ "path": "/etc/passwd" });
    let outside = call(&pool, workdir.path(), "mcp__npm__read_text_file", &outside)
        .await
        .outcome;
    assert_eq!(outside.status, ToolStatus::Error);
    assert!(outside.llm_text.contains("denied"), "{}", outside.llm_text);
}

/// The client for the conformance suite: uses a server as a session does.
pub(crate) fn be_client(url: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let pool = pool(vec![at(url)]);
        let listings = pool.offers(Path::new("/tmp")).await;
        let offers = match &listings[0].offers {
            Ok(offers) => offers,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        for offer in &offers.tools {
            let arguments = match offer.tool.as_str() {
                "add_numbers" => json!({ "a": 5, "b": 3 }),
                _ => json!({}),
            };
            let answer = call(&pool, Path::new("/tmp"), &offer.name, &arguments)
                .await
                .outcome;
            println!("{}: {:?} {}", offer.tool, answer.status, answer.llm_text);
        }
        pool.close(Duration::from_secs(60)).await;
        ExitCode::SUCCESS
    })
}

pub(crate) async fn the_client_passes_the_core_of_the_conformance_suite() {
    let Some(dir) = installed("the_client_passes_the_core_of_the_conformance_suite") else {
        return;
    };
    let client = format!("{} __client", std::env::current_exe().unwrap().display());
    for scenario in CORE {
        let play = || {
            command(dir.join("node_modules/node/bin/node"))
                .arg(program(dir, "conformance"))
                .args(["client", "--command", &client, "--scenario", scenario])
                .current_dir(dir)
                .stdin(Stdio::null())
                .output()
                .unwrap()
        };
        // This scenario asks the client to wait for 500 ms and requires it to be back within 700 ms.
        let tries = if scenario == "sse-retry" { 5 } else { 1 };
        let mut played = std::iter::repeat_with(play).take(tries);
        let mut output = played.next().unwrap();
        while !output.status.success() {
            let Some(again) = played.next() else { break };
            output = again;
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{scenario}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        println!("  conformance {scenario}: passed");
    }
}
