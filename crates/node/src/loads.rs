//! The load of this node, compared with that of the others: a new session may begin at a node that has less to do.

use agentd_actor_kit::{Handle, SupervisorMsg, ToolMsg};
use agentd_store::{Fleet, Load, better_elsewhere};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// How long an actor may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reports the load.
#[derive(Debug)]
pub(crate) struct Loads {
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) supervisor: Handle<SupervisorMsg>,
    pub(crate) tools: Handle<ToolMsg>,
    /// The most sessions in memory, and the most tool calls.
    pub(crate) limits: (u32, u32),
    /// The load, if new sessions should rather begin elsewhere.
    pub(crate) busier: watch::Sender<Option<u32>>,
}

impl Loads {
    /// Runs until dropped.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // An actor that does not answer has too much to do, or is being started again: the last report stays.
            let Some(load) = self.load().await else { continue };
            match self.fleet.report_load(load.sum()).await {
                Ok(least) => {
                    let busier = least.is_some_and(|least| better_elsewhere(load.sum(), least));
                    self.busier.send_replace(busier.then_some(load.sum()));
                }
                Err(error) => tracing::debug!(%error, "could not report the load of this node"),
            }
        }
    }

    async fn load(&self) -> Option<Load> {
        let supervisor = self
            .supervisor
            .call(PATIENCE, |done| SupervisorMsg::Stats { done });
        let tools = self.tools.call(PATIENCE, |done| ToolMsg::Load { done });
        let (sessions, calls) = (supervisor.await.ok()?.hot, tools.await.ok()?);
        let (most_sessions, most_calls) = self.limits;
        Some(Load {
            sessions: Load::part(sessions, most_sessions.into()),
            calls: Load::part(calls.running + calls.waiting, most_calls.into()),
            memory: memory().await.unwrap_or_default(),
        })
    }
}

/// The memory of the machine that is in use.
async fn memory() -> Option<u32> {
    let text = tokio::fs::read_to_string("/proc/meminfo").await.ok()?;
    used(&text)
}

fn used(text: &str) -> Option<u32> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (total, available) = (kib("MemTotal:")?, kib("MemAvailable:")?);
    Some(Load::part(total.saturating_sub(available), total))
}

#[cfg(test)]
mod tests {
    use super::used;

    #[test]
    fn memory_in_use_is_what_is_not_available() {
        let text = "MemTotal:       8000 kB\nMemFree:         100 kB\nMemAvailable:   6000 kB\n";
        assert_eq!(used(text), Some(250));
        assert_eq!(used("MemTotal: 8000 kB\n"), None);
    }
}
