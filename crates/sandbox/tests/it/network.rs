//! The only way out of an isolated session, with real commands.

use agentd_process_tests::{Case, Group, cases, skipped};
use agentd_protocol::SandboxLevel::{self, Confined, Isolated};
use agentd_sandbox::{
    Bounds, CaptureLimits, CollectSpec, CommandSpec, Confinement, Environment, Finding, Gate, Network,
    ProbeSpec, SandboxError, Warden, WardenSpec, probe, readable,
};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_command_reaches_the_gate_and_large_answers_come_whole,
        redteam_36_there_is_no_way_around_the_gate,
        i7_without_namespaces_a_list_of_hosts_is_refused,
    ];
    Group::new("network", Duration::from_secs(120), all)
}

/// Answers each line by repeating it a thousand times.
#[derive(Debug)]
struct Echo;

impl Gate for Echo {
    fn open(&self, socket: UnixListener) -> Box<dyn Send + Sync> {
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                tokio::spawn(async move {
                    let mut line = [0; 1024];
                    let count = stream.read(&mut line).await.unwrap();
                    let _ = stream.write_all(&line[..count].repeat(1000)).await;
                });
            }
        });
        Box::new(task)
    }
}

fn environment() -> Environment {
    Environment::allowed([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())], &[])
}

async fn isolated_works() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: dir.path().to_owned(),
    };
    match probe(&spec).await.unwrap().isolated {
        Finding::Works => true,
        Finding::Missing(why) => {
            let kind = if why.message.contains("on the PATH") {
                ""
            } else {
                "kernel: "
            };
            skipped(&format!("{kind}{}", why.message), "network");
            false
        }
    }
}

async fn warden(dir: &Path, level: SandboxLevel) -> Result<Warden, SandboxError> {
    std::fs::create_dir_all(dir.join("w")).unwrap();
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: dir.join("w"),
        environment: environment(),
        bounds: Bounds::default(),
        network: Some(Network::through(Arc::new(Echo))),
    };
    let walls = Confinement::new(level, dir.join("temp"), readable(&environment(), &[]));
    Ok(Warden::spawn_confined(&spec, &walls).await?.0)
}

async fn says(warden: &Warden, dir: &Path, script: &str) -> String {
    let command = CommandSpec {
        argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
        cwd: dir.join("w"),
        env: Vec::new(),
    };
    let spec = CollectSpec {
        time: Duration::from_secs(60),
        limits: CaptureLimits::default(),
        spill_dir: dir.join("spill"),
        spill_bytes: 1 << 20,
    };
    let done = warden
        .run(command)
        .await
        .unwrap()
        .collect(&spec, |_| {})
        .await
        .unwrap();
    String::from_utf8_lossy(done.output.head()).trim().to_owned()
}

async fn a_command_reaches_the_gate_and_large_answers_come_whole() {
    if !isolated_works().await {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let warden = warden(dir.path(), Isolated).await.unwrap();
    let script =
        "proxy=${HTTPS_PROXY#http://}; exec 3<>/dev/tcp/${proxy/://}; printf %01000d 7 >&3; wc -c <&3";
    assert_eq!(says(&warden, dir.path(), script).await, "1000000");
    // In parallel, too.
    let many = format!("for i in 1 2 3 4 5 6 7 8; do ( {script} ) & done; wait");
    assert_eq!(says(&warden, dir.path(), &many).await, ["1000000"; 8].join("\n"));
    assert!(warden.close(Duration::from_secs(60)).await);
    assert!(!dir.path().join("temp.net").exists());
}

async fn redteam_36_there_is_no_way_around_the_gate() {
    if !isolated_works().await {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let warden = warden(dir.path(), Isolated).await.unwrap();
    let tries = [
        format!("(: > /dev/tcp/127.0.0.1/{port}) && echo yes"),
        "(echo x > /dev/udp/127.0.0.1/53) && echo yes".to_owned(),
        "(: > /dev/tcp/::1/3128) && echo yes".to_owned(),
        "perl -MSocket -e 'print \"yes\" if socket(S, AF_INET, SOCK_RAW, 1)'".to_owned(),
        "perl -MSocket -e 'print \"yes\" if socket(S, AF_INET, SOCK_DGRAM, 0)'".to_owned(),
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); print \"yes\" if bind(S, sockaddr_in(4000, INADDR_ANY))'"
            .to_owned(),
    ];
    for script in tries {
        let said = says(&warden, dir.path(), &format!("{script} 2>&1; echo end")).await;
        assert!(said.ends_with("end") && !said.contains("yes"), "{script}: {said}");
    }
}

async fn i7_without_namespaces_a_list_of_hosts_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = warden(dir.path(), Confined).await.unwrap_err().to_string();
    assert!(refused.contains("needs the level isolated"), "{refused}");
}
