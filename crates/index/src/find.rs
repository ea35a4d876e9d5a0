//! Answers one query from an index and the current files. Blocks.

use crate::database::{ChunkAt, Reader};
use crate::error::IndexError;
use crate::pass::{content, cut};
use crate::rank::{Candidate, choose, fuse, signs};
use crate::words::Wanted;
use agentd_sandbox::Beneath;
use agentd_tools::{SearchHit, SearchQuery};
use std::fmt::Write as _;
use std::path::Path;

/// Maximum number of candidates per full-text query,
const EACH: u32 = 40;
/// and in total.
const ENOUGH: usize = 40;
/// Candidates whose text is read.
const LOOKED_AT: usize = 30;
/// Lines shown of a hit, and their maximum size in bytes.
const SHOWN: usize = 14;
const SHOWN_BYTES: usize = 1_500;
/// Bytes shown of a line.
const SHOWN_LINE: usize = 240;

/// The hits, the best first; at most twice the requested number.
pub(crate) fn find(
    reader: &Reader,
    workdir: &Path,
    query: &SearchQuery,
    vector: Option<&[u8]>,
    max_file_bytes: u64,
) -> Result<Vec<SearchHit>, IndexError> {
    let wanted = Wanted::read(&query.text);
    let below = query.below.to_string_lossy();
    let mut lists = vec![by_words(reader, &wanted, &below)?];
    if let Some(vector) = vector {
        lists.push(reader.nearest(vector, &below, ENOUGH)?);
    }
    let workdir = Beneath::open(workdir)?;
    let mut found = Vec::new();
    for (id, worth) in fuse(&lists).into_iter().take(LOOKED_AT) {
        let Some(place) = reader.place(id)? else { continue };
        if let Some((added, hit)) = look(&workdir, &place, &wanted, max_file_bytes) {
            found.push((worth + added, hit));
        }
    }
    let most = query.limit.saturating_mul(2);
    Ok(choose(found, most, |hit: &SearchHit| hit.path.clone()))
}

/// Runs the strictest full-text queries first, and the loose, slow ones only if those found little. An interrupt keeps
/// the results so far.
fn by_words(reader: &Reader, wanted: &Wanted, below: &str) -> Result<Vec<i64>, IndexError> {
    let mut ids: Vec<i64> = Vec::new();
    for question in wanted.asked() {
        let more = match reader.matching(&question, below, EACH) {
            Ok(more) => more,
            Err(IndexError::Database(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) =>
            {
                break;
            }
            Err(error) => return Err(error),
        };
        for id in more {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if ids.len() >= ENOUGH {
            break;
        }
    }
    Ok(ids)
}

/// Reads the current text of a chunk; `None` if it is gone.
fn look(
    workdir: &Beneath,
    place: &ChunkAt,
    wanted: &Wanted,
    max_file_bytes: u64,
) -> Option<(f64, SearchHit)> {
    let opened = workdir.open_file(Path::new(&place.path)).ok()?;
    if opened.real != Path::new(&place.path) || opened.bytes > max_file_bytes {
        return None;
    }
    let changed = opened.version.stamp() != place.stamp;
    let content = content(opened, max_file_bytes)?;
    let text = String::from_utf8_lossy(&content);
    let first = usize::try_from(place.first).ok()?;
    let last = usize::try_from(place.last).ok()?;
    let lines: Vec<&str> = text
        .lines()
        .map(cut)
        .take(last)
        .skip(first.checked_sub(1)?)
        .collect();
    let names: Vec<&str> = place.names.lines().collect();
    let candidate = Candidate {
        path: &place.path,
        names: &names,
        lines: &lines,
    };
    let (added, best) = signs(wanted, &candidate);
    if lines.is_empty() {
        return None;
    }
    let mut shown = show(&lines, first, best);
    if changed {
        shown.push_str("  (this file has changed since it was indexed)\n");
    }
    Some((
        added,
        SearchHit {
            path: place.path.clone(),
            start_line: place.first,
            end_line: u32::try_from(first + lines.len() - 1).unwrap_or(place.last),
            text: shown,
        },
    ))
}

/// The lines around the best one, numbered.
fn show(lines: &[&str], first: usize, best: usize) -> String {
    let from = best.saturating_sub(3).min(lines.len().saturating_sub(SHOWN));
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate().skip(from).take(SHOWN) {
        let line = line.get(..line.floor_char_boundary(SHOWN_LINE)).unwrap_or(line);
        if shown.len() + line.len() > SHOWN_BYTES && at > best {
            break;
        }
        let _ = writeln!(shown, "{}\t{line}", first + at);
    }
    shown
}
