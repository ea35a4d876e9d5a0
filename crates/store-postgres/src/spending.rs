//! Deleting a session, and the sums of what deleted sessions spent.

use crate::queries::{all, change, count_of, first, get};
use agentd_protocol::{SessionId, Summary, Timestamp, Usage};
use agentd_store::backend::{column, hex};
use agentd_store::{Spending, StoreError};
use deadpool_postgres::Object;
use std::collections::BTreeSet;

/// How often a session may change while it is being deleted.
const TRIES: u32 = 20;

/// The session must be as it was read, so that the sum contains all that it spent.
const DELETE: &str = "WITH gone AS (
  UPDATE session SET deleted_ms = $2, epoch = epoch + 1, owner = NULL,
    own_sum = cells_sum_1(uid, (epoch + 1)::text, created_ms::text, $2::bigint::text)
  WHERE uid = $1 AND (deleted_ms IS NULL OR own_sum IS DISTINCT FROM own_sum_1(session)) AND head = $3 AND epoch = $4 RETURNING id)";

const SPENT_BY: &str = "SELECT summary, head, epoch FROM session
  WHERE uid = $1 AND (deleted_ms IS NULL OR own_sum IS DISTINCT FROM own_sum_1(session))";

fn labels(spent: &Spending) -> String {
    serde_json::to_string(&spent.labels).unwrap_or_default()
}

pub(crate) async fn delete(client: Object, session: SessionId, now: Timestamp) -> Result<bool, StoreError> {
    let (uid, now) = (hex(session), column(now.0));
    for _ in 0..TRIES {
        let Some(row) = first(&client, SPENT_BY, &[&uid]).await? else {
            return Ok(false);
        };
        let (head, epoch): (i64, i64) = (get(&row, 1)?, get(&row, 2)?);
        // An unreadable row must not prevent a user from deleting the session.
        let summary: Option<Summary> =
            get::<Option<&str>>(&row, 0)?.and_then(|json| serde_json::from_str(json).ok());
        let spent = summary.as_ref().map(Spending::of);
        let deleted = match spent.filter(|spent| !spent.is_nothing()) {
            None => {
                let sql = format!("{DELETE} SELECT id FROM gone");
                all(&client, &sql, &[&uid, &now, &head, &epoch]).await?.len() as u64
            }
            Some(spent) => {
                let spent = placed(&client, spent).await?;
                let sql = format!(
                    "{DELETE} INSERT INTO spent(model, labels, sessions, steps, input, output, cache_read, cache_write, cache_write_1h,
                       reasoning, usd)
                     SELECT $5::text, $6::text, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint,
                       $13::bigint, $14::bigint, $15::double precision FROM gone
                     ON CONFLICT (model, labels) DO UPDATE SET sessions = spent.sessions + excluded.sessions,
                     steps = spent.steps + excluded.steps, input = spent.input + excluded.input,
                     output = spent.output + excluded.output, cache_read = spent.cache_read + excluded.cache_read,
                     cache_write = spent.cache_write + excluded.cache_write,
                     cache_write_1h = spent.cache_write_1h + excluded.cache_write_1h,
                     reasoning = spent.reasoning + excluded.reasoning, usd = spent.usd + excluded.usd"
                );
                let usage = &spent.usage;
                let numbers = [
                    spent.sessions,
                    spent.steps,
                    usage.input,
                    usage.output,
                    usage.cache_read,
                    usage.cache_write,
                    usage.cache_write_1h,
                    usage.reasoning,
                ]
                .map(column);
                let (model, labels) = (crate::batch::clean(&spent.model), labels(&spent));
                let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
                    vec![&uid, &now, &head, &epoch, &model, &labels];
                params.extend(
                    numbers
                        .iter()
                        .map(|number| number as &(dyn tokio_postgres::types::ToSql + Sync)),
                );
                params.push(&spent.cost_usd);
                change(&client, &sql, &params).await?
            }
        };
        if deleted > 0 {
            return Ok(true);
        }
    }
    Err(StoreError::Busy("the session changes all the time"))
}

/// The sum to add to. The limits are soft: two deletions at once may both see room for one more.
async fn placed(client: &Object, spent: Spending) -> Result<Spending, StoreError> {
    let rows = all(
        client,
        "SELECT labels, model FROM spent WHERE model = $1",
        &[&spent.model],
    )
    .await?;
    let known: Vec<(String, String)> = rows
        .iter()
        .map(|row| Ok::<_, StoreError>((get(row, 0)?, get(row, 1)?)))
        .collect::<Result<_, _>>()?;
    let known: BTreeSet<(String, String)> = known.into_iter().collect();
    let sums = first(client, "SELECT count(*) FROM spent", &[]).await?;
    let sums = sums.map_or(Ok(0), |row| count_of(&row, 0))?;
    spent.placed(usize::try_from(sums).unwrap_or(usize::MAX), |spent| {
        Ok(known.contains(&(labels(spent), spent.model.clone())))
    })
}

pub(crate) async fn read(client: Object) -> Result<Vec<Spending>, StoreError> {
    let sql = "SELECT model, labels, sessions, steps, input, output, cache_read, cache_write, cache_write_1h, reasoning,
         usd FROM spent WHERE sum = sum_1(spent) ORDER BY model, labels";
    let rows = all(&client, sql, &[]).await?;
    let sums = rows.iter().map(|row| {
        Ok(Spending {
            model: get(row, 0)?,
            labels: serde_json::from_str(get(row, 1)?).unwrap_or_default(),
            sessions: count_of(row, 2)?,
            steps: count_of(row, 3)?,
            usage: Usage {
                input: count_of(row, 4)?,
                output: count_of(row, 5)?,
                cache_read: count_of(row, 6)?,
                cache_write: count_of(row, 7)?,
                cache_write_1h: count_of(row, 8)?,
                reasoning: count_of(row, 9)?,
            },
            cost_usd: get(row, 10)?,
        })
    });
    sums.collect()
}
