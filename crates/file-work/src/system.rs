//! The state of one file system: its calls, and whether it responds. Pure: the caller passes the time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// After this time a call triggers a probe of whether the file system responds at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// A file system that leaves a probe unanswered for this long does not respond.
pub(crate) const PROBE_WITHIN: Duration = Duration::from_secs(5);
/// A call whose thread the kernel holds after this time is reported as hanging, although its caller still waits.
const HELD: Duration = Duration::from_secs(10);

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) requester: Arc<str>,
    pub(crate) path: PathBuf,
    pub(crate) since: Instant,
    /// The caller stopped waiting.
    pub(crate) abandoned: bool,
    /// The number of its thread, once it runs.
    thread: Option<i32>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    next: u64,
    calls: BTreeMap<u64, Call>,
    /// The start of the current probe; absent if there is none.
    probe: Option<Instant>,
}

impl State {
    pub(crate) fn begin(&mut self, requester: &Arc<str>, path: &Path, now: Instant) -> u64 {
        self.next += 1;
        let call = Call {
            requester: Arc::clone(requester),
            path: path.to_owned(),
            since: now,
            abandoned: false,
            thread: None,
        };
        self.calls.insert(self.next, call);
        self.next
    }

    /// The call runs on this thread.
    pub(crate) fn runs(&mut self, call: u64, thread: i32) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.thread = Some(thread);
        }
    }

    /// The caller stopped waiting for the call. Its thread may hang.
    pub(crate) fn abandon(&mut self, call: u64) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.abandoned = true;
        }
    }

    /// The call's thread is free again.
    pub(crate) fn end(&mut self, call: u64) {
        self.calls.remove(&call);
    }

    /// Whether to start a probe: none is under way.
    pub(crate) fn wants_probe(&mut self, now: Instant) -> bool {
        let wanted = self.probe.is_none();
        self.probe.get_or_insert(now);
        wanted
    }

    pub(crate) fn probe_ended(&mut self) {
        self.probe = None;
    }

    /// When the unanswered probe started, if the file system does not respond.
    pub(crate) fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.probe
            .filter(|asked| now.saturating_duration_since(*asked) >= PROBE_WITHIN)
    }

    /// When to check again whether it responds.
    pub(crate) fn next_look(&self, now: Instant) -> Instant {
        let probed = self.probe.map(|asked| asked + PROBE_WITHIN);
        probed.filter(|at| *at > now).unwrap_or(now + PATIENCE)
    }

    /// The number of hanging calls: of one requester, and of all.
    pub(crate) fn stuck(&self, requester: &str, now: Instant) -> (usize, usize) {
        let stuck = self.hanging(now);
        let own = stuck.iter().filter(|call| call.requester.as_ref() == requester);
        (own.count(), stuck.len())
    }

    /// Abandoned calls that have been running for a while.
    pub(crate) fn hanging(&self, now: Instant) -> Vec<&Call> {
        let late = |call: &&Call| call.abandoned && now.saturating_duration_since(call.since) >= PATIENCE;
        self.calls.values().filter(late).collect()
    }

    /// The calls to report: hanging ones, and those whose threads the kernel holds for long, as `is_held` tells. A frozen file
    /// system holds what writes, and answers probes.
    pub(crate) fn reported(&self, now: Instant, is_held: impl Fn(i32) -> bool) -> Vec<&Call> {
        let age = |call: &Call| now.saturating_duration_since(call.since);
        let held = |call: &Call| age(call) >= HELD && call.thread.is_some_and(&is_held);
        let late = |call: &Call| call.abandoned && age(call) >= PATIENCE;
        self.calls
            .values()
            .filter(|call| late(call) || held(call))
            .collect()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.probe.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn i6_a_file_system_is_unresponsive_from_a_late_probe_until_it_ends() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut state = State::default();
        assert_eq!(state.next_look(start), at(5));
        assert!(state.wants_probe(at(5)) && !state.wants_probe(at(6)));
        assert_eq!(state.next_look(at(6)), at(10));
        assert_eq!(
            (state.silent_since(at(9)), state.silent_since(at(10))),
            (None, Some(at(5)))
        );
        state.probe_ended();
        assert!(state.silent_since(at(99)).is_none() && state.is_idle());
    }

    #[tokio::test]
    async fn i6_a_call_that_the_kernel_holds_is_reported_while_its_caller_waits() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut state = State::default();
        let me: Arc<str> = "me".into();
        let (held, busy) = (
            state.begin(&me, Path::new("/held"), start),
            state.begin(&me, Path::new("/busy"), start),
        );
        state.begin(&me, Path::new("/waits for its thread"), start);
        state.runs(held, 7);
        state.runs(busy, 8);
        let paths = |state: &State, seconds| -> Vec<PathBuf> {
            let calls = state.reported(at(seconds), |thread| thread == 7);
            calls.into_iter().map(|call| call.path.clone()).collect()
        };
        assert_eq!(paths(&state, 9), Vec::<PathBuf>::new());
        assert_eq!(paths(&state, 10), [PathBuf::from("/held")]);
        assert_eq!(state.stuck("me", at(60)), (0, 0), "it keeps nobody from trying");
        state.abandon(busy);
        assert_eq!(paths(&state, 10).len(), 2);
        state.end(held);
        assert_eq!(paths(&state, 60), [PathBuf::from("/busy")]);
    }

    #[tokio::test]
    async fn an_abandoned_call_hangs_while_its_thread_runs() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (me, other): (Arc<str>, Arc<str>) = ("me".into(), "other".into());
        let mut state = State::default();
        let mine = state.begin(&me, Path::new("/a"), start);
        let theirs = state.begin(&other, Path::new("/b"), start);
        assert_eq!(state.stuck("me", at(60)), (0, 0), "somebody waits");
        state.abandon(mine);
        state.abandon(theirs);
        assert_eq!(state.stuck("me", at(1)), (0, 0), "it may end soon");
        assert_eq!(state.stuck("me", at(5)), (1, 2));
        state.end(mine);
        state.end(theirs);
        assert!(state.is_idle());
    }
}
