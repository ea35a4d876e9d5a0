//! The state of the fleet, as the daemon tells it in one round of requests.

use agentd_client::{Client, ClientError};
use agentd_protocol::{ApprovalListParams, ListParams, Selector, SortBy, Spent, UsageParams};
use agentd_tui::Snapshot;

/// The rows that a table shows.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) sort: SortBy,
    pub(crate) ascending: bool,
    pub(crate) search: String,
    pub(crate) labels: Selector,
    pub(crate) rows: usize,
    /// Whether to read the totals of the whole fleet, too. The daemon goes through all sessions for them.
    pub(crate) spent: bool,
}

/// Asks the daemon for the state of the fleet.
pub(crate) async fn snapshot(client: &Client, shown: &Shown) -> Result<Snapshot, ClientError> {
    let list = ListParams {
        sort: shown.sort,
        ascending: shown.ascending,
        search: shown.search.clone(),
        labels: shown.labels.clone(),
        limit: u32::try_from(shown.rows).unwrap_or(u32::MAX),
        ..ListParams::default()
    };
    let inbox = ApprovalListParams {
        labels: shown.labels.clone(),
        ..ApprovalListParams::default()
    };
    let usage = UsageParams {
        labels: shown.labels.clone(),
        by: None,
    };
    let (status, rows, history, models, approvals, usage) = tokio::try_join!(
        client.status(),
        client.list(&list),
        client.fleet_history(),
        client.models(),
        client.approvals(&inbox),
        async {
            match shown.spent {
                true => client.usage(&usage).await.map(Some),
                false => Ok(None),
            }
        },
    )?;
    Ok(Snapshot {
        node: format!("agentd on {}", status.node),
        rows,
        counts: history.totals,
        models,
        approvals: approvals.len(),
        spent: usage.map(|rows| Spent {
            steps: rows.iter().map(|row| row.steps).sum(),
            usd: rows.iter().map(|row| row.cost_usd).sum(),
            ..Spent::default()
        }),
    })
}
