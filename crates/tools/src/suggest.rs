//! Guesses the word that was meant.

/// The word nearest to `given`, if it is near enough to suggest.
pub(crate) fn nearest<'a>(given: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    words
        .into_iter()
        .map(|word| (distance(&given, &word.to_lowercase()), word))
        .min()
        .filter(|(distance, _)| *distance <= given.chars().count().div_ceil(3))
        .map(|(_, word)| word)
}

/// The Levenshtein distance; bounded by cutting very long words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for ((above_left, above), y) in row.iter().zip(row.iter().skip(1)).zip(&b) {
            left = (above_left + usize::from(x != *y)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_suggested_and_others_are_not() {
        assert_eq!(nearest("Reed", ["Read", "Write"]), Some("Read"));
        assert_eq!(nearest("file_pth", ["offset", "file_path"]), Some("file_path"));
        assert_eq!(nearest("deploy", ["Read", "Write"]), None);
        assert_eq!(
            (
                distance("", "abc"),
                distance("kitten", "sitting"),
                distance("a", "a")
            ),
            (3, 3, 0)
        );
    }
}
