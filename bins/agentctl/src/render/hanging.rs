//! File systems that do not respond, described for people.

use crate::render::{count, one_line, span};
use agentd_protocol::HangingFiles;

/// The most sessions that are named.
const NAMED: usize = 5;
/// The most characters of a mount point and of a requester.
const LONGEST: usize = 200;

/// The file system that hangs, and the sessions it affects.
pub(crate) fn hanging(files: &HangingFiles) -> String {
    let mount = one_line(&files.mount, LONGEST);
    let calls = count(files.calls, "call");
    let how = match files.silent_ms {
        Some(ms) => format!("has not answered for {}", span(ms)),
        None => "answers, but not every call".to_owned(),
    };
    let mut text = format!("the file system at {mount} {how}; {calls} blocked");
    let named: Vec<String> = files
        .who
        .iter()
        .take(NAMED)
        .map(|who| one_line(who, LONGEST))
        .collect();
    if !named.is_empty() {
        text = format!("{text}: {}", named.join(", "));
    }
    match files.who.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sessions_are_named_and_the_others_counted() {
        let files = |silent_ms, who: usize| HangingFiles {
            mount: "/mnt/a\u{1b}b".to_owned(),
            silent_ms,
            calls: 12,
            who: (0..who).map(|n| format!("s{n}")).collect(),
        };
        let text = hanging(&files(Some(30_000), 7));
        assert!(text.contains("has not answered for 30"), "{text}");
        assert!(
            text.ends_with("12 calls blocked: s0, s1, s2, s3, s4 and 2 more"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'));
        let text = hanging(&files(None, 0));
        assert!(
            text.ends_with("answers, but not every call; 12 calls blocked"),
            "{text}"
        );
    }
}
