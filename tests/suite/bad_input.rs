//! Invalid input: a clear error with the right class and exit code, and the daemon keeps running.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, Fault, FaultClass, SendParams};
use agentd_tests::{Daemon, DaemonOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

async fn fails_to_start(dir: &Arc<tempfile::TempDir>, options: DaemonOptions) -> (Option<i32>, String) {
    let mut daemon = Daemon::launch(Arc::clone(dir), options);
    let code = daemon.ended().await.code();
    // The pipe may still hold the last lines.
    agentd_tests::eventually("the error is said", || daemon.said().contains("error:")).await;
    (code, daemon.said())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_on_the_same_store_or_socket_exits_with_69() {
    let first = Daemon::start(DaemonOptions::default()).await;
    let (code, said) = fails_to_start(&first.dir, DaemonOptions::default()).await;
    assert_eq!(code, Some(69), "{said}");
    let socket = first.socket().display().to_string();
    assert!(said.contains(&format!("agentctl --socket {socket} ps")), "{said}");
    // With its own socket it finds that another daemon owns the store.
    let elsewhere = tempfile::tempdir().unwrap();
    let args = vec![
        "--socket".to_owned(),
        elsewhere.path().join("s").display().to_string(),
    ];
    let options = DaemonOptions {
        args,
        ..DaemonOptions::default()
    };
    let (code, said) = fails_to_start(&first.dir, options).await;
    assert_eq!(code, Some(69), "{said}");
    let holder = format!(
        "in use by process {}, an agentd that listens on {socket};",
        first.pid()
    );
    assert!(said.contains(&holder), "{said}");
    let other = Arc::new(tempfile::tempdir().unwrap());
    let args = vec!["--socket".to_owned(), first.socket().display().to_string()];
    let (code, said) = fails_to_start(
        &other,
        DaemonOptions {
            args,
            ..DaemonOptions::default()
        },
    )
    .await;
    assert_eq!(code, Some(69), "{said}");
    assert!(
        first.client().await.status().await.is_ok(),
        "the first one lives on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_stops_the_start_and_says_where() {
    for (config, wanted) in [
        ("[loop]\nmax_trns = 3\n", "max_turns"),
        ("[loop]\nmax_turns = \"three\"\n", "config.toml:2"),
        (
            "[sandbox]\nlevel = \"confined\"\nnetwork = { hosts = [\"crates.io\"] }\n",
            "sandbox.network",
        ),
        ("[store]\nurl = \"mysql://db/agentd\"\n", "store.url"),
        ("not toml at all", "config.toml:1"),
    ] {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let options = DaemonOptions {
            config: config.to_owned(),
            ..DaemonOptions::default()
        };
        let (code, said) = fails_to_start(&dir, options).await;
        assert_eq!(code, Some(2), "{config}: {said}");
        assert!(said.contains(wanted), "{config}: {wanted:?} is missing in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_the_configuration_opens_the_files_that_it_names() {
    for (config, args, wanted) in [
        (
            "[models.s]\nprovider = \"scripted\"\nmodel = \"/no/such.toml\"\n",
            ["--check-config"],
            "config.toml:3",
        ),
        (
            "[[hooks.run]]\nname = \"h\"\nevent = \"Stop\"\ncommand = [\"/etc/passwd\"]\n",
            ["--check-config"],
            "hooks.run[0]: hook h: /etc/passwd is not executable",
        ),
    ] {
        let options = DaemonOptions {
            config: config.to_owned(),
            args: args.map(str::to_owned).to_vec(),
            ..DaemonOptions::default()
        };
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let (code, said) = fails_to_start(&dir, options).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_http_address_is_refused_and_off_is_accepted() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let http = |value: &str| vec!["--http".to_owned(), value.to_owned()];
    let (code, said) = fails_to_start(
        &dir,
        DaemonOptions {
            args: http("localhost"),
            ..DaemonOptions::default()
        },
    )
    .await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("http.listen"), "{said}");
    Daemon::start(DaemonOptions {
        args: http("off"),
        ..DaemonOptions::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_frames_close_their_connection_and_nothing_else() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let junk: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 64],
        &[0, 0, 0, 3, 0xc1, 0xc1, 0xc1],
        &[0, 0, 0, 2, 0x91, 0x01],
    ];
    for bytes in junk {
        let mut stream = UnixStream::connect(daemon.socket()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the daemon closes the connection after {bytes:?}");
        assert!(
            String::from_utf8_lossy(&answer).contains("fault"),
            "and says why: {answer:?}"
        );
    }
    assert!(client.status().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_have_the_right_class() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}[limits]\nmax_input_bytes = 1000\n")).await;
    let client = daemon.client().await;
    let class = |error: agentd_client::ClientError| Fault::from(error).class;
    let create = |text: &str, workdir: &str| CreateParams {
        prompt: Some(vec![Block::text(text)]),
        workdir: workdir.to_owned(),
        ..CreateParams::default()
    };
    let work = daemon.workdir("w");
    let missing = client.create(&create("hi", "/no/such/dir")).await.unwrap_err();
    assert_eq!(class(missing), FaultClass::Invalid);
    let empty = client.create(&create("  ", &work)).await.unwrap_err();
    assert_eq!(class(empty), FaultClass::Invalid);
    let too_large = client
        .create(&create(&"x".repeat(1_001), &work))
        .await
        .unwrap_err();
    assert_eq!(class(too_large), FaultClass::Limit);
    assert!(
        client.create(&create(&"x".repeat(900), &work)).await.is_ok(),
        "below the limit it is taken"
    );
    let send = SendParams {
        session: "nobody".into(),
        content: vec![Block::text("hi")],
        ..SendParams::default()
    };
    assert_eq!(class(client.send(&send).await.unwrap_err()), FaultClass::NotFound);
    let unknown = client
        .call::<_, serde_json::Value>("session.explode", &serde_json::json!({}), Duration::from_secs(60))
        .await;
    assert_eq!(class(unknown.unwrap_err()), FaultClass::Invalid);
    let typo = client
        .call::<_, serde_json::Value>(
            "session.get",
            &serde_json::json!({"sesion": "x"}),
            Duration::from_secs(60),
        )
        .await;
    assert_eq!(class(typo.unwrap_err()), FaultClass::Invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn agentctl_ends_with_the_class_of_the_fault() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    for (args, code) in [
        (vec!["show", "nobody"], 3),
        (vec!["run"], 2),
        (vec!["run", "-C", "/no/such/dir", "hi"], 2),
        (vec!["frobnicate"], 2),
        (vec!["logs", "--kind", "bogus", "@last"], 2),
        (vec!["events", "--kind", "tool,bogus"], 2),
        (vec!["run", "plan:ok text=fine;"], 0),
        (vec!["run", "--max-turns", "1", "plan:m steps=3;"], 9),
        (vec!["run", "--timeout", "200ms", "plan:h hang=0;"], 124),
        (vec!["--socket", "/no/such/socket", "ps"], 69),
    ] {
        let done = daemon.agentctl(&args).await;
        assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
        assert!(code == 0 || !done.stderr.is_empty(), "{args:?} says why");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_headless_run_never_hangs_on_an_approval() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, crate::ASKING).await;
    let done = daemon
        .agentctl(&["run", "-o", "json", "plan:u steps=1 command=touch_x;"])
        .await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let result: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["success"], true);
    assert_eq!(result["tool_calls"][0]["status"], "denied");
    assert!(!std::path::Path::new(&daemon.workdir("")).join("x").exists());
}
