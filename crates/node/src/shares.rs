//! The shares of this node in the limits of the fleet's providers, renegotiated through the store.
//!
//! While the store does not answer, the node keeps its shares: the others count them until they take note of its end, and its
//! lease ends before that.

use agentd_actor_kit::{Handle, ModelMsg};
use agentd_store::{Demand, Fleet, largest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often.
const EVERY: Duration = Duration::from_secs(1);
/// How long a model client may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The negotiator.
#[derive(Debug)]
pub(crate) struct Shares {
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) models: BTreeMap<String, Handle<ModelMsg>>,
}

impl Shares {
    /// Runs until dropped.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            ticks.tick().await;
            let demands = self.demands().await;
            match self.fleet.share(&demands).await {
                Ok(shares) => {
                    failing = false;
                    for (demand, share) in demands.iter().zip(shares) {
                        if let Some(model) = self.models.get(&demand.provider) {
                            // If it is down, the next one gets its share with the next tick.
                            model.cast(ModelMsg::Share { share });
                        }
                    }
                }
                Err(_) if failing => {}
                Err(error) => {
                    tracing::warn!(%error, "could not renegotiate the shares of provider limits; keeping the last ones");
                    failing = true;
                }
            }
        }
    }

    /// What this node wants of each provider whose client answers. The others keep what they have.
    async fn demands(&self) -> Vec<Demand> {
        let mut demands = Vec::new();
        for (provider, model) in &self.models {
            let Ok(status) = model.call(PATIENCE, |done| ModelMsg::Status { done }).await else {
                continue;
            };
            demands.push(Demand {
                provider: provider.clone(),
                limit: status.limit,
                running: status.running,
                permits: status.permits,
                wants: largest(status.wants),
            });
        }
        demands
    }
}
