//! The file system under some sessions hangs. This affects only those sessions (I6). docs/faults.md has this
//! row.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_faulty_disk::{Disk, Mounted};
use agentd_protocol::{
    Block, CancelTurnParams, CreateParams, EndReason, EventBody, SendParams, ToolFinished, ToolStatus,
};
use agentd_tests::{Daemon, Follower, check_log, found, skipped, within};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Sessions on the frozen disk.
const FROZEN: usize = 40;
/// Other sessions.
const HEALTHY: usize = 5;

struct World {
    daemon: Daemon,
    client: Client,
    disk: Disk,
    mounted: Mounted,
    /// Its mount; unmounted and removed on drop.
    _dir: TempDir,
    _server: ModelServer,
}

impl World {
    async fn new(test: &str) -> Option<Self> {
        let dir = tempfile::Builder::new()
            .prefix("agentd-frozen-")
            .tempdir()
            .unwrap();
        let disk = Disk::new();
        let mounted = match Mounted::new(&disk, dir.path()) {
            Ok(mounted) => mounted,
            Err(error) => {
                let why = format!("kernel: no FUSE file system can be mounted here: {}", error.0);
                skipped(test, &why);
                return None;
            }
        };
        let server = ModelServer::start(false).await.unwrap();
        let daemon = daemon(&server, YOLO).await;
        Some(Self {
            client: daemon.client().await,
            daemon,
            disk,
            mounted,
            _dir: dir,
            _server: server,
        })
    }

    fn frozen_dir(&self) -> String {
        self.mounted.directory().display().to_string()
    }

    /// Sessions without an input, in a directory with something to read.
    async fn sessions(&self, workdir: &str, count: usize) -> Vec<String> {
        fs::write(Path::new(workdir).join("bench.txt"), "a line\n".repeat(100)).unwrap();
        let mut sessions = Vec::new();
        for _ in 0..count {
            let created = self.client.create(&in_dir(workdir)).await.unwrap();
            sessions.push(created.session.to_string());
        }
        sessions
    }

    async fn send(&self, session: &str, steps: usize) {
        let params = SendParams {
            session: session.to_owned(),
            content: vec![Block::text(format!("plan:reads steps={steps} tool=read;"))],
            ..SendParams::default()
        };
        self.client.send(&params).await.unwrap();
    }

    async fn viewer(&self, session: &str) -> Follower {
        Follower::attach(&self.client, session).await
    }

    /// A person sees which file system it is, and no new work begins there.
    async fn is_named(&self, dir: &str) {
        let ps = self.daemon.agentctl(&["ps"]).await;
        let told = format!("the file system at {dir} has not answered for");
        assert!(ps.code == Some(0) && ps.stderr.contains(&told), "{ps:?}");
        let doctor = self.daemon.agentctl(&["doctor"]).await;
        assert!(doctor.stdout.replace('\n', " ").contains(dir), "{doctor:?}");
        let refused = self.client.create(&in_dir(dir)).await.unwrap_err().to_string();
        assert!(refused.contains("does not answer"), "{refused}");
    }

    /// After the thaw every session works as before.
    async fn goes_on(&self, sessions: &[String]) {
        let answers = async || {
            self.client
                .status()
                .await
                .unwrap()
                .hanging
                .is_empty()
                .then_some(())
        };
        found("it is seen that the file system answers", answers).await;
        for (n, session) in sessions.iter().enumerate() {
            self.send(session, 1).await;
            let mut viewer = self.viewer(session).await;
            // The first one had a turn before.
            viewer.turn_finished(if n == 0 { 3 } else { 2 }).await;
            let last = viewer.events.iter().rev().find_map(|event| match &event.body {
                EventBody::ToolFinished(done) => Some(done.outcome.status),
                _ => None,
            });
            assert_eq!(last, Some(ToolStatus::Ok), "{session} goes on after the thaw");
            check_log(&self.client, session).await;
        }
        let ps = self.daemon.agentctl(&["ps"]).await;
        assert!(!ps.stderr.contains("file system"), "{ps:?}");
    }
}

fn in_dir(workdir: &str) -> CreateParams {
    CreateParams {
        workdir: workdir.to_owned(),
        ..CreateParams::default()
    }
}

async fn result(viewer: &mut Follower) -> ToolFinished {
    let done = viewer.until("a result", |body| matches!(body, EventBody::ToolFinished(_)));
    match done.await.body {
        EventBody::ToolFinished(done) => done,
        _ => unreachable!("the test waited for it"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_file_system_that_stands_still_costs_only_its_own_sessions() {
    let Some(world) = World::new("frozen").await else {
        return;
    };
    let dir = world.frozen_dir();
    let frozen = world.sessions(&dir, FROZEN).await;
    let healthy = world.sessions(&world.daemon.workdir("project"), HEALTHY).await;
    // The control: the other file system answers, and so do calls.
    world.send(&frozen[0], 1).await;
    let mut first = world.viewer(&frozen[0]).await;
    assert_eq!(result(&mut first).await.outcome.status, ToolStatus::Ok);
    first.turn_finished(1).await;

    let ice = world.disk.freeze();
    world.send(&frozen[1], 1).await;
    let mut second = world.viewer(&frozen[1]).await;
    second
        .until("the call", |body| matches!(body, EventBody::ToolStarted(_)))
        .await;
    // A call that hangs can be cancelled, until it is given up by itself.
    let cancel = CancelTurnParams {
        session: frozen[1].clone(),
        ..CancelTurnParams::default()
    };
    within("the cancel is answered", world.client.cancel_turn(&cancel))
        .await
        .unwrap();
    assert_eq!(second.turn_finished(1).await.reason, EndReason::Cancelled);
    for session in frozen[..1].iter().chain(&frozen[2..]) {
        world.send(session, 1).await;
    }
    for session in &healthy {
        world.send(session, 20).await;
    }
    for session in &healthy {
        let end = world.viewer(session).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed);
    }
    for session in &frozen[2..] {
        let mut viewer = world.viewer(session).await;
        let done = result(&mut viewer).await;
        assert_eq!(
            done.outcome.status,
            ToolStatus::Timeout,
            "{}",
            done.outcome.llm_text
        );
        assert!(done.outcome.llm_text.contains(&dir), "{}", done.outcome.llm_text);
        viewer.turn_finished(1).await;
    }
    // An input during a turn would join it.
    first.turn_finished(2).await;
    world.is_named(&dir).await;
    world.sessions(&world.daemon.workdir("project"), 1).await;

    drop(ice);
    world.goes_on(&frozen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_sigterm_ends_a_daemon_whose_threads_hang() {
    let Some(mut world) = World::new("ending").await else {
        return;
    };
    let dir = world.frozen_dir();
    let session = world.sessions(&dir, 1).await.remove(0);
    let ice = world.disk.freeze();
    world.send(&session, 1).await;
    world
        .viewer(&session)
        .await
        .until("the call", |body| matches!(body, EventBody::ToolStarted(_)))
        .await;
    world.daemon.terminate();
    // The kernel keeps a process as long as one of its threads waits for the file system. The store and the socket are free
    // before that: the next daemon takes them over.
    let next = within("the next daemon runs", async {
        loop {
            let mut next = world.daemon.again();
            if next.ready_or_over().await {
                return next;
            }
        }
    })
    .await;
    let client = next.client().await;
    assert!(client.status().await.is_ok());
    drop(ice);
    let end = within("the first daemon is gone", world.daemon.ended()).await;
    assert!(end.success(), "{end:?}");
}
