//! `agentctl --context` over WebSocket and TLS: the verbs, and a network that drops.

use crate::{ASKING, YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::ExportParams;
use agentd_tests::{Daemon, Finished, within};
use std::net::SocketAddr;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A certificate for this machine, and the configuration that uses it.
struct Secured {
    dir: TempDir,
    config: String,
}

impl Secured {
    fn new(base: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(dir.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let config = format!(
            "{base}[http]\nlisten = \"127.0.0.1:0\"\ntls = {{ cert = \"{0}/cert.pem\", key = \"{0}/key.pem\" }}\n",
            dir.path().display()
        );
        Self { dir, config }
    }

    /// Creates the context `far` for the daemon at this address, with a token that has all scopes.
    async fn context(&self, daemon: &Daemon, address: SocketAddr) {
        let create = [
            "token",
            "create",
            "far",
            "--scope",
            "read,steer,approve,import,admin",
            "--dir",
            "/",
            "--mode",
            "yolo",
        ];
        let token = self.dir.path().join("token");
        std::fs::write(&token, good(daemon.agentctl(&create).await)).unwrap();
        let url = format!("https://localhost:{}", address.port());
        let cert = self.dir.path().join("cert.pem");
        let files = [token.to_str().unwrap(), cert.to_str().unwrap()];
        let add = [
            "context",
            "add",
            "far",
            &url,
            "--token-file",
            files[0],
            "--ca-file",
            files[1],
        ];
        good(daemon.agentctl(&add).await);
    }
}

fn good(done: Finished) -> String {
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    done.stdout
}

/// Where the daemon serves HTTP.
async fn address(daemon: &Daemon) -> SocketAddr {
    let url = daemon.http().await;
    url.strip_prefix("https://").unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_day_verbs_work_over_websocket_and_tls() {
    let server = ModelServer::start(false).await.unwrap();
    let secured = Secured::new(ASKING);
    let daemon = daemon(&server, &secured.config).await;
    secured.context(&daemon, address(&daemon).await).await;
    let far = async |args: &[&str]| good(daemon.agentctl(&[&["--context", "far"], args].concat()).await);
    let dir = daemon.workdir("project");
    let plan = "plan:far steps=1 command=true text=Far_away;";
    far(&["run", "-d", "--name", "far", "-C", &dir, plan]).await;
    far(&["wait", "far", "--for", "approval"]).await;
    let open = far(&["approvals", "-q"]).await;
    far(&["approve", open.trim()]).await;
    far(&["wait", "far"]).await;
    assert!(far(&["logs", "far"]).await.contains("Far away"));
    let log = far(&["export", "--jsonl", "far"]).await;
    assert!(log.contains("\"by\":\"token:far\""), "{log}");
    let kept = secured.dir.path().join("far.jsonl");
    std::fs::write(&kept, &log).unwrap();
    far(&["import", kept.to_str().unwrap(), "-C", &dir, "--name", "again"]).await;
    far(&["send", "--wait", "far", "plan:more text=Still_there;"]).await;
    for (args, wanted) in [
        (&["ps"][..], "again"),
        (&["show", "far"], "far"),
        (&["diff", "far"], ""),
        (&["usage"], "claude"),
        (&["models"], "claude"),
        (&["tools"], "Bash"),
        (&["token", "ls"], "far"),
        (&["config", "view"], "tls"),
        (&["daemon", "status"], "https://"),
    ] {
        assert!(far(args).await.contains(wanted), "{args:?}");
    }
    far(&["close", "again"]).await;
    let refused = daemon.agentctl(&["--context", "far", "show", "nobody"]).await;
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    good(daemon.agentctl(&["token", "revoke", "far"]).await);
    let revoked = daemon.agentctl(&["--context", "far", "ps"]).await;
    assert_eq!(revoked.code, Some(4), "{}", revoked.stderr);
}

/// A network between a client and a daemon that can drop.
struct Network {
    address: SocketAddr,
    up: watch::Sender<bool>,
}

impl Network {
    async fn to(daemon: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (up, is_up) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut is_up = is_up.clone();
                if !*is_up.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(daemon).await?;
                    tokio::select! {
                        ended = copy_bidirectional(&mut near, &mut far) => ended.map(|_| ()),
                        _ = is_up.changed() => Ok(()),
                    }
                });
            }
        });
        Self { address, up }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_attach_goes_on_after_the_network_was_away() {
    let server = ModelServer::start(false).await.unwrap();
    let secured = Secured::new(YOLO);
    let daemon = daemon(&server, &secured.config).await;
    let network = Network::to(address(&daemon).await).await;
    secured.context(&daemon, network.address).await;
    let dir = daemon.workdir("project");
    std::fs::write(
        format!("{dir}/wait.sh"),
        "until test -e go; do sleep 0.02; done\n",
    )
    .unwrap();
    let plan = "plan:far steps=2 command=sh_wait.sh;";
    good(
        daemon
            .agentctl(&["run", "-d", "--name", "far", "-C", &dir, plan])
            .await,
    );
    let mut attach = daemon
        .agentctl_command(&["--context", "far", "attach", "-o", "jsonl", "far"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(attach.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let mut until = async |kind: &str, seen: &mut Vec<String>| {
        loop {
            let line = within(kind, lines.next_line())
                .await
                .unwrap()
                .expect("attach goes on");
            let found = line.contains(&format!("\"type\":\"{kind}\""));
            seen.push(line);
            if found {
                return;
            }
        }
    };
    until("tool.started", &mut seen).await;
    network.up.send_replace(false);
    // The turn ends while no viewer is attached.
    std::fs::write(format!("{dir}/go"), "").unwrap();
    good(daemon.agentctl(&["wait", "far"]).await);
    network.up.send_replace(true);
    until("turn.finished", &mut seen).await;
    let params = ExportParams {
        session: "far".to_owned(),
        ..ExportParams::default()
    };
    let stored = daemon.client().await.export(&params).await.unwrap().lines;
    assert_eq!(seen, stored);
    attach.kill().await.unwrap();
}
