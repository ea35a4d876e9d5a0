//! Making other people's text safe for a terminal.

use std::borrow::Cow;

/// Text of a session, with everything that a terminal would obey made visible; line breaks and tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|letter| letter != '\n' && letter != '\t' && unsafe_on_terminals(letter))
    {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter.to_string(),
        '\0'..='\x1f' => char::from_u32(u32::from(letter) + 0x2400)
            .unwrap_or('?')
            .to_string(),
        letter if unsafe_on_terminals(letter) => letter.escape_unicode().to_string(),
        letter => letter.to_string(),
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(shown).collect())
}

/// The same on one line of at most `max` characters.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line.trim_end().to_owned();
    }
    let kept: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// JSON for a terminal: the same value, with control, bidi and other invisible characters as escapes.
pub(crate) fn json_for_terminal(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter == '\n' || !unsafe_on_terminals(letter) {
            safe.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

fn unsafe_on_terminals(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(letter, '\u{feff}' | '\u{61c}' | '\u{e0000}'..='\u{e007f}')
}
