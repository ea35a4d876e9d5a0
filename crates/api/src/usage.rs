//! `usage.query`: tokens and money, from the list rows and the store's totals of deleted sessions.

use crate::api::Api;
use crate::reads::chosen;
use crate::sight::Caller;
use agentd_protocol::{Fault, Usage, UsageParams, UsageRow};
use agentd_store::{Filter, Spending};
use std::collections::BTreeMap;

const PAGE: u32 = 500;
/// The maximum number of groups in one answer; the rest is summed up in one.
const MAX_GROUPS: usize = 5_000;
const REST: &str = "(others)";
pub(crate) const NO_LABEL: &str = "(none)";
/// The group of all deleted sessions when grouping by session.
pub(crate) const REMOVED: &str = "(removed)";

impl Api {
    pub(crate) async fn usage(&self, who: &Caller, params: &UsageParams) -> Result<Vec<UsageRow>, Fault> {
        let by = params.by.as_deref().unwrap_or("model");
        let mut filter = Filter {
            all: true,
            labels: params.labels.carried(),
            limit: PAGE,
            ..Filter::default()
        };
        let mut groups = BTreeMap::new();
        loop {
            let rows = self.rows(who, filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                break;
            };
            for row in rows.into_iter().filter(|row| chosen(who, row, &params.labels)) {
                let summary = row.summary;
                let spent = Spending {
                    model: summary.model,
                    labels: summary.labels,
                    sessions: 1,
                    steps: summary.steps,
                    usage: summary.usage,
                    cost_usd: summary.cost_usd,
                };
                add(&mut groups, &spent, by, || summary.session.to_string());
            }
            filter.after = Some(last.into());
        }
        for spent in self.parts.backend.spent().await? {
            if params.labels.matches(&spent.labels) && who.sees(&spent.labels) {
                add(&mut groups, &spent, by, || REMOVED.to_owned());
            }
        }
        let mut rows: Vec<UsageRow> = groups.into_values().collect();
        rows.sort_by(|a, b| {
            b.cost_usd
                .total_cmp(&a.cost_usd)
                .then_with(|| a.group.cmp(&b.group))
        });
        Ok(rows)
    }
}

fn add(
    groups: &mut BTreeMap<String, UsageRow>,
    spent: &Spending,
    by: &str,
    session: impl FnOnce() -> String,
) {
    let mut group = match by {
        "model" => spent.model.clone(),
        "session" => session(),
        label => spent
            .labels
            .get(label)
            .cloned()
            .unwrap_or_else(|| NO_LABEL.to_owned()),
    };
    if groups.len() >= MAX_GROUPS && !groups.contains_key(&group) {
        group = REST.to_owned();
    }
    let row = groups.entry(group.clone()).or_insert_with(|| UsageRow {
        group,
        sessions: 0,
        steps: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
    });
    row.sessions = row.sessions.saturating_add(spent.sessions);
    row.steps = row.steps.saturating_add(spent.steps);
    row.usage = row.usage.plus(spent.usage);
    row.cost_usd += spent.cost_usd;
}
