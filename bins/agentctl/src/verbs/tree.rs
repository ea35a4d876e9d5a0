//! `ps --tree`: sessions below their parents.

use crate::render::SessionRow;
use agentd_protocol::SessionId;
use std::collections::BTreeMap;

/// The same rows, each followed by its sub-agents, with tree lines before their names. A row whose parent is missing
/// is at the top.
pub(crate) fn tree(rows: Vec<SessionRow>) -> Vec<SessionRow> {
    let known: Vec<SessionId> = rows.iter().map(|row| row.session).collect();
    let mut below: BTreeMap<Option<SessionId>, Vec<SessionRow>> = BTreeMap::new();
    for row in rows {
        let parent = row.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(row);
    }
    let mut out = Vec::new();
    let tops = below.remove(&None).unwrap_or_default();
    for row in tops {
        grow(row, "", &mut below, &mut out);
    }
    out
}

/// Adds a row and everything below it, each with its tree lines. Every row is taken out of the map, so this terminates
/// even if the parent links form a cycle.
fn grow(
    row: SessionRow,
    lines: &str,
    below: &mut BTreeMap<Option<SessionId>, Vec<SessionRow>>,
    out: &mut Vec<SessionRow>,
) {
    let mut children = below.remove(&Some(row.session)).unwrap_or_default();
    out.push(row);
    children.reverse();
    while let Some(mut child) = children.pop() {
        let (corner, passing) = if children.is_empty() {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        child.branch = format!("{lines}{corner}");
        grow(child, &format!("{lines}{passing}"), below, out);
    }
}
