//! Each session's slot for its process warden.

use agentd_protocol::SessionId;
use agentd_sandbox::{Bounds, Environment, Network, Sandboxing, WardenSlot, WardenSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A warden that is idle this long is ended, together with any processes that its commands left behind.
const IDLE: Duration = Duration::from_secs(30);
/// How long the end of a session waits for its processes to end.
const CLOSE_WITHIN: Duration = Duration::from_secs(20);

/// The slots of all sessions that run tools now or did recently.
#[derive(Debug)]
pub(crate) struct Wardens {
    exe: PathBuf,
    environment: Environment,
    sandboxing: Sandboxing,
    bounds: Bounds,
    network: Option<Network>,
    wardens: BTreeMap<SessionId, SessionWarden>,
    /// Slots that are being closed. The session's next one waits for it: both have the same temporary directory.
    ended: BTreeMap<SessionId, WardenSlot>,
}

#[derive(Debug)]
struct SessionWarden {
    slot: WardenSlot,
    workdir: PathBuf,
    /// Permits in use.
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
            wardens: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// The session's slot, for one more permit.
    pub(crate) fn lend(&mut self, session: SessionId, workdir: &Path) -> WardenSlot {
        if self
            .wardens
            .get(&session)
            .is_some_and(|place| place.workdir != workdir)
        {
            self.end(session);
        }
        let place = self.wardens.entry(session).or_insert_with(|| {
            let environment = self.environment.clone();
            let spec = WardenSpec {
                exe: self.exe.clone(),
                workdir: workdir.to_owned(),
                environment,
                bounds: self.bounds,
                network: self.network.clone(),
            };
            let slot = self.sandboxing.slot(spec, &session.to_string());
            SessionWarden {
                slot: match self.ended.remove(&session) {
                    Some(earlier) => slot.after(earlier),
                    None => slot,
                },
                workdir: workdir.to_owned(),
                permits: 0,
            }
        });
        place.permits += 1;
        place.slot.clone()
    }

    /// Takes a permit back.
    pub(crate) fn give_back(&mut self, session: SessionId) {
        if let Some(place) = self.wardens.get_mut(&session) {
            place.permits = place.permits.saturating_sub(1);
        }
    }

    /// Ends idle wardens. Returns whether any slots remain to check.
    pub(crate) fn sweep(&mut self) -> bool {
        self.wardens
            .retain(|_, place| !place.slot.release_idle(IDLE) || place.permits > 0);
        self.ended.retain(|_, slot| !slot.is_closed());
        !self.wardens.is_empty() || !self.ended.is_empty()
    }

    /// Ends everything that runs for an ended session (I5).
    pub(crate) fn end(&mut self, session: SessionId) {
        if let Some(place) = self.wardens.remove(&session) {
            self.ended.insert(session, place.slot.clone());
            tokio::spawn(async move {
                if !place.slot.close(CLOSE_WITHIN).await {
                    tracing::error!(%session, "processes of a closed session may still run");
                }
            });
        }
    }

    /// Ends all wardens and waits for them, at most `within`.
    pub(crate) async fn end_all(&mut self, within: Duration) {
        let mut ends = tokio::task::JoinSet::new();
        for (_, place) in std::mem::take(&mut self.wardens) {
            ends.spawn(async move { place.slot.close(within).await });
        }
        // Late wardens end by themselves: their sockets are closed.
        let _ = ends.join_all().await;
    }
}
