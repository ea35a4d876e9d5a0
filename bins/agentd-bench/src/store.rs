//! The daemon's statistics about its store.

use crate::daemon::Bench;
use crate::report::Report;
use anyhow::Result;
use serde_json::Value;

/// Appends and their batches since the daemon started.
pub(crate) async fn figures(bench: &Bench, report: &mut Report) -> Result<()> {
    let diagnostics = bench.client.diagnostics().await?;
    let Some(Value::Object(store)) = diagnostics.get("store") else {
        return Ok(());
    };
    for (name, value) in store {
        report.put(format!("store.{name}"), value.clone());
    }
    Ok(())
}
