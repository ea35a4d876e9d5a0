//! The membership in the fleet, on a connection of its own: a sign of life never waits behind anything else.

use crate::adopted::Adopted;
use crate::error::store_error;
use crate::keys;
use crate::placement::{away, labels_of, quoted};
use crate::queries::{all, change, count_of, first, get, session_of};
use crate::reads::Reads;
use crate::server::Server;
use crate::shares;
use agentd_protocol::{FleetNode, Labels, Placing, SessionId, Timestamp};
use agentd_store::backend::{hex, size};
use agentd_store::{
    Away, Beat, Claim, Demand, Fleet, Incarnation, Joining, KnownKey, Orphans, Owner, Share, StoreError,
    Stranded, WORTH_IT,
};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

/// Extends the lease, also an expired one: until another node has marked this one as dead, it still owns its sessions.
const RENEW: &str = "UPDATE node SET lease_until = clock_timestamp() + $2 * interval '1 ms'
  WHERE id = $1 AND NOT dead RETURNING standing, (SELECT (extract(epoch FROM min(lease_until) - clock_timestamp()) * 1000)::bigint
    FROM node WHERE id <> $1 AND NOT dead AND lease_until > clock_timestamp())";

/// Takes note of nodes that are gone. After a restart of the server all may first renew.
const REAP: &str = "UPDATE node SET dead = true WHERE id IN (
    SELECT id FROM node WHERE id <> $1 AND NOT dead AND lease_until < clock_timestamp() FOR UPDATE SKIP LOCKED)
  AND lease_until < clock_timestamp()
  AND clock_timestamp() > pg_postmaster_start_time() + $2 * interval '1 ms' RETURNING name";

/// Most of the time there are none. It looks at the owners and not at all sessions with open work: a node asks
/// with each sign of life. The sum of the epochs changes with the sessions, and that of the ids with the nodes.
const ORPHANS: &str = "SELECT count(*), coalesce(sum(f.epoch), 0)::bigint
    + (SELECT coalesce(sum(id * 2 + (standing = 'open')::int), 0)::bigint FROM node WHERE NOT dead) * 1000003
  FROM (SELECT s.epoch FROM session s WHERE s.owner IS NULL
      AND (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL AND s.summary IS NOT NULL
    UNION ALL SELECT s.epoch FROM node n JOIN session s ON s.owner = n.id WHERE n.dead
      AND (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL AND s.summary IS NOT NULL) AS f";

const STRANDED: &str = "SELECT s.uid, home_1(r.summary, r.node), workdir_1(s.summary), s.updated_ms,
    CASE WHEN EXISTS (SELECT 1 FROM node l WHERE NOT l.dead AND l.standing = 'open' AND requires_1(r.summary) <@ l.labels)
      THEN '' ELSE requires_1(r.summary)::text END
  FROM session s JOIN session r ON r.uid = s.root LEFT JOIN node n ON n.id = s.owner
  WHERE (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL AND s.summary IS NOT NULL
    AND (s.owner IS NULL OR n.id IS NULL OR n.dead)
    AND NOT EXISTS (SELECT 1 FROM session t JOIN node o ON o.id = t.owner
                    WHERE t.root = s.root AND t.deleted_ms IS NULL AND NOT o.dead AND may_run_1(o.id, s.root))
    AND NOT EXISTS (SELECT 1 FROM node l WHERE NOT l.dead AND l.standing = 'open' AND may_run_1(l.id, s.root))
  LIMIT 10000";

const HOST: &str = "SELECT n.name, n.address, n.id, n.key FROM node n
  JOIN session s ON s.uid = $1 AND s.deleted_ms IS NULL JOIN session r ON r.uid = s.root
  WHERE n.id <> $2 AND NOT n.dead AND n.lease_until > clock_timestamp() AND n.standing <> 'draining'
    AND may_run_1(n.id, s.root)
  ORDER BY to_json(n.name)::text = home_1(r.summary, r.node) DESC, n.standing = 'open' DESC, n.id LIMIT 1";

const GIVE_BACK: &str = "WITH alone AS (SELECT 1 FROM stream FOR UPDATE)
  UPDATE session SET owner = NULL WHERE EXISTS (SELECT FROM alone) AND owner = $2 AND root = (SELECT root FROM session WHERE uid = $1) AND NOT may_run_1($2, root)";

const HAND_OVER: &str = "WITH alone AS (SELECT 1 FROM stream FOR UPDATE)
  UPDATE session SET owner = NULL WHERE EXISTS (SELECT FROM alone) AND owner = $1
  AND root NOT IN (SELECT root FROM session WHERE uid = ANY ($2))";

const NODES: &str = "SELECT name, NOT dead AND lease_until > clock_timestamp(), standing,
    (SELECT count(*) FROM session s WHERE s.owner = node.id AND NOT s.closed AND s.deleted_ms IS NULL),
    address, version, (extract(epoch FROM joined) * 1000)::bigint, labels::text, coalesce(load, 0)
  FROM node WHERE id IN (SELECT max(id) FROM node GROUP BY name) ORDER BY name";

const OWNER: &str = "SELECT n.name, n.address, n.id, n.key FROM session s
  JOIN session r ON r.root = s.root AND r.deleted_ms IS NULL JOIN node n ON n.id = r.owner
  WHERE s.uid = $1 AND n.id <> $2 AND NOT n.dead AND may_run_1(n.id, s.root) LIMIT 1";

const AWAY: &str = "SELECT n.name, home_1(r.summary, r.node), workdir_1(s.summary),
    CASE WHEN requires_1(r.summary) <@ n.labels THEN '' ELSE requires_1(r.summary)::text END
  FROM session s JOIN session r ON r.uid = s.root JOIN node n ON n.id = $2
  WHERE s.uid = $1 AND s.deleted_ms IS NULL AND NOT may_run_1(n.id, s.root)";

const OPEN_NODE: &str = "SELECT name, address, id, key FROM node
  WHERE id <> $1 AND NOT dead AND lease_until > clock_timestamp() AND standing = 'open' AND address <> ''
    AND $2::text::jsonb <@ labels AND ($3::text IS NULL OR (below_1($3, shared_paths) AND load < $4))
  ORDER BY load, id LIMIT 1";

const REPORT_LOAD: &str = "WITH mine AS (UPDATE node SET load = $2 WHERE id = $1)
  SELECT min(load) FROM node
  WHERE id <> $1 AND NOT dead AND lease_until > clock_timestamp() AND standing = 'open' AND address <> ''";

/// The membership of this node.
#[derive(Debug)]
pub(crate) struct Membership {
    server: Server,
    /// The current incarnation; 0: none.
    node: Arc<AtomicI64>,
    connection: Mutex<Option<Client>>,
    /// How long a statement may take until its connection counts as lost.
    patience: Duration,
    reads: Reads,
    pub(crate) adopted: Arc<Adopted>,
}

impl Membership {
    pub(crate) fn new(server: Server, node: Arc<AtomicI64>, patience: Duration, reads: Reads) -> Self {
        Self {
            server,
            node,
            connection: Mutex::new(None),
            patience,
            reads,
            adopted: Arc::default(),
        }
    }

    fn me(&self) -> i64 {
        self.node.load(Ordering::Acquire)
    }

    /// Runs a statement on the own connection. After a failure the next one gets a new connection.
    async fn ask(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut kept = self.connection.lock().await;
        let client = match kept.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => timeout(self.patience, self.server.connect())
                .await
                .map_err(|_| self.server.unreachable("no answer in time"))??,
        };
        let rows = timeout(self.patience, client.query(sql, params)).await;
        let rows = rows.map_err(|_| self.server.unreachable("no answer in time"))?;
        let rows = rows.map_err(|error| store_error(&error))?;
        *kept = Some(client);
        Ok(rows)
    }

    /// Another node that this statement finds for a session.
    async fn other(&self, sql: &'static str, session: SessionId) -> Result<Option<Owner>, StoreError> {
        let (uid, me) = (hex(session), self.me());
        let found = self.reads.run(move |client| async move {
            let row = first(&client, sql, &[&uid, &me]).await?;
            row.as_ref().map(owner).transpose()
        });
        found.await
    }
}

fn owner(row: &Row) -> Result<Owner, StoreError> {
    Ok(Owner {
        name: get(row, 0)?,
        address: get(row, 1)?,
        incarnation: Incarnation(count_of(row, 2)?),
        key: get(row, 3)?,
    })
}

const ADOPT: &str = "SELECT uid, wake_at_ms, new_epoch, at_head, moved_to FROM adopt_3($1)";

/// A session that was taken over, when it continues, and its claim if that is now.
fn taken_over(row: &Row) -> Result<(SessionId, Timestamp, Option<Claim>), StoreError> {
    let (session, at) = (session_of(get(row, 0)?)?, Timestamp(count_of(row, 1)?));
    let (epoch, head, moved_to): (Option<i64>, i64, Option<String>) =
        (get(row, 2)?, get(row, 3)?, get(row, 4)?);
    let claim = epoch.map(|epoch| Claim {
        epoch: size(epoch),
        head: size(head),
        // The first append of the loop writes the row.
        row_damaged: false,
        moved_to,
        away: None,
    });
    Ok((session, at, claim))
}

fn json(labels: &Labels) -> String {
    serde_json::json!(labels).to_string()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Fleet for Membership {
    async fn join(&self, node: &Joining) -> Result<Incarnation, StoreError> {
        let sql = "SELECT outcome, incarnation, replaced FROM join_3($1, $2, $3, $4, $5, $6, $7, $8)";
        let ttl = millis(node.ttl);
        let shared: Vec<String> = node.shared_paths.iter().map(|path| quoted(path)).collect();
        let labels = json(&node.labels);
        let params: [&(dyn ToSql + Sync); 8] = [
            &node.name,
            &node.identity,
            &node.address,
            &node.key,
            &node.version,
            &ttl,
            &shared,
            &labels,
        ];
        let rows = self.ask(sql, &params).await?;
        let row = rows.first().ok_or(StoreError::NodeLost)?;
        let id = keys::joined(row, self.server.to_string(), &node.name)?;
        self.adopted.clear();
        self.node.store(id, Ordering::Release);
        Ok(Incarnation(size(id)))
    }

    async fn beat(&self, ttl: Duration) -> Result<Beat, StoreError> {
        let (me, ttl) = (self.me(), ttl.as_secs_f64() * 1_000.0);
        let renewed = self.ask(RENEW, &[&me, &ttl]).await?;
        let renewed = renewed.first().ok_or(StoreError::NodeLost)?;
        let next_end: Option<i64> = get(renewed, 1)?;
        let beat = Beat {
            placing: Placing::parse(get(renewed, 0)?),
            next_end: next_end.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        };
        for gone in self.ask(REAP, &[&me, &ttl]).await? {
            let name: &str = get(&gone, 0)?;
            tracing::warn!(
                node = name,
                "a node gave no sign of life; others take over its sessions"
            );
        }
        Ok(beat)
    }

    async fn orphans(&self) -> Result<Orphans, StoreError> {
        let rows = self.ask(ORPHANS, &[]).await?;
        let row = rows.first().ok_or(StoreError::NodeLost)?;
        Ok(Orphans {
            sessions: count_of(row, 0)?,
            mark: count_of(row, 1)?,
        })
    }

    async fn stranded(&self) -> Result<Vec<Stranded>, StoreError> {
        let stranded = self.reads.run(|client| async move {
            let rows = all(&client, STRANDED, &[]).await?;
            let found = |row: &Row| {
                let (home, workdir, lacking) = (get(row, 1)?, get(row, 2)?, get(row, 4)?);
                Ok(Stranded {
                    session: session_of(get(row, 0)?)?,
                    away: away("", home, workdir, lacking),
                    since: Timestamp(count_of(row, 3)?),
                })
            };
            rows.iter().map(found).collect()
        });
        stranded.await
    }

    async fn adopt(&self) -> Result<Vec<(SessionId, Timestamp)>, StoreError> {
        let me = self.me();
        // Not on the own connection: this waits for appends.
        let adopted = Arc::clone(&self.adopted);
        let adopt = self.reads.run(move |client| async move {
            let rows = all(&client, ADOPT, &[&me]).await?;
            let rows: Result<Vec<_>, StoreError> = rows.iter().map(taken_over).collect();
            let rows = rows?;
            let claims = rows
                .iter()
                .filter_map(|(session, _, claim)| Some((*session, claim.clone()?)));
            adopted.add(claims);
            Ok(rows.into_iter().map(|(session, at, _)| (session, at)).collect())
        });
        adopt.await
    }

    async fn hand_over(&self, keep: &[SessionId]) -> Result<u64, StoreError> {
        let keep: Vec<String> = keep.iter().map(|session| hex(*session)).collect();
        let me = self.me();
        self.adopted.clear();
        self.reads
            .run(move |client| async move { change(&client, HAND_OVER, &[&me, &keep]).await })
            .await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let me = self.node.swap(0, Ordering::AcqRel);
        if me != 0 {
            self.ask("UPDATE node SET dead = true WHERE id = $1", &[&me])
                .await?;
        }
        *self.connection.lock().await = None;
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<FleetNode>, StoreError> {
        let nodes = self.reads.run(|client| async move {
            let rows = all(&client, NODES, &[]).await?;
            let node = |row: &Row| {
                Ok(FleetNode {
                    name: get(row, 0)?,
                    alive: get(row, 1)?,
                    placing: Placing::parse(get(row, 2)?),
                    sessions: count_of(row, 3)?,
                    address: get(row, 4)?,
                    version: get(row, 5)?,
                    joined_at: Timestamp(count_of(row, 6)?),
                    labels: labels_of(get(row, 7)?),
                    load: u32::try_from(count_of(row, 8)?).unwrap_or(u32::MAX),
                })
            };
            rows.iter().map(node).collect()
        });
        nodes.await
    }

    async fn place(&self, name: &str, placing: Placing) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let place = self.reads.run(move |client| async move {
            let sql = "UPDATE node SET standing = $2 WHERE name = $1 AND NOT dead";
            change(&client, sql, &[&name, &placing.as_str()]).await
        });
        place.await.map(|changed| changed > 0)
    }

    async fn share(&self, demands: &[Demand]) -> Result<Vec<Share>, StoreError> {
        let (me, demands) = (self.me(), demands.to_vec());
        self.reads
            .run(move |client| shares::replace(client, me, demands))
            .await
    }

    async fn owner(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        self.other(OWNER, session).await
    }

    async fn host(&self, session: SessionId) -> Result<Option<Owner>, StoreError> {
        self.other(HOST, session).await
    }

    async fn give_back(&self, session: SessionId) -> Result<bool, StoreError> {
        let (uid, me) = (hex(session), self.me());
        let given = self
            .reads
            .run(move |client| async move { change(&client, GIVE_BACK, &[&uid, &me]).await });
        given.await.map(|sessions| sessions > 0)
    }

    async fn report_load(&self, load: u32) -> Result<Option<u32>, StoreError> {
        let (me, load) = (self.me(), i64::from(load));
        let least = self.reads.run(move |client| async move {
            let row = first(&client, REPORT_LOAD, &[&me, &load]).await?;
            let least: Option<i64> = row.as_ref().map_or(Ok(None), |row| get(row, 0))?;
            Ok(least.and_then(|least| u32::try_from(least).ok()))
        });
        least.await
    }

    async fn away(&self, session: SessionId) -> Result<Option<Away>, StoreError> {
        let (uid, me) = (hex(session), self.me());
        let found = self.reads.run(move |client| async move {
            let row = first(&client, AWAY, &[&uid, &me]).await?;
            let why = |row: &Row| Ok(away(get(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?));
            row.as_ref().map(why).transpose()
        });
        found.await
    }

    async fn open_node(
        &self,
        requires: &Labels,
        better: Option<(&str, u32)>,
    ) -> Result<Option<Owner>, StoreError> {
        let (me, requires) = (self.me(), json(requires));
        let within = better.map(|(directory, _)| quoted(directory));
        let less = better.map(|(_, load)| i64::from(load) - i64::from(WORTH_IT));
        let node = self.reads.run(move |client| async move {
            let row = first(&client, OPEN_NODE, &[&me, &requires, &within, &less]).await?;
            row.as_ref().map(owner).transpose()
        });
        node.await
    }

    async fn keys(&self) -> Result<Vec<KnownKey>, StoreError> {
        self.reads.run(keys::known).await
    }

    async fn rotate_key(&self, key: &str, grace: Duration) -> Result<(), StoreError> {
        let (me, key, grace) = (self.me(), key.to_owned(), millis(grace));
        let rotated = self.reads.run(move |client| keys::rotate(client, me, key, grace));
        rotated.await
    }

    async fn remove_key(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.reads.run(move |client| keys::remove(client, name)).await
    }

    async fn admit_key(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.reads.run(move |client| keys::admit(client, name)).await
    }
}
