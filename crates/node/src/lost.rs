//! Detects that a database has lost part of its log, by comparison with the audit file: a second witness.
//!
//! Invariant I1: acknowledged events never vanish silently. An operator accepts a loss, and the audit file records it.

use crate::audit_log::{Audit, last_cursor};
use crate::error::NodeError;
use agentd_audit::LOSS_ACCEPTED;
use agentd_protocol::{Principal, Timestamp};
use agentd_settings::Settings;
use agentd_store::Backend;
use serde_json::json;
use std::path::Path;

/// The audit file names at most this many lost sessions.
const NAMED: usize = 1_000;

/// Compares the log with the audit file.
///
/// # Errors
/// [`NodeError::Lost`] if the log ends before an event in the audit file, unless the operator accepts the loss. An I/O
/// error of the files.
pub(crate) fn check(
    settings: &Settings,
    logs: &Path,
    backend: &dyn Backend,
    accept: bool,
    now: Timestamp,
) -> Result<(), NodeError> {
    // A log in memory starts over with each start.
    if !settings.log.audit || settings.store.url.starts_with("memory:") {
        return Ok(());
    }
    let path = logs.join("audit.jsonl");
    let failed = |error| NodeError::path(&path, error);
    let log = *backend.committed().borrow();
    let audit = last_cursor(&path).map_err(failed)?.unwrap_or(0);
    let losses = backend.losses();
    if audit <= log && losses.is_empty() {
        return Ok(());
    }
    if !accept {
        return Err(NodeError::Lost { path, audit, log });
    }
    tracing::warn!(
        sessions = losses.len(),
        audit,
        log,
        "accepting the loss of events because of --accept-loss"
    );
    let named: Vec<_> = losses
        .iter()
        .take(NAMED)
        .map(|loss| json!({"session": loss.session, "had": loss.had, "has": loss.has}))
        .collect();
    let line = json!({
        "at": now, "who": Principal::agentd(), "event": LOSS_ACCEPTED, "why": "--accept-loss", "cursor": log,
        "what": {"sessions": losses.len(), "lost": named, "audit_cursor": audit},
    });
    let (max_bytes, keep) = (settings.log.max_bytes, settings.log.audit_files);
    let mut audit = Audit::open(&path, max_bytes, keep).map_err(failed)?;
    audit.write(&line).map_err(failed)
}
