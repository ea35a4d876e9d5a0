//! Warns of models whose conversations are long and read nothing from the provider's prompt cache.

use crate::render::tokens;
use crate::verbs::doctor::Check;
use agentd_client::Client;
use agentd_protocol::{UsageParams, UsageRow};

/// A step with at least this many input tokens belongs to a conversation that should be cached.
const LONG: u64 = 20_000;

pub(super) async fn checks(client: &Client) -> Vec<Check> {
    let asked = UsageParams {
        by: Some("model".to_owned()),
        ..UsageParams::default()
    };
    let rows = client.usage(&asked).await.unwrap_or_default();
    rows.iter().filter_map(unread).collect()
}

/// Models without a price are left out: most are local, and their servers do not count what they cached.
fn unread(row: &UsageRow) -> Option<Check> {
    let per_step = row.usage.input.checked_div(row.steps)?;
    let cached = row.usage.cache_read > 0;
    if cached || row.steps < 2 || per_step < LONG || row.cost_usd <= 0.0 {
        return None;
    }
    let message = format!(
        "{} read nothing from its prompt cache: {} input tokens in {} steps",
        row.group,
        tokens(row.usage.input),
        row.steps
    );
    let fix = "the server, or a gateway in front of it, drops the cache marks or does not cache; see compat.prompt_cache in docs/models.md";
    Some(Check::warn("cache", message, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::Usage;

    fn row(steps: u64, input: u64, cache_read: u64, cost_usd: f64) -> UsageRow {
        UsageRow {
            group: "claude".to_owned(),
            sessions: 1,
            steps,
            usage: Usage {
                input,
                cache_read,
                ..Usage::default()
            },
            cost_usd,
        }
    }

    #[test]
    fn only_long_paid_conversations_without_cache_reads_are_named() {
        let found = unread(&row(10, 200_000, 0, 0.6)).unwrap();
        assert!(
            found.message.starts_with("claude read nothing"),
            "{}",
            found.message
        );
        for fine in [
            row(10, 199_999, 0, 0.6),
            row(10, 200_000, 1, 0.6),
            row(1, 200_000, 0, 0.6),
            row(10, 200_000, 0, 0.0),
            row(0, 0, 0, 0.0),
        ] {
            assert_eq!(unread(&fine), None);
        }
    }
}
