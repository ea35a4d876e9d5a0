//! Finds known secrets in whatever form they appear.

use super::decoded::{Decoded, joined, unescaped};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// A shorter secret would also match harmless words.
pub(super) const SHORTEST: usize = 8;
/// How many escapes may be around each other. Each costs a search of the text, if it is there.
const LAYERS: usize = 3;
/// If all forms together have at most this many bytes, the search uses its fastest automaton, of a few megabytes.
const FAST: usize = 8 << 10;

/// The known secrets.
pub(super) struct Known {
    forms: Vec<String>,
    find: AhoCorasick,
}

impl Known {
    /// Adds a secret to those that are known already; `None` if they are too many.
    pub(super) fn with(before: Option<Self>, secret: &str) -> Option<Self> {
        let mut all = before.map(|known| known.forms).unwrap_or_default();
        for form in forms(secret) {
            if form.len() >= SHORTEST && !all.contains(&form) {
                all.push(form);
            }
        }
        // If one secret is a prefix of another, the longer one matches. Matching ignores ASCII case.
        let bytes: usize = all.iter().map(String::len).sum();
        let find = AhoCorasick::builder()
            .kind((bytes <= FAST).then_some(AhoCorasickKind::DFA))
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&all);
        find.ok().map(|find| Self { forms: all, find })
    }

    /// The ranges of the text that hold a secret, in order and apart from each other. Each layer of escapes is searched
    /// without its line breaks; what is found there is traced back to the text.
    pub(super) fn ranges(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut layers: Vec<Decoded> = Vec::new();
        loop {
            let current = layers.last().map_or(text, |layer| layer.bytes.as_slice());
            let lines = joined(current);
            let searched = lines.as_ref().map_or(current, |lines| lines.bytes.as_slice());
            for hit in self.find.find_iter(searched) {
                let range = (hit.start(), hit.end());
                let range = lines.as_ref().map_or(range, |lines| lines.origin(range));
                found.push(
                    layers
                        .iter()
                        .rev()
                        .fold(range, |range, layer| layer.origin(range)),
                );
            }
            if layers.len() == LAYERS {
                break;
            }
            match unescaped(current) {
                Some(layer) => layers.push(layer),
                None => break,
            }
        }
        merged(found)
    }
}

/// Joins ranges that overlap.
fn merged(mut ranges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    ranges.sort_unstable();
    let mut apart: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match apart.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => apart.push((start, end)),
        }
    }
    apart
}

/// The forms in which a secret may appear, apart from escapes: verbatim, hexadecimal, and base64 at each of three
/// alignments in both alphabets. One search finds all forms, so their number does not matter. None has line breaks, since
/// they are not searched either.
fn forms(secret: &str) -> Vec<String> {
    let flat = joined(secret.as_bytes()).and_then(|flat| String::from_utf8(flat.bytes).ok());
    let mut forms = vec![
        flat.unwrap_or_else(|| secret.to_owned()),
        secret.replace(' ', "+"),
    ];
    forms.push(secret.bytes().map(|byte| format!("{byte:02x}")).collect());
    for before in 0..3 {
        forms.push(base64_at(secret.as_bytes(), before, b'+', b'/'));
        forms.push(base64_at(secret.as_bytes(), before, b'-', b'_'));
    }
    forms
}

/// The base64 characters that depend only on the secret, if `before` bytes precede it.
fn base64_at(secret: &[u8], before: usize, plus: u8, slash: u8) -> String {
    let bits: Vec<bool> = secret
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
        .collect();
    // Skips the bits that share a base64 character with the preceding bytes.
    let skip = (6 - before * 8 % 6) % 6;
    let whole = bits.get(skip..).unwrap_or_default().chunks_exact(6);
    let letter = |sextet: &[bool]| {
        let value = sextet.iter().fold(0_u8, |value, bit| value << 1 | u8::from(*bit));
        match value {
            0..=25 => b'A' + value,
            26..=51 => b'a' + value - 26,
            52..=61 => b'0' + value - 52,
            62 => plus,
            _ => slash,
        }
    };
    whole.map(|sextet| char::from(letter(sextet))).collect()
}
