//! The table of tokens, and the look-up of a blob within labels.

use crate::queries::{all, change, count_of, first, get};
use crate::store::PostgresStore;
use agentd_protocol::{Labels, Principal, Timestamp};
use agentd_store::backend::{column, damaged_token, size};
use agentd_store::{Access, MAX_TOKENS, StoreError, StoredToken};
use async_trait::async_trait;

#[async_trait]
impl Access for PostgresStore {
    async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let (whole, damaged) = self.token_rows().await?;
        for name in damaged {
            tracing::error!(name, "a stored token is damaged and opens nothing; revoke it");
        }
        Ok(whole)
    }

    async fn damaged_tokens(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.token_rows().await?.1)
    }

    async fn add_token(&self, token: StoredToken, forget: Timestamp) -> Result<bool, StoreError> {
        let scopes = serde_json::to_string(&token.scopes)?;
        let labels = serde_json::to_string(&token.labels)?;
        let rights = token.rights.as_ref().map(serde_json::to_string).transpose()?;
        let add = self.reads.run(move |client| async move {
            let old = "DELETE FROM token WHERE (revoked_ms < $1 OR expires_ms < $1) AND sum = sum_1(token)";
            change(&client, old, &[&column(forget.0)]).await?;
            let sql = "INSERT INTO token(name, hash, scopes, labels, created_ms, created_by, expires_ms, used_ms, revoked_ms, rights)
                 SELECT $1::text, $2::bytea, $3::text, $4::text, $5::bigint, $6::text, $7::bigint, $8::bigint, $9::bigint, $10::text
                 WHERE (SELECT count(*) FROM token) < $11 ON CONFLICT (name) DO NOTHING";
            let time = |time: Option<Timestamp>| time.map(|time| column(time.0));
            let most = column(MAX_TOKENS as u64);
            let (created, by) = (column(token.created.0), token.by.0);
            let (expires, used, revoked) = (time(token.expires), time(token.used), time(token.revoked));
            let hash = token.hash.as_slice();
            change(
                &client,
                sql,
                &[
                    &token.name,
                    &hash,
                    &scopes,
                    &labels,
                    &created,
                    &by,
                    &expires,
                    &used,
                    &revoked,
                    &rights,
                    &most,
                ],
            )
            .await
        });
        Ok(add.await? == 1)
    }

    async fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError> {
        let sql =
            "UPDATE token SET revoked_ms = $2 WHERE name = $1 AND revoked_ms IS NULL AND sum = sum_1(token)";
        if self.mark_token(sql, name, at).await? == 1 {
            return Ok(true);
        }
        let name = name.to_owned();
        let remove = self.reads.run(move |client| async move {
            let damaged = "SELECT name, hash FROM token WHERE sum IS DISTINCT FROM sum_1(token)";
            let mut removed = 0;
            for row in all(&client, damaged, &[]).await? {
                let (stored, hash): (&str, &[u8]) = (get(&row, 0)?, get(&row, 1)?);
                if damaged_token(stored, hash) == name {
                    let sql = "DELETE FROM token WHERE name = $1 AND sum IS DISTINCT FROM sum_1(token)";
                    removed += change(&client, sql, &[&stored]).await?;
                }
            }
            Ok(removed)
        });
        Ok(remove.await? > 0)
    }

    async fn settle_token_rights(&self) -> Result<Vec<String>, StoreError> {
        let settle = self.reads.run(move |client| async move {
            let sql =
                "UPDATE token SET rights = '{}' WHERE rights IS NULL AND sum = sum_1(token) RETURNING name";
            all(&client, sql, &[]).await
        });
        let rows = settle.await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    async fn token_used(&self, name: &str, at: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE token SET used_ms = greatest(used_ms, $2) WHERE name = $1";
        self.mark_token(sql, name, at).await.map(drop)
    }

    async fn blob_within(&self, name: &str, labels: &Labels) -> Result<bool, StoreError> {
        let (name, labels) = (name.to_owned(), serde_json::to_string(labels)?);
        let within = self.reads.run(move |client| async move {
            let sql = "SELECT count(*) FROM blob_use JOIN session ON session.id = blob_use.session_id
                 WHERE blob_use.name = $1 AND deleted_ms IS NULL AND summary IS NOT NULL
                   AND blob_use.sum = sum_1(blob_use) AND own_sum = own_sum_1(session) AND labels @> $2::text::jsonb";
            let row = first(&client, sql, &[&name, &labels]).await?;
            row.map_or(Ok(0), |row| count_of(&row, 0))
        });
        Ok(within.await? > 0)
    }
}

impl PostgresStore {
    /// The tokens that can be read, and what users call the others.
    async fn token_rows(&self) -> Result<(Vec<StoredToken>, Vec<String>), StoreError> {
        let sql = "SELECT name, hash, scopes, labels, created_ms, created_by, expires_ms, used_ms, revoked_ms, rights, sum = sum_1(token)
             FROM token ORDER BY name";
        let rows = self
            .reads
            .run(move |client| async move { all(&client, sql, &[]).await });
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        for row in rows.await? {
            match token(&row)? {
                Some(token) => whole.push(token),
                None => damaged.push(damaged_token(get(&row, 0)?, get(&row, 1)?)),
            }
        }
        Ok((whole, damaged))
    }

    async fn mark_token(&self, sql: &'static str, name: &str, at: Timestamp) -> Result<u64, StoreError> {
        let name = name.to_owned();
        let mark = self
            .reads
            .run(move |client| async move { change(&client, sql, &[&name, &column(at.0)]).await });
        mark.await
    }
}

/// `None`: it does not match its checksum, or its scopes, labels or rights are unreadable.
fn token(row: &tokio_postgres::Row) -> Result<Option<StoredToken>, StoreError> {
    if get::<Option<bool>>(row, 10)? != Some(true) {
        return Ok(None);
    }
    let time = |index| Ok::<_, StoreError>(get::<Option<i64>>(row, index)?.map(|ms| Timestamp(size(ms))));
    let hash = <[u8; 32]>::try_from(get::<&[u8]>(row, 1)?);
    let (scopes, labels) = (
        serde_json::from_str(get(row, 2)?),
        serde_json::from_str(get(row, 3)?),
    );
    let rights = get::<Option<&str>>(row, 9)?.map(serde_json::from_str).transpose();
    let (Ok(hash), Ok(scopes), Ok(labels), Ok(rights)) = (hash, scopes, labels, rights) else {
        return Ok(None);
    };
    Ok(Some(StoredToken {
        name: get(row, 0)?,
        hash,
        scopes,
        labels,
        rights,
        created: Timestamp(count_of(row, 4)?),
        by: Principal(get(row, 5)?),
        expires: time(6)?,
        used: time(7)?,
        revoked: time(8)?,
    }))
}
