//! The ranking of hits. Pure.
//!
//! Each list of candidates ranks them; reciprocal rank fusion combines the lists. The text of a candidate adds to its
//! score: a line or the chunk contains the words, it defines the name, its path matches.

use crate::words::{Wanted, parts, words};
use std::collections::BTreeMap;

/// Reduces the difference between the top ranks.
const SOFT: f64 = 60.0;
/// The weights of the signals, relative to 1 for the first rank in every list.
const LINE: f64 = 0.35;
const PIECE: f64 = 0.15;
const SYMBOL: f64 = 0.25;
const SCOPE: f64 = 0.10;
const DEFINITION: f64 = 0.08;
const PATH: f64 = 0.06;
const TEXT: f64 = 0.03;
/// Maximum number of hits per file.
const OF_A_FILE: usize = 3;

/// Combines lists of candidates into scores from 0 to 1, the best first.
pub(crate) fn fuse(lists: &[Vec<i64>]) -> Vec<(i64, f64)> {
    let mut worth: BTreeMap<i64, f64> = BTreeMap::new();
    let full = lists.iter().filter(|list| !list.is_empty()).count().max(1);
    for list in lists {
        for (place, id) in list.iter().enumerate() {
            let place = u32::try_from(place).map_or(f64::MAX, f64::from);
            *worth.entry(*id).or_default() += (SOFT + 1.0) / (SOFT + 1.0 + place);
        }
    }
    let full = u32::try_from(full).map_or(1.0, f64::from);
    let mut fused: Vec<(i64, f64)> = worth.into_iter().map(|(id, worth)| (id, worth / full)).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    fused
}

/// The data of a candidate.
#[derive(Debug, Clone)]
pub(crate) struct Candidate<'a> {
    pub(crate) path: &'a str,
    pub(crate) names: &'a [&'a str],
    pub(crate) lines: &'a [&'a str],
}

/// The score from the signals, and the index of the best line.
pub(crate) fn signs(wanted: &Wanted, candidate: &Candidate<'_>) -> (f64, usize) {
    let looked_for = if wanted.names.is_empty() {
        &wanted.words
    } else {
        &wanted.names
    };
    let count = |number: usize| u32::try_from(number).map_or(0.0, f64::from);
    let all = count(looked_for.len()).max(1.0);
    let mut seen = vec![false; looked_for.len()];
    let (mut best, mut best_line, mut best_defines) = (0.0_f64, 0, false);
    let mut literally = false;
    for (at, line) in candidate.lines.iter().enumerate() {
        let line = line.to_lowercase();
        literally |= !wanted.text.is_empty() && line.contains(&wanted.text);
        let mut here = 0.0;
        for (word, seen) in looked_for.iter().zip(&mut seen) {
            if has(&line, word) {
                here += 1.0;
                *seen = true;
            }
        }
        let defines = here > 0.0 && defines(&line, candidate.names);
        if (here, defines) > (best, best_defines) {
            (best, best_line, best_defines) = (here, at, defines);
        }
    }
    let symbol = candidate
        .names
        .iter()
        .map(|name| alike(wanted, name))
        .fold(0.0, f64::max);
    let in_piece = count(seen.iter().filter(|seen| **seen).count()) / all;
    let yes = |is: bool| f64::from(u8::from(is));
    let added = LINE * best / all
        + PIECE * in_piece
        + SYMBOL * symbol
        + SCOPE * scope(wanted, candidate.path)
        + DEFINITION * yes(best_defines || symbol >= 1.0)
        + PATH
            * yes(wanted
                .words
                .iter()
                .any(|word| candidate.path.to_lowercase().contains(word)))
        + TEXT * yes(literally);
    (added, best_line)
}

/// Whether a line contains a word or its stem.
fn has(line: &str, word: &str) -> bool {
    line.contains(word) || stem(word).is_some_and(|stem| line.contains(stem))
}

fn stem(word: &str) -> Option<&str> {
    ["ing", "ed", "es", "s"]
        .iter()
        .find_map(|end| word.strip_suffix(end))
        .filter(|stem| stem.len() >= 3)
}

/// Whether a lower-case line contains a name that the chunk defines.
fn defines(line: &str, names: &[&str]) -> bool {
    words(line).any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// How well a name matches the query; 1 for an exact match.
fn alike(wanted: &Wanted, name: &str) -> f64 {
    let small = name.to_lowercase();
    if wanted.names.contains(&small) || (wanted.names.is_empty() && wanted.words == [small.as_str()]) {
        return 1.0;
    }
    let own: Vec<String> = parts(name).map(str::to_lowercase).collect();
    let shared = own.iter().filter(|part| wanted.words.contains(part)).count();
    let most = own.len().max(wanted.words.len()).max(1);
    let share = |number: usize| u32::try_from(number).map_or(0.0, f64::from);
    share(shared) / share(most)
}

/// Whether the name of the file or its directory contains one of the words.
fn scope(wanted: &Wanted, path: &str) -> f64 {
    let mut ends = path.rsplit('/').take(2).flat_map(words).flat_map(parts);
    f64::from(u8::from(ends.any(|part| {
        let part = part.to_lowercase();
        wanted.words.contains(&part)
    })))
}

/// The best hits first, with a limit per file.
pub(crate) fn choose<T>(mut found: Vec<(f64, T)>, most: usize, file: impl Fn(&T) -> String) -> Vec<T> {
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut of_file: BTreeMap<String, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for (_, hit) in found {
        let count = of_file.entry(file(&hit)).or_default();
        *count += 1;
        if *count <= OF_A_FILE && chosen.len() < most {
            chosen.push(hit);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_ranked_high_in_both_lists_comes_first() {
        let fused = fuse(&[vec![1, 2, 3], vec![2, 3]]);
        let ids: Vec<i64> = fused.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [2, 3, 1]);
        assert!(fused.iter().all(|(_, worth)| (0.0..=1.0).contains(worth)));
        assert_eq!(fuse(&[vec![7], vec![]]), [(7, 1.0)]);
        assert!(fuse(&[]).is_empty());
    }

    fn worth(query: &str, path: &str, names: &[&str], lines: &[&str]) -> f64 {
        let candidate = Candidate { path, names, lines };
        signs(&Wanted::read(query), &candidate).0
    }

    #[test]
    fn the_definition_comes_before_its_uses() {
        let query = "where is open_session defined";
        let defined = worth(query, "a.rs", &["open_session"], &["fn open_session() {"]);
        let used = worth(query, "a.rs", &["other"], &["open_session();", "open_session();"]);
        assert!(defined > used + 0.3, "{defined} {used}");
    }

    #[test]
    fn words_find_the_name_that_they_form() {
        let query = "open a session";
        let whole = worth(query, "a.rs", &["openSession"], &["function openSession() {"]);
        let part = worth(query, "a.rs", &["open_file"], &["fn open_file() {"]);
        assert!(whole > part, "{whole} {part}");
    }

    #[test]
    fn the_path_of_the_file_counts() {
        let at = |path| worth("retry budget", path, &[], &["nothing"]);
        assert!(at("src/retry/mod.rs") > at("src/other/mod.rs"));
    }

    #[test]
    fn the_best_line_is_reported() {
        let lines = ["use x::open_session;", "", "pub fn open_session() {"];
        let candidate = Candidate {
            path: "a.rs",
            names: &["open_session"],
            lines: &lines,
        };
        assert_eq!(signs(&Wanted::read("zzz"), &candidate).1, 0);
        let other = Candidate {
            lines: &["// nothing", "open_session()"],
            ..candidate
        };
        assert_eq!(signs(&Wanted::read("open_session"), &other).1, 1);
    }

    #[test]
    fn one_file_does_not_fill_all_results() {
        let found: Vec<(f64, (&str, u32))> = (0..6_u32)
            .map(|n| (f64::from(n), ("a", n)))
            .chain([(0.5, ("b", 9))])
            .collect();
        let chosen = choose(found, 5, |hit| hit.0.to_owned());
        assert_eq!(chosen, [("a", 5), ("a", 4), ("a", 3), ("b", 9)]);
    }
}
