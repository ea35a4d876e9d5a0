//! Checks that the logs after a measurement are intact: a figure of a broken daemon is worthless.

use crate::report::Report;
use agentd_client::Client;
use agentd_protocol::{Event, EventBody, ExportParams, SessionId, ToolCallId};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;

/// The maximum number of logs to check.
const MOST: usize = 200;

/// Reads the logs of these sessions from the daemon and checks them. A damaged log is an error.
pub(crate) async fn logs(
    client: &Client,
    sessions: impl IntoIterator<Item = &SessionId>,
    report: &mut Report,
) -> Result<()> {
    let mut events = 0;
    let mut looked = 0;
    for session in sessions.into_iter().take(MOST) {
        let mut log = Log::default();
        loop {
            let params = ExportParams {
                session: session.to_string(),
                after_seq: log.seq,
                limit: 0,
            };
            let page = client.export(&params).await?;
            for line in &page.lines {
                log.take(&serde_json::from_str(line)?)?;
            }
            if page.lines.is_empty() || log.seq >= page.head {
                break;
            }
        }
        log.end(*session)?;
        events += log.seq;
        looked += 1;
    }
    report.put("logs_checked", looked);
    report.put("events_checked", events);
    Ok(())
}

/// The invariants of a log.
#[derive(Debug, Default)]
struct Log {
    seq: u64,
    /// Proposed calls: whether each has started, and the number of its results.
    calls: BTreeMap<ToolCallId, (bool, u32)>,
    open: bool,
}

impl Log {
    fn take(&mut self, event: &Event) -> Result<()> {
        let at = (event.session, event.seq);
        ensure!(event.seq == self.seq + 1, "{at:?}: the log has a gap before it");
        self.seq = event.seq;
        match &event.body {
            EventBody::TurnStarted(_) => self.open = true,
            EventBody::ToolProposed(call) => {
                ensure!(
                    self.calls.insert(call.tool_call, (false, 0)).is_none(),
                    "{at:?}: proposed twice"
                );
            }
            EventBody::ToolStarted(call) => {
                let known = self.calls.get_mut(&call.tool_call);
                ensure!(
                    known.is_some_and(|call| !std::mem::replace(&mut call.0, true)),
                    "{at:?}: started twice"
                );
            }
            EventBody::ToolFinished(call) => {
                let known = self.calls.get_mut(&call.tool_call);
                ensure!(known.is_some(), "{at:?}: a result without a call");
                if let Some((_, results)) = known {
                    *results += 1;
                    ensure!(*results == 1, "{at:?}: a second result");
                }
            }
            EventBody::TurnFinished(_) => self.open = false,
            _ => {}
        }
        Ok(())
    }

    fn end(&self, session: SessionId) -> Result<()> {
        if !self.open {
            let without = self.calls.iter().find(|(_, (_, results))| *results == 0);
            ensure!(
                without.is_none(),
                "{session}: a call without a result: {without:?}"
            );
        }
        Ok(())
    }
}
