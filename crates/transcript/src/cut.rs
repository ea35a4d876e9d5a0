//! Shortens a long text to its head and tail, with a note between them.

/// The most bytes that the note takes.
const NOTE_BYTES: usize = 64;

/// The text in at most `max_bytes`: two thirds for the head, the rest for the tail, where errors and totals usually
/// are. `None` if it fits already or would not become shorter. Cutting again to the same size changes nothing.
pub(crate) fn head_and_tail(text: &str, max_bytes: usize) -> Option<String> {
    if text.len() <= max_bytes {
        return None;
    }
    let room = max_bytes.saturating_sub(NOTE_BYTES);
    let head = text
        .get(..text.floor_char_boundary(room.saturating_mul(2) / 3))
        .unwrap_or_default();
    let from = text.len().saturating_sub(room.saturating_sub(head.len()));
    let tail = text.get(text.ceil_char_boundary(from)..).unwrap_or_default();
    let left_out = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    let cut = format!("{head}\n[agentd] {left_out} bytes omitted here.\n{tail}");
    (cut.len() < text.len()).then_some(cut)
}

/// The beginning of a text in at most `max_bytes`.
pub(crate) fn head(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_and_tail_stay_and_the_rest_is_counted() {
        let text = format!("{}{}", "a".repeat(900), "z".repeat(900));
        let cut = head_and_tail(&text, 364).unwrap();
        assert_eq!(
            cut,
            format!(
                "{}\n[agentd] 1500 bytes omitted here.\n{}",
                "a".repeat(200),
                "z".repeat(100)
            )
        );
        assert_eq!(head_and_tail("short", 5), None);
    }

    proptest! {
        #[test]
        fn a_cut_text_fits_and_is_not_cut_again(text in "[aé你😀\n]{0,600}", max in 0..2_000_usize) {
            if let Some(cut) = head_and_tail(&text, max) {
                prop_assert!(cut.len() <= max.max(NOTE_BYTES), "{} > {max}", cut.len());
                prop_assert!(cut.len() < text.len());
                if max >= NOTE_BYTES {
                    prop_assert_eq!(head_and_tail(&cut, max), None);
                }
            } else {
                prop_assert!(text.len() <= max || text.len() <= NOTE_BYTES || max < NOTE_BYTES * 2);
            }
            prop_assert!(head(&text, max).len() <= max.max(3));
        }
    }
}
