//! The shares of the nodes in the limits of providers.

use crate::error::store_error;
use crate::queries::get;
use agentd_store::{Demand, Held, Share, StoreError, Want, calls, share};
use deadpool_postgres::Object;
use std::collections::HashMap;
use tokio_postgres::Row;

/// The key of the lock under which a node changes its shares.
const LOCK: i64 = 0x6167_7464_0002;
/// For how many seconds the remainders of a division stay with the same nodes.
const TURN: i64 = 5;

/// A node that others took note of as gone starts no more calls: its lease ended before. What it held is free.
const FORGET: &str =
    "DELETE FROM provider_share USING node WHERE node.id = provider_share.node AND node.dead";

const OTHERS: &str = "SELECT provider, node, wanted, permits, wants FROM provider_share WHERE node <> $1";

const NOW: &str = "SELECT extract(epoch FROM clock_timestamp())::bigint";

const KEEP: &str = "INSERT INTO provider_share(provider, node, wanted, permits, wants)
  SELECT provider, $1, wanted, permits, wants
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[]) AS mine(provider, wanted, permits, wants)
  ON CONFLICT (provider, node) DO UPDATE
    SET wanted = excluded.wanted, permits = excluded.permits, wants = excluded.wants";

/// Replaces this node's shares, and returns them in the order of the demands.
pub(crate) async fn replace(
    mut client: Object,
    me: i64,
    demands: Vec<Demand>,
) -> Result<Vec<Share>, StoreError> {
    let failed = |error| store_error(&error);
    let change = client.transaction().await.map_err(failed)?;
    change
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .map_err(failed)?;
    change.execute(FORGET, &[]).await.map_err(failed)?;
    let mut others: HashMap<String, Vec<Held>> = HashMap::new();
    for row in change.query(OTHERS, &[&me]).await.map_err(failed)? {
        let (provider, held) = held(&row)?;
        others.entry(provider).or_default().push(held);
    }
    let now: i64 = get(&change.query_one(NOW, &[]).await.map_err(failed)?, 0)?;
    let turn = u64::try_from(now / TURN).unwrap_or(0);
    let own = u64::try_from(me).unwrap_or(0);
    let shares = demands.iter().map(|demand| {
        let others = others.get(&demand.provider).map_or(&[][..], Vec::as_slice);
        share(own, demand, others, turn)
    });
    let shares: Vec<Share> = shares.collect();
    let providers: Vec<&str> = demands.iter().map(|demand| demand.provider.as_str()).collect();
    let wanted: Vec<i64> = demands.iter().map(|demand| calls(&demand.wants).into()).collect();
    let kept: Vec<i64> = shares.iter().map(|share| share.held.into()).collect();
    let wants = demands
        .iter()
        .map(|demand| serde_json::json!(demand.wants).to_string());
    let wants: Vec<String> = wants.collect();
    change
        .execute(KEEP, &[&me, &providers, &wanted, &kept, &wants])
        .await
        .map_err(failed)?;
    change.commit().await.map_err(failed)?;
    Ok(shares)
}

fn held(row: &Row) -> Result<(String, Held), StoreError> {
    let number = |index| get::<i64>(row, index);
    let count = |index| number(index).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let mut wants: Vec<Want> = serde_json::from_str(&get::<String>(row, 4)?).unwrap_or_default();
    let calls = count(2)?;
    if wants.is_empty() && calls > 0 {
        // A node of an earlier version states only the sum.
        wants.push(Want {
            background: false,
            group: String::new(),
            weight: 1_000,
            calls,
        });
    }
    let held = Held {
        node: u64::try_from(number(1)?).unwrap_or(0),
        wants,
        permits: count(3)?,
    };
    Ok((get(row, 0)?, held))
}
