//! Reads of the table of tokens, also with damaged rows or pages: what cannot be read opens nothing (I7).

use crate::error::Error;
use crate::row_sum;
use crate::salvage;
use crate::values::size;
use agentd_protocol::{Principal, Timestamp};
use agentd_store::backend::damaged_token;
use agentd_store::cell_sum::TOKEN;
use agentd_store::{StoreError, StoredToken};
use rusqlite::{Connection, Row};

/// The rows of the table.
#[derive(Debug, Default)]
pub(crate) struct TokenRows {
    pub(crate) whole: Vec<StoredToken>,
    pub(crate) damaged: Vec<DamagedRow>,
}

/// A row that does not match its checksum, or that cannot be read.
#[derive(Debug)]
pub(crate) struct DamagedRow {
    id: i64,
    /// What users call it.
    pub(crate) name: String,
}

impl TokenRows {
    pub(crate) fn read(reader: &Connection) -> Result<Self, Error> {
        let mut found = Self::default();
        match found.add(reader, "") {
            Err(error) if salvage::is_damage(&error) => found = Self::one_by_one(reader)?,
            read => read?,
        }
        found.whole.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn one_by_one(reader: &Connection) -> Result<Self, Error> {
        let mut found = Self::default();
        for (id, name) in salvage::keys(reader, "token", "name") {
            match found.add(reader, &format!("WHERE rowid = {id}")) {
                Err(error) if salvage::is_damage(&error) => found.damaged.push(DamagedRow { id, name }),
                read => read?,
            }
        }
        Ok(found)
    }

    /// Reads the table itself: an index may have a name as it was.
    fn add(&mut self, reader: &Connection, which: &str) -> Result<(), Error> {
        let whole = row_sum::whole(&TOKEN);
        let mut select = reader.prepare_cached(&format!(
            "SELECT name, hash, scopes, labels, created_ms, created_by, expires_ms, used_ms, revoked_ms, rights, {whole}, rowid
             FROM token NOT INDEXED {which}"
        ))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if let Ok(Some(token)) = token(row) {
                self.whole.push(token);
                continue;
            }
            let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned();
            let hash = row.get_ref(1)?.as_bytes().unwrap_or_default();
            let name = damaged_token(&name, hash);
            self.damaged.push(DamagedRow {
                id: row.get(11)?,
                name,
            });
        }
        Ok(())
    }
}

/// `None`: it does not match its checksum, or its scopes, labels or rights are unreadable.
fn token(row: &Row<'_>) -> rusqlite::Result<Option<StoredToken>> {
    if !row.get::<_, bool>(10)? {
        return Ok(None);
    }
    let time =
        |index| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(index)?.map(|ms| Timestamp(size(ms))));
    let (scopes, labels): (String, String) = (row.get(2)?, row.get(3)?);
    let rights: Option<String> = row.get(9)?;
    let rights = rights.map(|rights| serde_json::from_str(&rights)).transpose();
    let read = (
        serde_json::from_str(&scopes),
        serde_json::from_str(&labels),
        rights,
    );
    let (Ok(scopes), Ok(labels), Ok(rights)) = read else {
        return Ok(None);
    };
    Ok(Some(StoredToken {
        name: row.get(0)?,
        hash: row.get(1)?,
        scopes,
        labels,
        rights,
        created: Timestamp(size(row.get(4)?)),
        by: Principal(row.get(5)?),
        expires: time(6)?,
        used: time(7)?,
        revoked: time(8)?,
    }))
}

/// Removes the damaged tokens that users call so. Returns whether there was one.
pub(crate) fn remove_damaged(writer: &Connection, name: &str) -> rusqlite::Result<bool> {
    let found = match TokenRows::read(writer) {
        Ok(found) => found,
        Err(Error::Sqlite(error)) => return Err(error),
        Err(Error::Store(error)) => return Err(rusqlite::Error::UserFunctionError(Box::new(error))),
    };
    let mut removed = false;
    for row in found.damaged.iter().filter(|row| row.name == name) {
        let remove = || writer.execute("DELETE FROM token WHERE rowid = ?1", [row.id]);
        match in_savepoint(writer, remove) {
            // An index still has the row as it was.
            Err(error) if salvage::is_unreadable(&error) => {
                writer.execute_batch("REINDEX token")?;
                remove()?;
            }
            done => drop(done?),
        }
        removed = true;
    }
    Ok(removed)
}

/// Forgets tokens that ended before this time, if all rows can be read: a damaged page must not prevent a new token.
pub(crate) fn forget(writer: &Connection, before: i64) -> rusqlite::Result<()> {
    let whole = row_sum::whole(&TOKEN);
    let old = format!("DELETE FROM token WHERE (revoked_ms < ?1 OR expires_ms < ?1) AND {whole}");
    match in_savepoint(writer, || writer.execute(&old, [before])) {
        Err(error) if salvage::is_unreadable(&error) => {
            let error = StoreError::Damaged(error.to_string());
            tracing::error!(%error, "tokens that ended are kept");
            Ok(())
        }
        done => done.map(drop),
    }
}

/// Runs a change that leaves nothing if it fails.
fn in_savepoint<T>(writer: &Connection, run: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    writer.execute_batch("SAVEPOINT one")?;
    let done = run();
    if done.is_err() {
        writer.execute_batch("ROLLBACK TO one")?;
    }
    writer.execute_batch("RELEASE one")?;
    done
}

#[cfg(test)]
mod tests;
