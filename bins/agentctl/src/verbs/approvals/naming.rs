//! Finds the approval that a word names.

use crate::failure::Failure;
use crate::render::ApprovalRow;
use agentd_client::Client;
use agentd_protocol::{Fault, FaultClass};

/// The only open approval of a session, found by any name of the session.
pub(super) async fn of_session<'a>(
    client: &Client,
    word: &str,
    all: &'a [ApprovalRow],
) -> Option<&'a ApprovalRow> {
    let session = client.get(word).await.ok()?.session;
    let mut theirs = all
        .iter()
        .filter(|row| row.session == session || row.open.root == Some(session));
    theirs.next().filter(|_| theirs.next().is_none())
}

/// Whether a word looks like an id: a mistyped id must not become part of a reason.
pub(super) fn like_an_id(word: &str) -> bool {
    let id = |c: char| c.is_ascii_hexdigit() || c == '-';
    word.starts_with('@')
        || (word.len() >= 4 && word.chars().all(id) && word.contains(|c: char| c.is_ascii_digit()))
}

pub(super) async fn is_session(client: &Client, word: &str) -> Result<bool, Failure> {
    match client.get(word).await.map_err(Fault::from) {
        Ok(_) => Ok(true),
        Err(fault) => match fault.class {
            FaultClass::NotFound | FaultClass::Invalid => Ok(false),
            // Several sessions have this name.
            FaultClass::Conflict => Ok(true),
            _ => Err(fault.into()),
        },
    }
}

pub(super) fn by_id<'a>(word: &str, all: &'a [ApprovalRow]) -> Vec<&'a ApprovalRow> {
    all.iter()
        .filter(|row| stands_for(word, row.approval.to_string()))
        .collect()
}

/// Whether a word is a prefix or suffix of an id, with or without dashes.
fn stands_for(word: &str, id: String) -> bool {
    let plain = |id: String| id.replace('-', "");
    let (word, id) = (plain(word.trim().to_ascii_lowercase()), plain(id));
    word.len() >= 4 && (id.starts_with(&word) || id.ends_with(&word))
}

/// The approval that a word names: by either end of its id, or of its session's id if that has just one open.
pub(super) fn named<'a>(word: &str, all: &'a [ApprovalRow]) -> Result<&'a ApprovalRow, Failure> {
    let mut found = by_id(word, all);
    if found.is_empty() {
        found = all
            .iter()
            .filter(|row| stands_for(word, row.session.to_string()))
            .collect();
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(
            Fault::not_found("unknown_approval", format!("{word:?} is not an open approval"))
                .hint("`agentctl approvals` lists the open ones")
                .into(),
        ),
        several => Err(Fault::conflict(
            "ambiguous_approval",
            format!("{word:?} matches {} open approvals", several.len()),
        )
        .hint("give more of the approval's id")
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{ApprovalId, ApprovalKind, OpenApproval, SessionId, Timestamp};

    fn row(approval: u8, session: u8) -> ApprovalRow {
        let (approval, session) = (
            ApprovalId::from_bytes([approval; 16]),
            SessionId::from_bytes([session; 16]),
        );
        ApprovalRow::from(OpenApproval::new(
            approval,
            ApprovalKind::Tool,
            session,
            Timestamp(0),
        ))
    }

    #[test]
    fn a_reason_is_distinguished_from_an_id() {
        for id in ["4f2a", "@last", "01997c0a-5b1e", "1234"] {
            assert!(like_an_id(id), "{id}");
        }
        for words in ["use the staging database", "no", "added", "42", "", "later-1"] {
            assert!(!like_an_id(words), "{words}");
        }
    }

    #[test]
    fn an_approval_is_found_by_part_of_its_id_or_its_sessions() {
        let rows = [row(0x11, 0xaa), row(0x22, 0xbb), row(0x33, 0xbb)];
        let found = |word: &str| named(word, &rows).ok().map(|row| row.approval);
        assert_eq!(found("1111"), Some(rows[0].approval));
        assert_eq!(found("AAAA"), Some(rows[0].approval));
        assert_eq!(found("3333-3333"), Some(rows[2].approval));
        for word in ["bbbb", "111", "9999", ""] {
            assert_eq!(found(word), None, "{word:?}");
        }
    }
}
