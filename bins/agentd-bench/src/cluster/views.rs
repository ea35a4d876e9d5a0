//! What clients of one node see of sessions of another.

use super::Cluster;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::report::{Report, Target};
use agentd_client::{Push, Subscription};
use agentd_protocol::{AttachParams, Event, ListParams, SessionId};
use anyhow::Result;
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// The time between two followed sessions. Each writes 70 events, so that there are about 1,000 in a second.
const EVERY: Duration = Duration::from_millis(70);
/// Measured lists.
const LISTS: u32 = 100;

/// When each event of a session came.
type Came = JoinHandle<Vec<(u64, Instant)>>;

/// Two viewers of each session, one at its node and one at another: how much later the second one gets an event.
pub(super) async fn behind(cluster: &Cluster, sessions: u32, report: &mut Report) -> Result<()> {
    let (owner, other) = (cluster.node(0)?, cluster.node(1)?);
    let mut watch = Watcher::start(owner).await?;
    let wanted: Vec<Wanted> = (0..sessions)
        .map(|n| Wanted {
            name: format!("v{n}"),
            workdir: owner.workdir.clone(),
            prompt: None,
        })
        .collect();
    let sessions: Vec<SessionId> = create_all(&owner.client, wanted).await?.into_keys().collect();
    let mut viewers = Vec::new();
    for session in &sessions {
        viewers.push((view(owner, *session).await?, view(other, *session).await?));
    }
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let begun = Instant::now();
    let sending = sessions.iter().enumerate().map(|(n, session)| {
        let plan = format!("plan:v{n} steps=10 tool=read;");
        (session, plan)
    });
    let mut sent = Vec::new();
    for (session, plan) in sending {
        ticks.tick().await;
        let (client, session) = (owner.client.clone(), *session);
        sent.push(tokio::spawn(async move {
            crate::drive::send(&client, session, &plan).await
        }));
    }
    for sent in sent {
        sent.await??;
    }
    watch.until_each(&sessions, 1).await?;
    let took = begun.elapsed().as_secs_f64();
    let (mut later, mut events) = (Vec::new(), 0);
    for (here, there) in viewers {
        let here: HashMap<u64, Instant> = here.await?.into_iter().collect();
        for (seq, came) in there.await? {
            events += 1;
            if let Some(first) = here.get(&seq) {
                let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
                later.push(millis(came.saturating_duration_since(*first)));
            }
        }
    }
    report.number("other_node.events_per_second", f64::from(events) / took);
    report.percentiles("other_node.behind_ms", &mut later, Some(Target::AtMost(20.0)));
    Ok(())
}

/// Follows a session until its turn has ended.
async fn view(node: &Bench, session: SessionId) -> Result<Came> {
    let client = node.connect().await?;
    let params = AttachParams {
        session: session.to_string(),
        ..AttachParams::default()
    };
    let mut news: Subscription = client.attach(&params).await?;
    Ok(tokio::spawn(async move {
        let _connection = client;
        let mut came = Vec::new();
        while let Some(push) = news.next().await {
            let Push::Event(stored) = push else { continue };
            let now = Instant::now();
            let Ok(event) = serde_json::from_slice::<Event>(&stored.json) else {
                continue;
            };
            came.push((event.seq, now));
            if matches!(event.body, agentd_protocol::EventBody::TurnFinished(_)) {
                break;
            }
        }
        came
    }))
}

/// Idle sessions over all nodes: the memory of each node, and pages of the list.
pub(super) async fn idle(cluster: &Cluster, sessions: u32, report: &mut Report) -> Result<()> {
    let share = sessions / u32::try_from(cluster.nodes.len())?;
    let begun = Instant::now();
    let creating = cluster.nodes.iter().enumerate().map(|(number, node)| {
        let wanted = (0..share).map(move |n| Wanted {
            name: format!("idle{number}.{n}"),
            workdir: node.workdir.clone(),
            prompt: None,
        });
        create_all(&node.client, wanted)
    });
    try_join_all(creating).await?;
    report.number(
        "idle.create_per_second",
        f64::from(sessions) / begun.elapsed().as_secs_f64(),
    );
    let most = (sessions == 100_000).then_some(Target::AtMost(100.0));
    for (number, node) in cluster.nodes.iter().enumerate() {
        crate::drive::cold(node).await?;
        report.maybe(format!("idle.rss_mb.node{number}"), node.usage()?.rss_mb, most);
    }
    let page = ListParams {
        limit: 100,
        ..ListParams::default()
    };
    let mut took = Vec::new();
    for _ in 0..LISTS {
        let begun = Instant::now();
        cluster.node(1)?.client.list(&page).await?;
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    report.percentiles("list_100_ms", &mut took, Some(Target::AtMost(10.0)));
    Ok(())
}
