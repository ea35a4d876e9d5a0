//! A watcher of the loop in debug builds: it checks the invariants from outside, at every append, every request and every
//! run of a tool. Release builds watch nothing.

use agentd_protocol::{CallId, Event, Seq, ToolCallId};
use agentd_turn::{Held, Witness};

/// Watches the log of one loop.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// `None`: this is a release build, or another program wrote the log, and it breaks invariants that only our own logs
    /// have to keep.
    witness: Option<Box<Witness>>,
}

impl Watched {
    /// Watches a log from its beginning.
    pub(crate) fn new() -> Self {
        let witness = cfg!(debug_assertions).then(Box::default);
        Self { witness }
    }

    /// Checks an event that was already in the log.
    pub(crate) fn learn(&mut self, event: &Event) {
        if let Some(Err(violation)) = self.witness.as_mut().map(|witness| witness.see(event)) {
            tracing::warn!(session = %event.session, seq = event.seq, %violation, "the log was not written by this version");
            self.witness = None;
        }
    }

    /// Checks an event that this loop decided.
    pub(crate) fn see(&mut self, event: &Event) {
        self.expect(|witness| witness.see(event));
    }

    /// Checks a request that goes to the model.
    pub(crate) fn asks_model(&mut self, call: CallId, attempt: u32) {
        self.expect(|witness| witness.asks_model(call, attempt));
    }

    /// Checks a run of a tool, while the log is durable up to `durable`.
    pub(crate) fn runs_tool(&mut self, call: ToolCallId, durable: Seq) {
        self.expect(|witness| witness.runs_tool(call, durable));
    }

    fn expect(&mut self, ask: impl FnOnce(&mut Witness) -> Held) {
        if let Some(Err(violation)) = self.witness.as_deref_mut().map(ask) {
            self.witness = None;
            debug_assert!(false, "{violation}");
        }
    }
}
