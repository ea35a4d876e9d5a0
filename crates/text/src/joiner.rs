//! Joiners (ZWJ, ZWNJ) are invisible. Where a script or an emoji needs them, they are part of the text; anywhere else
//! they are hidden characters.

const ZWNJ: char = '\u{200c}';
const ZWJ: char = '\u{200d}';

/// Whether the character is a joiner.
pub(crate) const fn is_joiner(c: char) -> bool {
    matches!(c, ZWNJ | ZWJ)
}

/// Whether a joiner between these two characters changes their appearance.
pub(crate) fn joins(before: Option<char>, joiner: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    let emoji = joiner == ZWJ && is_emoji(before) && after.is_some_and(is_emoji);
    emoji || is_virama(before) || (is_cursive(before) && after.is_some_and(is_cursive))
}

/// Letters and marks of scripts whose letters join: Arabic, Syriac, N'Ko, Mongolian, and those of India and its neighbours.
const fn is_cursive(c: char) -> bool {
    matches!(c,
        '\u{620}'..='\u{65f}' | '\u{66e}'..='\u{6ef}' | '\u{6fa}'..='\u{74f}' | '\u{750}'..='\u{77f}' | '\u{7ca}'..='\u{7f5}'
        | '\u{8a0}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}'
        | '\u{17b6}'..='\u{17d3}' | '\u{1820}'..='\u{18aa}' | '\u{fb50}'..='\u{fdfb}' | '\u{fe70}'..='\u{fefc}')
}

/// A sign that removes a consonant's vowel; a joiner after it selects the form, even at the end of a word.
const fn is_virama(c: char) -> bool {
    matches!(
        c,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d4d}'
            | '\u{dca}'
    )
}

/// Pictographs, the symbols that join into emoji, and modifiers: skin tones, the variation selector.
const fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joiners_are_valid_only_in_scripts_and_emoji() {
        let fits = |text: &str| {
            let chars: Vec<char> = text.chars().collect();
            let at = chars.iter().position(|c| is_joiner(*c)).unwrap();
            let before = at.checked_sub(1).and_then(|before| chars.get(before).copied());
            joins(before, chars[at], chars.get(at + 1).copied())
        };
        for text in [
            "\u{645}\u{6cc}\u{200c}\u{62e}",      // Persian
            "\u{915}\u{94d}\u{200d}\u{937}",      // Hindi
            "\u{d28}\u{d4d}\u{200d}",             // Malayalam, at the end of a word
            "\u{1f469}\u{200d}\u{1f4bb}",         // a woman and a computer
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}", // the rainbow flag
            "\u{1f9d1}\u{1f3fd}\u{200d}\u{2695}", // a health worker with a skin tone
        ] {
            assert!(fits(text), "{text:?}");
        }
        for text in [
            "r\u{200d}m",
            "\u{200c}\u{645}",
            "\u{645}\u{200c}",
            "\u{645}\u{200c}\u{200c}\u{62e}",
            "\u{1f469}\u{200c}\u{1f4bb}",
            "\u{1f469}\u{200d}m",
            "/\u{200d}\u{937}",
        ] {
            assert!(!fits(text), "{text:?}");
        }
    }
}
