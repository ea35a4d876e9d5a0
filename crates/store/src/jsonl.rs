//! The log as JSON lines: export of a log, import of a whole log, and restoring a store from such files.

use crate::origin::{bad, read_lines, session_of};
use crate::{Append, Backend, EncodedEvent, Outcome, OwnLog, Range, SessionLog, StoreError};
use agentd_protocol::{Seq, SessionId, Stamp, Summary};
use bytes::Bytes;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// Limits of one append while a whole log is imported: events and bytes.
const PART_EVENTS: usize = 500;
const PART_BYTES: usize = 2 * 1024 * 1024;
/// The longest line accepted from a file.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// The session created from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The session in this store.
    pub session: SessionId,
    /// The session id in the lines. Differs from `session` only if that id was taken.
    pub from: SessionId,
    /// Its head.
    pub head: Seq,
}

/// The exact stored lines after `after`, at most `limit` (0: a full page).
///
/// # Errors
/// The session does not exist, or the store fails.
pub async fn export(
    log: &dyn SessionLog,
    session: SessionId,
    after: Seq,
    limit: u32,
) -> Result<Vec<Bytes>, StoreError> {
    let page = log
        .load(
            session,
            Range {
                after,
                limit,
                ..Range::default()
            },
        )
        .await?;
    Ok(page.events.into_iter().map(|(_, line)| line).collect())
}

/// Writes a whole log as a session, with the id in its lines, or a new id if that one is taken. `summarize` folds the
/// stored lines into the list row, and may reject them. The session stays hidden until its last part is durable. A
/// later purge removes the remains of an interrupted import.
///
/// # Errors
/// A line is not an event, the numbering has a gap, `summarize` rejects the lines, or the store fails.
pub async fn restore<F>(
    log: &dyn Backend,
    own: &OwnLog,
    stamp: &mut Stamp,
    summarize: F,
) -> Result<Restored, StoreError>
where
    F: FnOnce(SessionId, &[EncodedEvent]) -> Result<Option<Summary>, String>,
{
    let lines = own.lines();
    let from = session_of(lines.first(), 1)?;
    // A tombstone also takes the id: only the first append detects it.
    let taken = log
        .load(
            from,
            Range {
                limit: 1,
                ..Range::default()
            },
        )
        .await
        .is_ok();
    let first = if taken { stamp.session() } else { from };
    let (mut session, mut events) = (first, read_lines(lines, from, first)?);
    let mut done = write(log, session, &events, stamp).await?;
    if !done && session == from {
        session = stamp.session();
        events = read_lines(lines, from, session)?;
        done = write(log, session, &events, stamp).await?;
    }
    if !done {
        return Err(StoreError::Refused(format!(
            "another writer changed session {session}"
        )));
    }
    let head = events.len() as Seq;
    let finished = match summarize(session, &events) {
        Ok(summary) => finish(log, session, head, summary, stamp).await,
        Err(reason) => Err(StoreError::BadImport { line: head, reason }),
    };
    if let Err(error) = finished {
        log.delete(session).await?;
        return Err(error);
    }
    Ok(Restored { session, from, head })
}

/// Writes the events in parts. `false`: the store refused the first part because the session exists.
async fn write(
    log: &dyn Backend,
    session: SessionId,
    events: &[EncodedEvent],
    stamp: &mut Stamp,
) -> Result<bool, StoreError> {
    let mut rest = events;
    let mut head = 0;
    while !rest.is_empty() {
        let (part, later) = rest.split_at(part_of(rest));
        let mut append = Append::new(session, 1, head, stamp.append());
        append.events = part.to_vec();
        match settle(log, append).await? {
            Some(committed) => head = committed,
            None if head == 0 => return Ok(false),
            None => {
                return Err(StoreError::Refused(format!(
                    "another writer changed session {session}"
                )));
            }
        }
        rest = later;
    }
    Ok(true)
}

async fn finish(
    log: &dyn Backend,
    session: SessionId,
    head: Seq,
    summary: Option<Summary>,
    stamp: &mut Stamp,
) -> Result<(), StoreError> {
    let mut append = Append::new(session, 1, head, stamp.append());
    append.summary = summary;
    match settle(log, append).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::Refused(format!(
            "another writer changed session {session}"
        ))),
    }
}

/// The new head, or `None` if the append was fenced off. Retries once after a lost answer.
async fn settle(log: &dyn Backend, append: Append) -> Result<Option<Seq>, StoreError> {
    let outcome = match log.append(append.clone()).await {
        Outcome::Unknown => log.append(append).await,
        outcome => outcome,
    };
    match outcome {
        Outcome::Committed { head, .. } | Outcome::Duplicate { head } => Ok(Some(head)),
        Outcome::Fenced { .. } => Ok(None),
        Outcome::Full => Err(StoreError::Full),
        Outcome::Unknown => Err(StoreError::Unknown),
        Outcome::KeyTaken { .. } => Err(StoreError::Refused(
            "an idempotency key is already taken".to_owned(),
        )),
        Outcome::Failed(why) => Err(StoreError::Refused(why)),
    }
}

fn part_of(events: &[EncodedEvent]) -> usize {
    let mut bytes = 0;
    let fits = events.iter().take(PART_EVENTS).take_while(|event| {
        bytes += event.body.len();
        bytes <= PART_BYTES
    });
    fits.count().max(1)
}

/// Restores every `*.jsonl` file of a directory, the oldest session first, without a torn last line. Returns the result
/// for each file. An unreadable file is an error only for itself.
///
/// The files get the authority of the store that they mirror. So only the operator of both stores may do this: no
/// protocol method leads here.
///
/// # Errors
/// The directory cannot be read.
pub async fn rebuild<F>(
    log: &dyn Backend,
    dir: &Path,
    stamp: &mut Stamp,
    summarize: F,
) -> Result<Vec<(String, Result<Restored, StoreError>)>, StoreError>
where
    F: Fn(SessionId, &[EncodedEvent]) -> Result<Option<Summary>, String>,
{
    let entries = std::fs::read_dir(dir).map_err(|error| StoreError::io(dir, error))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".jsonl"))
        .collect();
    names.sort();
    let mut made = Vec::new();
    for name in names {
        let result = match lines_of(&dir.join(&name)) {
            Ok(lines) => restore(log, &OwnLog::vouched(lines), stamp, &summarize).await,
            Err(error) => Err(error),
        };
        made.push((name, result));
    }
    Ok(made)
}

/// The complete lines of a file.
pub(crate) fn lines_of(path: &Path) -> Result<Vec<Bytes>, StoreError> {
    let io = |error| StoreError::io(path, error);
    let mut file = BufReader::new(std::fs::File::open(path).map_err(io)?);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = file.read_until(b'\n', &mut line).map_err(io)?;
        if read == 0 || line.pop() != Some(b'\n') {
            return Ok(lines);
        }
        if line.len() > MAX_LINE {
            return Err(bad(lines.len() as Seq + 1, "it is too long"));
        }
        lines.push(line.into());
    }
}
