//! Records in a session's log that its changes are brought elsewhere: before it happens, and how it went. The audit file has both.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::sight::{Caller, Seen};
use agentd_protocol::{Fault, TransferFinished, TransferStarted};
use agentd_turn::{Command, Transfer};
use std::sync::Arc;

impl Api {
    /// Carries out `work` if its beginning could be recorded. `outcome`: the number of files that changed, and the new commit.
    /// A transfer goes on to its recorded end, also when the client leaves.
    pub(crate) async fn transferred<T: Send + 'static>(
        self: &Arc<Self>,
        who: &Caller,
        session: Seen,
        started: TransferStarted,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
        outcome: impl FnOnce(&T) -> (usize, Option<String>) + Send + 'static,
    ) -> Result<T, Fault> {
        let (api, who) = (Arc::clone(self), who.clone());
        let task = tokio::spawn(async move {
            let begin = Command::Transfer(Transfer::Started(started));
            let started = api.route(&who, session, begin, None).await?.done().seq;
            let done = work.await;
            let (files, commit) = done.as_ref().map_or((0, None), outcome);
            let finished = TransferFinished {
                started,
                files: files as u64,
                commit,
                error: done.as_ref().err().map(|fault| fault.message.clone()),
            };
            let end = Command::Transfer(Transfer::Finished(finished));
            if let Err(fault) = api.route(&who, session, end, None).await {
                tracing::warn!(%session, %fault, "could not record the outcome of a transfer");
            }
            done
        });
        task.await
            .unwrap_or_else(|error| Err(Fault::internal("transfer_failed", error.to_string())))
    }
}
