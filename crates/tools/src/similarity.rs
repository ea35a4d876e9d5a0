//! Finds lines that are similar to a given text. Pure.

use similar::TextDiff;
use std::time::Duration;

/// The longest text to compare.
const MAX_OLD: usize = 16 << 10;
/// How many places to compare character by character, the most promising first.
const MAX_COMPARED: usize = 200;
/// The timeout of one such comparison; beyond it the similarity comes out lower.
const COMPARE_WITHIN: Duration = Duration::from_millis(50);

/// A place that is similar to the given text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Likeness {
    /// Its first byte.
    pub(crate) start: usize,
    /// The byte after it.
    pub(crate) end: usize,
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// From 0 (nothing in common) to 1 (equal).
    pub(crate) ratio: f64,
}

/// Why no place is similar enough.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unlike {
    /// The content is not text.
    NotText,
    /// The text is too long.
    TooLong { max: usize },
    /// The most similar place, if there is one.
    Best(Option<Likeness>),
}

/// The places of at least this similarity, in file order, without overlaps.
pub(crate) fn similar(content: &[u8], old: &str, min: f64) -> Result<Vec<Likeness>, Unlike> {
    if old.len() > MAX_OLD {
        return Err(Unlike::TooLong { max: MAX_OLD });
    }
    let content = std::str::from_utf8(content).map_err(|_| Unlike::NotText)?;
    let mut places = candidates(content, old);
    places.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    places.truncate(MAX_COMPARED);
    for place in &mut places {
        place.ratio = ratio(old, content.get(place.start..place.end).unwrap_or_default());
    }
    places.sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then(a.start.cmp(&b.start)));
    let best = places.first().copied();
    let mut found: Vec<Likeness> = Vec::new();
    for place in places.into_iter().filter(|place| place.ratio >= min) {
        if found
            .iter()
            .all(|other| place.end <= other.start || other.end <= place.start)
        {
            found.push(place);
        }
    }
    if found.is_empty() {
        return Err(Unlike::Best(best));
    }
    found.sort_by_key(|place| place.start);
    Ok(found)
}

/// Every run of as many lines as the text has, with an upper bound of its similarity: the characters that both share in
/// any order.
fn candidates(content: &str, old: &str) -> Vec<Likeness> {
    let lines = old.lines().count().max(1);
    let whole = old.ends_with('\n');
    let wanted = histogram(old);
    let mut starts = vec![0];
    starts.extend(content.match_indices('\n').map(|(at, _)| at + 1));
    starts.dedup();
    let place = |(at, start): (usize, &usize)| {
        let next = starts.get(at + lines).copied();
        let mut end = match next {
            Some(next) => next,
            None if at + lines == starts.len() => content.len(),
            None => return None,
        };
        if !whole {
            let text = content.get(*start..end)?;
            let text = text
                .strip_suffix('\n')
                .map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
            end = start + text.len();
        }
        let text = content.get(*start..end).filter(|text| !text.is_empty())?;
        Some(Likeness {
            start: *start,
            end,
            line: at + 1,
            ratio: at_most(&wanted, old.len(), text),
        })
    };
    starts.iter().enumerate().filter_map(place).collect()
}

fn histogram(text: &str) -> [u32; 256] {
    let mut counts = [0; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    counts
}

fn at_most(wanted: &[u32; 256], length: usize, text: &str) -> f64 {
    // Skip texts of a very different length.
    if text.len() > length.saturating_mul(3) || length > text.len().saturating_mul(3) {
        return 0.0;
    }
    let shared: u32 = wanted
        .iter()
        .zip(histogram(text))
        .map(|(one, other)| (*one).min(other))
        .sum();
    let total = u32::try_from(length + text.len()).unwrap_or(u32::MAX);
    2.0 * f64::from(shared) / f64::from(total.max(1))
}

fn ratio(one: &str, other: &str) -> f64 {
    TextDiff::configure()
        .timeout(COMPARE_WITHIN)
        .diff_chars(one, other)
        .ratio()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn one() {\n    let total = 1;\n}\nfn two() {\n    let other = 2;\n}\n";

    #[test]
    fn the_most_similar_place_is_found() {
        let found = similar(FILE.as_bytes(), "fn one() {\n   let totals = 1;\n}", 0.9).unwrap();
        let places: Vec<(usize, &str)> = found
            .iter()
            .map(|like| (like.line, &FILE[like.start..like.end]))
            .collect();
        assert_eq!(places, [(1, "fn one() {\n    let total = 1;\n}")]);
        let whole = similar(FILE.as_bytes(), "    let other = 3;\n", 0.9).unwrap();
        assert_eq!(&FILE[whole[0].start..whole[0].end], "    let other = 2;\n");
    }

    #[test]
    fn insufficient_similarity_is_reported() {
        let Err(Unlike::Best(Some(best))) = similar(FILE.as_bytes(), "    let ether = 3;", 0.99) else {
            panic!("it is not similar enough");
        };
        assert_eq!(best.line, 5);
        assert!((0.85..0.95).contains(&best.ratio), "{best:?}");
    }

    #[test]
    fn several_places_are_returned_in_order() {
        let found = similar(b"let a = 10;\nx\nlet b = 10;\n", "let c = 10;", 0.9).unwrap();
        assert_eq!(found.iter().map(|like| like.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn the_length_is_bounded_exactly() {
        let text = "x".repeat(MAX_OLD);
        assert_eq!(similar(text.as_bytes(), &text, 1.0).unwrap().len(), 1);
        assert_eq!(
            similar(b"", &format!("{text}x"), 1.0),
            Err(Unlike::TooLong { max: MAX_OLD })
        );
        assert_eq!(similar(b"\xff", "x", 0.9), Err(Unlike::NotText));
        assert_eq!(similar(b"", "x", 0.9), Err(Unlike::Best(None)));
    }
}
