//! Terminal output: cleaned text contains nothing that a terminal interprets, and cleaning twice changes nothing.

use agentd_text::{Typescript, for_terminal, json_for_terminal, one_line, redact, settled};

/// Whether a terminal interprets the character, or it can hide adjacent text.
fn is_obeyed(c: char) -> bool {
    let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || direction
}

pub(crate) fn holds(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let shown = for_terminal(&text);
    assert!(!shown.chars().any(is_obeyed), "{shown:?}");
    assert_eq!(for_terminal(&shown), shown);
    assert!(shown.len() <= 16 + 8 * text.len());
    let line = one_line(&text, 40);
    assert!(line.chars().count() <= 40 && !line.contains('\n'), "{line:?}");
    assert!(!line.chars().any(is_obeyed));
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
        let safe = json_for_terminal(&text);
        let read = serde_json::from_str::<serde_json::Value>(&safe);
        assert_eq!(read.expect("it is still JSON"), value, "{safe:?}");
        assert!(!safe.chars().any(|c| is_obeyed(c) || c == '\t'));
    }
    let whole = Typescript::default().text_of(&text);
    let mut pieces = Typescript::default();
    let apart: String = text
        .chars()
        .map(|c| pieces.text_of(c.encode_utf8(&mut [0; 4])))
        .collect();
    assert_eq!(
        whole, apart,
        "a terminal's output does not depend on how it arrives"
    );
    assert!(settled(&whole).len() <= whole.len());
    assert_eq!(redact(&redact(&text)), redact(&text));
}
