//! Each session's place for its process warden.

use agentd_protocol::SessionId;
use agentd_sandbox::{Bounds, Environment, Network, Sandboxing, WardenSlot, WardenSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A warden that ran nothing for so long is let go, with what its commands left behind.
const IDLE: Duration = Duration::from_secs(30);
/// How long the end of a session waits for its processes to be gone.
const CLOSE_WITHIN: Duration = Duration::from_secs(20);

/// The places of all sessions that run tools now or did so lately.
#[derive(Debug)]
pub(crate) struct Wardens {
    exe: PathBuf,
    environment: Environment,
    sandboxing: Sandboxing,
    bounds: Bounds,
    network: Option<Network>,
    places: BTreeMap<SessionId, Place>,
}

#[derive(Debug)]
struct Place {
    slot: WardenSlot,
    workdir: PathBuf,
    /// Permits that are out.
    permits: u32,
}

impl Wardens {
    pub(crate) fn new(
        exe: PathBuf,
        environment: Environment,
        sandboxing: Sandboxing,
        (bounds, network): (Bounds, Option<Network>),
    ) -> Self {
        Self {
            exe,
            environment,
            sandboxing,
            bounds,
            network,
            places: BTreeMap::new(),
        }
    }

    /// The session's place, for one more permit.
    pub(crate) fn lend(&mut self, session: SessionId, workdir: &Path) -> WardenSlot {
        if self
            .places
            .get(&session)
            .is_some_and(|place| place.workdir != workdir)
        {
            self.end(session);
        }
        let place = self.places.entry(session).or_insert_with(|| {
            let environment = self.environment.clone();
            let spec = WardenSpec {
                exe: self.exe.clone(),
                workdir: workdir.to_owned(),
                environment,
                bounds: self.bounds,
                network: self.network.clone(),
            };
            Place {
                slot: self.sandboxing.slot(spec, &session.to_string()),
                workdir: workdir.to_owned(),
                permits: 0,
            }
        });
        place.permits += 1;
        place.slot.clone()
    }

    /// A permit came back.
    pub(crate) fn give_back(&mut self, session: SessionId) {
        if let Some(place) = self.places.get_mut(&session) {
            place.permits = place.permits.saturating_sub(1);
        }
    }

    /// Lets idle wardens go. Whether there are places left to look at.
    pub(crate) fn sweep(&mut self) -> bool {
        self.places
            .retain(|_, place| !place.slot.release_idle(IDLE) || place.permits > 0);
        !self.places.is_empty()
    }

    /// The session ended: so does everything that runs for it (I5).
    pub(crate) fn end(&mut self, session: SessionId) {
        if let Some(place) = self.places.remove(&session) {
            tokio::spawn(async move {
                if !place.slot.close(CLOSE_WITHIN).await {
                    tracing::error!(%session, "processes of a session that ended may still run");
                }
            });
        }
    }

    /// Ends all of them and waits until they are gone, at most `within`.
    pub(crate) async fn end_all(&mut self, within: Duration) {
        let mut ends = tokio::task::JoinSet::new();
        for (_, place) in std::mem::take(&mut self.places) {
            ends.spawn(async move { place.slot.close(within).await });
        }
        // Wardens that are late end by themselves: their sockets are closed.
        let _ = ends.join_all().await;
    }
}
