//! A whole daemon on a failing disk (`crates/faulty-disk`): everything that a viewer has seen survives a power loss, a
//! full disk refuses inputs until there is space, and after a failed sync the next daemon continues.

use crate::{YOLO, session};
use agentd_bench::model_server::ModelServer;
use agentd_faulty_disk::{Disk, Fault, Image, Loss, Mounted, Record};
use agentd_protocol::{Block, CancelTurnParams, Delivery, EndReason, EventBody, SendParams};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually, marked, skipped, within};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const PLAN: &str = "plan:k steps=3 command=echo_{n}_>>_marks;";

/// A disk under the data directory of a daemon that has not started yet.
struct Machine {
    disk: Disk,
    dir: Arc<TempDir>,
    _mounted: Mounted,
    server: ModelServer,
}

impl Machine {
    async fn new(test: &str) -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("agentd-t").tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let disk = Disk::new();
        match Mounted::new(&disk, &data) {
            Ok(mounted) => Some(Self {
                disk,
                dir: Arc::new(dir),
                _mounted: mounted,
                server: ModelServer::start(false).await.unwrap(),
            }),
            Err(error) => {
                skipped(
                    test,
                    &format!("kernel: no FUSE file system can be mounted here: {}", error.0),
                );
                None
            }
        }
    }

    fn options(&self) -> DaemonOptions {
        DaemonOptions {
            model_url: Some(self.server.url()),
            config: YOLO.to_owned(),
            ..DaemonOptions::default()
        }
    }

    async fn daemon(&self) -> Daemon {
        Daemon::start_in(Arc::clone(&self.dir), self.options()).await
    }
}

fn message(session: &str, key: &str) -> SendParams {
    SendParams {
        session: session.to_owned(),
        content: vec![Block::text(PLAN)],
        delivery: Some(Delivery::Queue),
        key: Some(key.to_owned()),
        ..SendParams::default()
    }
}

#[tokio::test]
async fn i1_i2_what_a_viewer_saw_is_there_after_a_power_loss_and_the_turn_goes_on() {
    let Some(machine) = Machine::new("power loss under a daemon").await else {
        return;
    };
    let mut daemon = machine.daemon().await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, PLAN).await;
    let mut follower = Follower::attach(&client, &id).await;
    while !follower
        .events
        .iter()
        .any(|event| matches!(event.body, EventBody::TurnFinished(_)))
    {
        let seen = follower.events.len();
        assert!(follower.next().await.is_some());
        if follower.events.len() > seen {
            machine.disk.say(&follower.events.len().to_string());
        }
    }
    daemon.kill().await;
    let records = machine.disk.records();
    let begun = records
        .iter()
        .position(|record| matches!(record, Record::Said(_)))
        .unwrap();
    for (number, loss) in (0_usize..).zip([Loss::Everything, Loss::Some(1), Loss::Everything, Loss::Some(2)])
    {
        let at = begun + (records.len() - begun) * (number + 1) / 4;
        let before = &records[..at];
        let seen = before
            .iter()
            .filter(|record| matches!(record, Record::Said(_)))
            .count();
        let left = tempfile::Builder::new().prefix("agentd-t").tempdir().unwrap();
        Image::after_power_loss(before, loss)
            .write_to(&left.path().join("data"))
            .unwrap();
        let second = Daemon::start_in(Arc::new(left), machine.options()).await;
        let client = second.client().await;
        let case = format!("after {at} of {} changes, {loss:?}", records.len());
        let end = Follower::attach(&client, &id).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{case}");
        let log = check_log(&client, &id).await;
        assert!(
            log[..seen] == follower.events[..seen],
            "{case}: {seen} events were seen"
        );
    }
}

#[tokio::test]
async fn i1_i6_a_daemon_on_a_full_disk_refuses_inputs_and_takes_them_when_there_is_space() {
    let Some(machine) = Machine::new("a full disk under a daemon").await else {
        return;
    };
    let mut daemon = machine.daemon().await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, PLAN).await;
    let mut follower = Follower::attach(&client, &id).await;
    follower.turn_finished(1).await;
    machine.disk.set(Fault::Full {
        after: 0,
        times: u64::MAX,
    });
    // The append that finds the disk full waits for space; from then on, others are refused at once.
    let first = tokio::spawn({
        let (client, params) = (client.clone(), message(&id, "first"));
        async move { client.send(&params).await }
    });
    eventually("the disk refuses", || machine.disk.counts().refused > 0).await;
    let mut number = 0;
    let refused = loop {
        number += 1;
        let params = message(&id, &format!("other-{number}"));
        let tried = tokio::time::timeout(Duration::from_secs(15), client.send(&params)).await;
        if let Ok(Err(error)) = tried {
            break error;
        }
        assert!(number < 20, "a full disk refuses nothing: {tried:?}");
    };
    assert!(refused.to_string().contains("no space"), "it says why: {refused}");
    machine.disk.set(Fault::None);
    within("there is space", first).await.unwrap().unwrap();
    let end = follower.turn_finished(2).await;
    assert_eq!(end.reason, EndReason::Completed);
    let log = check_log(&client, &id).await;
    let accepted = log.iter().filter_map(|event| match &event.body {
        EventBody::InputAccepted(input) => input.key.clone(),
        _ => None,
    });
    let keys: Vec<String> = accepted.collect();
    assert!(keys.contains(&"first".to_owned()), "{keys:?}");
    assert!(
        !keys.contains(&format!("other-{number}")),
        "what was refused was not taken: {keys:?}"
    );
    daemon.kill().await;
}

#[tokio::test]
async fn i5_i6_on_a_full_disk_a_cancel_answers_when_the_command_is_dead_and_is_durable_later() {
    let Some(machine) = Machine::new("a cancel on a full disk").await else {
        return;
    };
    let mut daemon = machine.daemon().await;
    let client = daemon.client().await;
    for (number, kill) in [(1, false), (2, true)] {
        // A number of seconds that no other test sleeps for.
        let seconds = format!("4711{number}");
        let plan = format!("plan:stuck{number} steps=1 command=sleep_{seconds};");
        let id = session(&daemon, &client, &plan).await;
        let mut follower = Follower::attach(&client, &id).await;
        eventually("the command runs", || !marked(&seconds).is_empty()).await;
        machine.disk.set(Fault::Full {
            after: 0,
            times: u64::MAX,
        });
        let cancel = CancelTurnParams {
            session: id.clone(),
            kill,
            ..CancelTurnParams::default()
        };
        // The disk stays full, so only the end of the command can cause the answer.
        let done = within("the cancel is answered", client.cancel_turn(&cancel))
            .await
            .unwrap();
        assert!(done.pending, "it is not said to be durable: {done:?}");
        eventually("the command is dead", || marked(&seconds).is_empty()).await;
        // The turn is over; a second cancel has nothing to end.
        let again = within("the second one is answered", client.cancel_turn(&cancel)).await;
        assert!(again.unwrap_err().to_string().contains("no turn runs"));
        machine.disk.set(Fault::None);
        let end = follower.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Cancelled);
        check_log(&client, &id).await;
    }
    daemon.kill().await;
}

#[tokio::test]
async fn i1_a_failed_sync_ends_the_daemon_and_the_next_one_goes_on_with_all_that_was_seen() {
    let Some(machine) = Machine::new("a failed sync under a daemon").await else {
        return;
    };
    let mut daemon = machine.daemon().await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, PLAN).await;
    let mut follower = Follower::attach(&client, &id).await;
    follower.turn_finished(1).await;
    let seen = follower.events.clone();
    machine.disk.set(Fault::SyncFails { after: 0 });
    // Whether this is durable is unknown; with the same key, two tries make one input.
    let unknown = client.send(&message(&id, "one")).await;
    let status = daemon.ended().await;
    assert!(
        !status.success(),
        "a daemon whose disk failed does not say that all is well: {status:?}"
    );
    assert!(unknown.is_err(), "{unknown:?}");
    let second = machine.daemon().await;
    let client = second.client().await;
    client.send(&message(&id, "one")).await.unwrap();
    let end = Follower::attach(&client, &id).await.turn_finished(2).await;
    assert_eq!(end.reason, EndReason::Completed);
    let log = check_log(&client, &id).await;
    assert!(log[..seen.len()] == seen[..]);
    // The power loss comes after all that, so nothing depends on the failed sync.
    let records = machine.disk.records();
    drop(client);
    let left = tempfile::Builder::new().prefix("agentd-t").tempdir().unwrap();
    let lost = Image::after_power_loss(&records, Loss::Everything);
    lost.write_to(&Path::new(left.path()).join("data")).unwrap();
    drop(second);
    let third = Daemon::start_in(Arc::new(left), machine.options()).await;
    let again = check_log(&third.client().await, &id).await;
    assert!(again[..log.len()] == log[..]);
}
