//! Text that no model should write.

use crate::{DEEPEST, Ending, decode, keep_halves, mend, value_at};
use proptest::collection::vec;
use proptest::prelude::*;

/// Half a million bytes of anything are read in one pass. With a pass for each, this test would not end.
#[test]
fn i6_hostile_text_is_read_in_linear_time() {
    for unit in [
        "{",
        "{}",
        "[",
        "[{",
        "{\"",
        "{\"a\":",
        "{\"a\":1,",
        "{\"a\":\"b\"}",
        "{a:",
        "\\",
        "\"\\ud83d",
        "```",
        "```{",
        "<|a|>",
        "{}<|a|>",
        "{}```",
        "}",
        "'",
        "0",
        "{}\n",
        "True",
        "\u{0}",
    ] {
        for start in ["", "{\"a\":", "{\"a\":\"", "{\"a\":[", "{}"] {
            let text = [start, &unit.repeat((1 << 19) / unit.len())].concat();
            let _ = decode(&text, Ending::Own);
            let _ = decode(&format!("\"{text}\""), Ending::Own);
            let _ = value_at(&text, 0, Ending::Cut);
            assert!(mend(&keep_halves(&text).unwrap_or_default()).len() <= text.len());
        }
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(decode(&format!("{{}}{}", nested(DEEPEST)), Ending::Own).is_ok());
    let error = decode(&format!("{{}}{}", nested(DEEPEST + 1)), Ending::Own).unwrap_err();
    assert_eq!(
        error.to_string(),
        "brackets are nested more than 100 deep (line 1, column 503, at \"{\\\"a\\\":1}}}}}}}}}}\")"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(pieces in vec(prop_oneof![
        Just("{".to_owned()), Just("}".to_owned()), Just("[".to_owned()), Just("]".to_owned()), Just("\"".to_owned()),
        Just("'".to_owned()), Just("\\".to_owned()), Just("\\u".to_owned()), Just("\\ud83d".to_owned()), Just(",".to_owned()),
        Just(":".to_owned()), Just("```".to_owned()), Just("<|".to_owned()), Just("|>".to_owned()), Just("1".to_owned()),
        Just("None".to_owned()), Just("\n".to_owned()), Just("é😀".to_owned()), ".{0,4}",
    ], 0..40), at in 0_usize..60) {
        let text = pieces.concat();
        for ending in [Ending::Own, Ending::Cut] {
            if let Err(fault) = decode(&text, ending) {
                prop_assert!(!fault.to_string().is_empty());
            }
            if let Ok(found) = value_at(&text, at, ending) {
                prop_assert!(text.is_char_boundary(found.end));
            }
        }
        let _ = keep_halves(&text).map(|kept| mend(&kept));
    }
}
