//! The client against the real server.

use crate::harness::Harness;
use agentd_actor_kit::FeedMsg;
use agentd_client::{Client, ConnectOptions, Push};
use agentd_protocol::*;
use agentd_settings::Settings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) struct Daemon {
    pub(crate) h: Harness,
    pub(crate) path: PathBuf,
    stop: watch::Sender<bool>,
}

impl Daemon {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Self {
        let h = Harness::with(change).await;
        let path = h.dir.path().join("agentd.sock");
        let listener = agentd_control::bind(&path).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let connections = Arc::new(agentd_control::Connections::new(Arc::clone(&h.api)));
        tokio::spawn(agentd_control::serve(listener, connections, stopped));
        Self { h, path, stop }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.path, &ConnectOptions::default())
            .await
            .unwrap()
    }
}

fn say(session: &str, text: &str) -> SendParams {
    SendParams {
        session: session.into(),
        content: vec![Block::text(text)],
        ..SendParams::default()
    }
}

#[tokio::test]
async fn a_session_is_created_gets_input_is_listed_and_closed() {
    let daemon = Daemon::start(|settings| settings.limits.list_rows = 2).await;
    let client = daemon.client().await;
    assert_eq!(client.welcome().node, "a1");
    let params = CreateParams {
        workdir: daemon.h.workdir(),
        title: Some("one".into()),
        ..CreateParams::default()
    };
    let created = client.create(&params).await.unwrap();
    for title in ["two", "three", "four", "five"] {
        client
            .create(&CreateParams {
                title: Some(title.into()),
                ..params.clone()
            })
            .await
            .unwrap();
    }
    let sent = client.send(&say("one", "go")).await.unwrap();
    assert_eq!(sent.seq, 2);
    assert_eq!(client.get(&created.session.short()).await.unwrap().seq, 2);
    assert_eq!(client.list(&ListParams::default()).await.unwrap().len(), 5);
    assert_eq!(
        client
            .list(&ListParams {
                limit: 3,
                ..ListParams::default()
            })
            .await
            .unwrap()
            .len(),
        3
    );
    client
        .close(&LifecycleParams {
            session: "one".into(),
            ..LifecycleParams::default()
        })
        .await
        .unwrap();
    assert_eq!(client.list(&ListParams::default()).await.unwrap().len(), 4);
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "Bash"), "{tools:?}");
    assert_eq!(client.models().await.unwrap().len(), 3);
    let exported = client
        .export(&ExportParams {
            session: "one".into(),
            ..ExportParams::default()
        })
        .await
        .unwrap();
    assert_eq!(exported.lines.len(), 3);
    client.stop().await.unwrap();
}

#[tokio::test]
async fn a_fault_of_the_daemon_arrives_unchanged() {
    let daemon = Daemon::start(|_| {}).await;
    let client = daemon.client().await;
    let fault = Fault::from(client.get("nobody").await.unwrap_err());
    assert_eq!(
        fault,
        Fault::not_found("unknown_session", "there is no session \"nobody\"")
            .hint("`agentctl ps -a` lists them")
    );
    assert_eq!(client.lost(), None);
}

#[tokio::test]
async fn a_subscription_replays_syncs_follows_and_detaches_when_dropped() {
    let daemon = Daemon::start(|_| {}).await;
    let session = daemon.h.session("a").await;
    let client = daemon.client().await;
    let params = AttachParams {
        session: "a".into(),
        decides: true,
        deltas: true,
        ..AttachParams::default()
    };
    let mut viewer = client.attach(&params).await.unwrap();
    assert_eq!(viewer.head(), 1);
    assert!(matches!(viewer.next().await, Some(Push::Event(_))));
    assert!(matches!(viewer.next().await, Some(Push::Synced(_))));
    client.send(&say("a", "go")).await.unwrap();
    let Some(Push::Event(event)) = viewer.next().await else {
        panic!("no event")
    };
    assert_eq!(serde_json::from_slice::<Event>(&event.json).unwrap().seq, 2);
    drop(viewer);
    let deciders = || {
        daemon
            .h
            .feed
            .call(Duration::from_secs(60), |done| FeedMsg::Deciders {
                sessions: vec![session],
                done,
            })
    };
    let left = async {
        while deciders().await != Ok(0) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), left).await.unwrap();
    client.status().await.unwrap();
}

#[tokio::test]
async fn a_full_subscription_does_not_delay_calls_and_still_gets_everything() {
    let daemon = Daemon::start(|_| {}).await;
    let session = daemon.h.session("a").await;
    for n in 0..3_000 {
        daemon.h.log.note(session, &n.to_string()).await;
    }
    let client = daemon.client().await;
    let params = AttachParams {
        session: "a".into(),
        ..AttachParams::default()
    };
    let mut viewer = client.attach(&params).await.unwrap();
    for _ in 0..20 {
        client.status().await.unwrap();
    }
    let mut seen = 0;
    loop {
        match viewer.next().await.unwrap() {
            Push::Event(event) => {
                seen += 1;
                assert_eq!(serde_json::from_slice::<Event>(&event.json).unwrap().seq, seen);
            }
            Push::Synced(synced) if synced.seq == 3_001 => break,
            Push::Synced(_) | Push::Lagged(_) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!(seen, 3_001);
}

#[tokio::test]
async fn a_watch_for_stored_events_only_ends() {
    let daemon = Daemon::start(|_| {}).await;
    daemon.h.session("a").await;
    let client = daemon.client().await;
    let params = WatchParams {
        after: Some(0),
        once: true,
        ..WatchParams::default()
    };
    let mut watch = client.watch(&params).await.unwrap();
    let Some(Push::Event(event)) = watch.next().await else {
        panic!("no event")
    };
    assert_eq!(event.cursor, Some(1));
    let caught_up = CaughtUp { cursor: 1 };
    assert_eq!(watch.next().await, Some(Push::CaughtUp(caught_up)));
    let Some(Push::Ended(ended)) = watch.next().await else {
        panic!("not ended")
    };
    assert_eq!((ended.code.as_str(), ended.cursor), ("end", Some(1)));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn when_the_daemon_stops_every_call_gets_the_reason() {
    let daemon = Daemon::start(|_| {}).await;
    daemon.h.session("a").await;
    let client = daemon.client().await;
    let mut watch = client.watch(&WatchParams::default()).await.unwrap();
    let caught_up = CaughtUp { cursor: 1 };
    assert_eq!(watch.next().await, Some(Push::CaughtUp(caught_up)));
    daemon.stop.send_replace(true);
    assert_eq!(watch.next().await, None);
    assert_eq!(client.lost().unwrap().code, "stopping");
    let fault = Fault::from(client.status().await.unwrap_err());
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Unavailable, "stopping")
    );
}
