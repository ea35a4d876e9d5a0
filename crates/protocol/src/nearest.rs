//! "Did you mean": the known word that a mistyped one stands for.

/// Longer words are compared by their beginning.
const COMPARED: usize = 64;

/// The word of `known` nearest to `word`, if it is close enough for a typing error: one edit, and one more for each three
/// characters. Letter case does not count.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| -> String { word.chars().take(COMPARED).flat_map(char::to_lowercase).collect() };
    let word = plain(word);
    let most = 1 + word.chars().count() / 3;
    let near = known
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, &plain(name)), name))
        .filter(|(distance, _)| *distance <= most);
    // Of equally near words, the first.
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_suggested_and_others_are_not() {
        let keys = ["max_turns", "turn_cap", "on_limit"];
        for (given, known, expected) in [
            ("max_turn", &keys[..], Some("max_turns")),
            ("Onlimit", &keys, Some("on_limit")),
            ("colour", &keys, None),
            ("Reed", &["Read", "Write"], Some("Read")),
            ("Grpe", &["Glob", "Grep", "Ls"], Some("Grep")),
            ("Telephone", &["Glob", "Grep", "Ls"], None),
            ("deploy", &["Read", "Write"], None),
            ("file_pth", &["offset", "file_path"], Some("file_path")),
            ("tols", &["tool", "todo"], Some("tool")),
            ("", &["a", "bb"], Some("a")),
            ("x", &[], None),
        ] {
            assert_eq!(nearest(given, known.iter().copied()), expected, "{given}");
        }
        let long = "x".repeat(1_000_000);
        assert_eq!(nearest(&long, [long.as_str()]), Some(long.as_str()));
    }
}
