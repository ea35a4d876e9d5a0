//! The names by which models call the tools of servers.

/// The longest name that every provider accepts.
const MAX: usize = 64;
const PREFIX: &str = "mcp__";
const BETWEEN: &str = "__";

/// The model's name for a server's tool: `mcp__SERVER__TOOL` of letters, digits, `_` and `-`. If the tool's name has
/// other characters or is too long, a hash at the end tells it from others that would look the same.
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let head = format!("{PREFIX}{server}{BETWEEN}");
    let room = MAX.saturating_sub(head.len());
    if !tool.is_empty() && tool.len() <= room && tool.chars().all(plain) {
        return head + tool;
    }
    let mark = format!("_{:08x}", fingerprint(tool));
    let kept = tool.chars().map(|c| if plain(c) { c } else { '_' });
    let kept: String = kept.take(room.saturating_sub(mark.len())).collect();
    head + &kept + &mark
}

/// The server part of a name.
pub(crate) fn server_of(name: &str) -> Option<&str> {
    let (server, tool) = name.strip_prefix(PREFIX)?.split_once(BETWEEN)?;
    (!tool.is_empty()).then_some(server)
}

/// FNV-1a: the same on every machine and in every version.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_and_lead_back_to_their_server() {
        let name = tool_name("files", "read__text-file");
        assert_eq!(name, "mcp__files__read__text-file");
        assert_eq!(server_of(&name), Some("files"));
        assert_eq!(server_of("Bash"), None);
        assert_eq!(server_of("mcp__files__"), None);
    }

    #[test]
    fn odd_and_long_names_are_told_apart_and_fit() {
        let odd = [
            "",
            "a.b",
            "a/b",
            "\u{202e}x",
            &"x".repeat(60),
            &format!("{}y", "x".repeat(60)),
        ];
        let names: std::collections::BTreeSet<String> = odd.iter().map(|tool| tool_name("s", tool)).collect();
        assert_eq!(names.len(), odd.len());
        for name in names {
            assert!(name.len() <= MAX && name.is_ascii(), "{name}");
            assert_eq!(server_of(&name), Some("s"));
        }
    }
}
