//! Typed text: mentions and slash commands are found in the text, never invented.

use agentd_prompt::{Slash, mentions, slash};

pub(crate) fn holds(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for mention in mentions(&text) {
        assert!(!mention.path.is_empty());
        assert!(mention.path.len() <= text.len());
        if let Some((first, last)) = mention.lines {
            assert!(first >= 1 && first <= last, "{mention:?}");
        }
    }
    if let Some(Slash { name, arguments }) = slash(&text) {
        assert!(text.contains(name) && text.contains(arguments));
    }
}
