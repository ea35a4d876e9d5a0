//! A database that has lost a part of its log, as the audit file sees it: the second witness beside the store's own.
//!
//! Invariant I1: what was acknowledged is not given up in silence. An operator accepts a loss, and the audit file says so.

use crate::error::NodeError;
use crate::scribe_audit::{Audit, last_cursor};
use agentd_audit::LOSS_ACCEPTED;
use agentd_protocol::{Principal, Timestamp};
use agentd_settings::Settings;
use agentd_store::Backend;
use serde_json::json;
use std::path::Path;

/// So many lost sessions are named in the audit file.
const NAMED: usize = 1_000;

/// Compares the log with the audit file.
///
/// # Errors
/// [`NodeError::Lost`] when the log ends before an event that the audit file has, unless that is accepted. The files cannot
/// be read or written.
pub(crate) fn check(
    settings: &Settings,
    logs: &Path,
    backend: &dyn Backend,
    accept: bool,
    now: Timestamp,
) -> Result<(), NodeError> {
    // A log in memory begins anew with each start.
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
        "the loss of events is accepted: --accept-loss"
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
