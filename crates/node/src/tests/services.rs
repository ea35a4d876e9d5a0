//! Tests of the services: the root restarts them like any child, they keep their state, and they stop in order.

use super::nodes::node;
use super::world::World;
use crate::service::{Phase, Service};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

/// How a run of the service under test ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Return,
    Panic,
}

/// A service that counts its runs, and ends when it is told how.
fn counting(runs: mpsc::UnboundedSender<u32>, ends: watch::Receiver<Option<End>>) -> Service {
    let state = (0_u32, runs, ends);
    Service::new(
        "the service under test",
        Phase::Front,
        state,
        |(count, runs, ends), mut stopped| {
            Box::pin(async move {
                *count += 1;
                let _ = runs.send(*count);
                tokio::select! {
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                    changed = ends.changed() => {
                        changed.unwrap();
                        assert!(!matches!(*ends.borrow(), Some(End::Panic)), "as told");
                    }
                }
            })
        },
    )
}

#[tokio::test(start_paused = true)]
async fn i6_a_service_that_ends_or_panics_is_restarted_alone_with_its_state() {
    let (runs, mut ran) = mpsc::unbounded_channel();
    let (end, ends) = watch::channel(None);
    let (world, _root) = World::with(vec![counting(runs, ends)]).await;
    let before = world.ids();
    assert_eq!(ran.recv().await, Some(1));
    for (times, how) in [(1, End::Return), (2, End::Panic), (3, End::Return)] {
        end.send_replace(Some(how));
        assert_eq!(ran.recv().await, Some(times + 1));
        world.restarted(u64::from(times)).await;
    }
    assert!(world.replaced(&before).is_empty());
    world.assert_it_works().await;
    end.send_replace(Some(End::Return));
    assert_eq!(
        world.fatal().await,
        "the service under test failed more than 3 times within a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn servers_stop_first_and_log_readers_last() {
    let (said, mut heard) = mpsc::unbounded_channel();
    let last = Service::new("a count", Phase::Last, said.clone(), |said, _| {
        let cut = Said(said.clone(), "the count was cut off");
        Box::pin(async move {
            let _cut = cut;
            std::future::pending::<()>().await;
        })
    });
    let front = Service::new("a server", Phase::Front, said.clone(), |said, mut stopped| {
        Box::pin(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
            let _ = said.send("the server learned of the stop");
        })
    });
    let log = Service::new("a reader", Phase::Log, said, |said, _| {
        let cut = Said(said.clone(), "the reader was cut off");
        Box::pin(async move {
            let _cut = cut;
            std::future::pending::<()>().await;
        })
    });
    let (world, root) = World::with(vec![front, log, last]).await;
    world.assert_it_works().await;
    root.stop_and_wait(None, None).await.unwrap();
    let mut first = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
    first.sort_unstable();
    assert_eq!(first, ["the count was cut off", "the server learned of the stop"]);
    assert_eq!(heard.recv().await, Some("the reader was cut off"));
    assert_eq!(world.health.borrow().restarts, 0);
}

/// Says something when it is dropped.
struct Said(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Said {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

#[tokio::test]
async fn i6_killed_services_restart_and_the_control_socket_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 0).await;
    UnixStream::connect(node.socket()).await.unwrap();
    let children = node.root.get_cell().get_children();
    let services = children
        .iter()
        .filter(|child| child.is_message_type_of::<()>() == Some(true));
    let mut killed = 0;
    for service in services {
        service.kill();
        killed += 1;
    }
    assert!(
        killed >= 5,
        "control server, SIGHUP, keys, upkeep, modes: {killed}"
    );
    let mut health = node.health.clone();
    let restarted = health.wait_for(|health| health.restarts == killed || health.fatal.is_some());
    assert_eq!(restarted.await.unwrap().fatal, None);
    // The new server binds after its actor has started.
    while UnixStream::connect(node.socket()).await.is_err() {
        tokio::task::yield_now().await;
    }
    let socket = node.socket().to_owned();
    node.stop().await;
    assert!(!socket.exists());
}
