//! `usage.query`: tokens and money, from the list rows.

use crate::api::Api;
use agentd_protocol::{Fault, Summary, Usage, UsageParams, UsageRow};
use agentd_store::Filter;
use std::collections::BTreeMap;

const PAGE: u32 = 500;
/// Groups of one answer; the rest is summed up in one.
const MAX_GROUPS: usize = 5_000;
const REST: &str = "(others)";
const NO_LABEL: &str = "(none)";

impl Api {
    pub(crate) async fn usage(&self, params: &UsageParams) -> Result<Vec<UsageRow>, Fault> {
        let by = params.by.as_deref().unwrap_or("model");
        let mut filter = Filter {
            all: true,
            labels: params.labels.clone(),
            limit: PAGE,
            ..Filter::default()
        };
        let mut groups = BTreeMap::new();
        loop {
            let rows = self.rows(filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                break;
            };
            for row in rows {
                add(&mut groups, &row.summary, by);
            }
            filter.after = Some(last);
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

fn add(groups: &mut BTreeMap<String, UsageRow>, summary: &Summary, by: &str) {
    let mut group = match by {
        "model" => summary.model.clone(),
        "session" => summary.session.to_string(),
        label => summary
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
    row.sessions += 1;
    row.steps = row.steps.saturating_add(summary.steps);
    row.usage = row.usage.plus(summary.usage);
    row.cost_usd += summary.cost_usd;
}
