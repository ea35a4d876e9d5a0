//! "Did you mean": finds the nearest name.

/// The name in `names` nearest to `word`, if it is close enough for a typing error.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + word.chars().count() / 3;
    names
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// The edit distance of two short words, ignoring letter case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, up) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != *y)).min(left + 1).min(up + 1);
            diagonal = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_suggests_its_key_and_nonsense_suggests_none() {
        let keys = ["max_turns", "turn_cap", "on_limit"];
        assert_eq!(nearest("max_turn", keys), Some("max_turns"));
        assert_eq!(nearest("Onlimit", keys), Some("on_limit"));
        assert_eq!(nearest("colour", keys), None);
    }
}
