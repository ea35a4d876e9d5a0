//! Measures how soon a viewer sees the first words of an answer while the daemon is busy with other sessions.

use crate::daemon::Bench;
use crate::drive::{Wanted, create_all, send};
use crate::report::{Report, Target};
use agentd_client::{Client, Push, Subscription};
use agentd_protocol::{AttachParams, Delta, EventBody, SessionId};
use anyhow::{Context as _, Result};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// A session that gets questions repeatedly, and its viewer.
#[derive(Debug)]
pub(crate) struct Probe {
    found: Arc<Mutex<Found>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Found {
    /// Milliseconds from sending the question.
    sent: Vec<f64>,
    /// Milliseconds from the moment at which the model server sent the words.
    said: Vec<f64>,
}

impl Probe {
    pub(crate) async fn start(bench: &Bench) -> Result<Self> {
        let client = bench.connect().await?;
        let wanted = Wanted {
            name: "probe".to_owned(),
            workdir: bench.workdir.clone(),
            prompt: None,
        };
        let created = create_all(&client, [wanted]).await?;
        let session = *created.keys().next().context("one was created")?;
        let params = AttachParams {
            session: session.to_string(),
            deltas: true,
            ..AttachParams::default()
        };
        let viewer = client.attach(&params).await?;
        let found = Arc::new(Mutex::new(Found::default()));
        let task = tokio::spawn(ask(client, session, viewer, Arc::clone(&found)));
        Ok(Self { found, task })
    }

    /// Ends the probe and adds its results to the report.
    pub(crate) fn end(self, report: &mut Report) {
        self.task.abort();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        report.put("first_delta.measured", found.said.len());
        report.percentiles("first_delta_ms.from_send", &mut found.sent, None::<Target>);
        report.percentiles("first_delta_ms.from_model", &mut found.said, None::<Target>);
    }
}

async fn ask(client: Client, session: SessionId, mut viewer: Subscription, found: Arc<Mutex<Found>>) {
    let mut ticks = tokio::time::interval(PAUSE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let begun = Instant::now();
        if send(&client, session, "plan:probe steps=0 text=@now_is_when;")
            .await
            .is_err()
        {
            return;
        }
        let Some(said) = answer(&mut viewer, begun).await else {
            return;
        };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.sent.push(said.0);
        found.said.push(said.1);
    }
}

/// Milliseconds to the first words, from the question and from the model server's answer. Waits for the end of the turn.
#[expect(
    clippy::disallowed_methods,
    reason = "two processes of one machine compare it"
)]
async fn answer(viewer: &mut Subscription, begun: Instant) -> Option<(f64, f64)> {
    let mut first = None;
    loop {
        match viewer.next().await? {
            Push::Delta(Delta::Text(fragment)) if first.is_none() => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
                let said = fragment.text.split_whitespace().next()?.parse().ok()?;
                let late = now.saturating_sub(Duration::from_micros(said));
                first = Some((
                    begun.elapsed().as_secs_f64() * 1_000.0,
                    late.as_secs_f64() * 1_000.0,
                ));
            }
            Push::Event(stored) => {
                let event: agentd_protocol::Event = serde_json::from_slice(&stored.json).ok()?;
                if matches!(event.body, EventBody::TurnFinished(_)) {
                    return first;
                }
            }
            _ => {}
        }
    }
}
