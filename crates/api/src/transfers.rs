//! Records in a session's log that its changes are brought elsewhere: before it happens, and how it went. The audit file has both.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::sight::{Caller, Seen};
use agentd_protocol::{Fault, TransferFinished, TransferStarted};
use agentd_turn::{Command, Transfer};

impl Api {
    /// Carries out `work` if its beginning could be recorded. `outcome`: the number of files that changed, and the new commit.
    pub(crate) async fn transferred<T>(
        &self,
        who: &Caller,
        session: Seen,
        started: TransferStarted,
        work: impl Future<Output = Result<T, Fault>>,
        outcome: impl FnOnce(&T) -> (usize, Option<String>),
    ) -> Result<T, Fault> {
        let begin = Command::Transfer(Transfer::Started(started));
        let started = self.route(who, session, begin, None).await?.done().seq;
        let done = work.await;
        let (files, commit) = done.as_ref().map_or((0, None), outcome);
        let finished = TransferFinished {
            started,
            files: files as u64,
            commit,
            error: done.as_ref().err().map(|fault| fault.message.clone()),
        };
        let end = Command::Transfer(Transfer::Finished(finished));
        if let Err(fault) = self.route(who, session, end, None).await {
            tracing::warn!(%session, %fault, "could not record the outcome of a transfer");
        }
        done
    }
}
