//! The table of tokens, and the look-up of a blob within labels.

use crate::queries::carries;
use crate::row_sum::{self, WHOLE};
use crate::store::{SMALL, SqliteStore};
use crate::token_rows::{self, TokenRows};
use crate::values::column;
use agentd_protocol::{Labels, Timestamp};
use agentd_store::cell_sum::{BLOB_USE, TOKEN};
use agentd_store::{Access, MAX_TOKENS, StoreError, StoredToken};
use async_trait::async_trait;
use rusqlite::{Connection, params};

#[async_trait]
impl Access for SqliteStore {
    async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let found = self.readers.read(TokenRows::read).await?;
        for row in &found.damaged {
            tracing::error!(row.name, "a stored token is damaged and opens nothing; revoke it");
        }
        Ok(found.whole)
    }

    async fn damaged_tokens(&self) -> Result<Vec<String>, StoreError> {
        let found = self.readers.read(TokenRows::read).await?;
        Ok(found.damaged.into_iter().map(|row| row.name).collect())
    }

    async fn add_token(&self, token: StoredToken, forget: Timestamp) -> Result<bool, StoreError> {
        let scopes = serde_json::to_string(&token.scopes)?;
        let labels = serde_json::to_string(&token.labels)?;
        let rights = token.rights.as_ref().map(serde_json::to_string).transpose()?;
        let most = i64::try_from(MAX_TOKENS).unwrap_or(i64::MAX);
        let add = move |writer: &Connection| {
            token_rows::forget(writer, column(forget.0))?;
            let mut insert = writer.prepare_cached(
                "INSERT INTO token(name, hash, scopes, labels, created_ms, created_by, expires_ms, used_ms, revoked_ms,
                   rights, sum)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, agentd_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 WHERE (SELECT count(*) FROM token) < ?11 ON CONFLICT(name) DO NOTHING",
            )?;
            let time = |time: Option<Timestamp>| time.map(|time| column(time.0));
            insert.execute(params![
                token.name,
                token.hash,
                scopes,
                labels,
                column(token.created.0),
                token.by.0,
                time(token.expires),
                time(token.used),
                time(token.revoked),
                rights,
                most,
            ])
        };
        Ok(self.writer.change(SMALL, add).await? == 1)
    }

    async fn revoke_token(&self, name: &str, at: Timestamp) -> Result<bool, StoreError> {
        let name = name.to_owned();
        let revoke = move |writer: &Connection| {
            let whole = row_sum::whole(&TOKEN);
            let sum = row_sum::sum(&TOKEN, &[("revoked_ms", "?2")]);
            let sql = format!(
                "UPDATE token SET revoked_ms = ?2, sum = {sum} WHERE name = ?1 AND revoked_ms IS NULL AND {whole}"
            );
            let revoked = writer
                .prepare_cached(&sql)?
                .execute(params![name, column(at.0)])?;
            Ok(revoked == 1 || token_rows::remove_damaged(writer, &name)?)
        };
        self.writer.change(SMALL, revoke).await
    }

    async fn settle_token_rights(&self) -> Result<Vec<String>, StoreError> {
        let settle = |writer: &Connection| {
            let (whole, sum) = (
                row_sum::whole(&TOKEN),
                row_sum::sum(&TOKEN, &[("rights", "'{}'")]),
            );
            let sql = format!(
                "UPDATE token SET rights = '{{}}', sum = {sum} WHERE rights IS NULL AND {whole} RETURNING name"
            );
            let mut update = writer.prepare_cached(&sql)?;
            let names = update.query_map([], |row| row.get(0))?;
            names.collect()
        };
        self.writer.change(SMALL, settle).await
    }

    async fn token_used(&self, name: &str, at: Timestamp) -> Result<(), StoreError> {
        let name = name.to_owned();
        let used = move |writer: &Connection| {
            const LATER: &str = "max(coalesce(token.used_ms, 0), ?2)";
            let sum = row_sum::kept(&TOKEN, &[("used_ms", LATER)]);
            let sql = format!("UPDATE token SET used_ms = {LATER}, sum = {sum} WHERE name = ?1");
            writer.prepare_cached(&sql)?.execute(params![name, column(at.0)])
        };
        self.writer.change(SMALL, used).await.map(drop)
    }

    async fn blob_within(&self, name: &str, labels: &Labels) -> Result<bool, StoreError> {
        let (name, labels) = (name.to_owned(), serde_json::to_string(labels)?);
        let within = move |reader: &Connection| {
            let mut select = reader.prepare_cached(&format!(
                "SELECT 1 FROM blob_use JOIN session ON session.id = blob_use.session_id
                 WHERE blob_use.name = ?1 AND deleted_ms IS NULL AND summary IS NOT NULL AND {} AND {} AND {WHOLE} AND {}",
                row_sum::whole(&BLOB_USE),
                *row_sum::PLACED,
                carries("?2")
            ))?;
            Ok(select.exists(params![name, labels])?)
        };
        self.readers.read(within).await
    }
}
