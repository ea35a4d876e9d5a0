//! Splits a file into searchable chunks: at definitions if its language is known, else at blank lines. Pure.

use agentd_repo_map::Definition;

/// The target number of lines of a chunk,
const USUAL: usize = 40;
/// the maximum,
const MOST: usize = 60;
/// and the minimum before a split.
const LEAST: usize = 12;
/// The maximum size of a chunk in bytes; a longer line is a chunk of its own.
const MAX_BYTES: usize = 8_192;

/// A chunk of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its first line, from 1.
    pub(crate) first: u32,
    /// Its last line.
    pub(crate) last: u32,
    /// The names that it defines.
    pub(crate) names: Vec<String>,
}

/// How suitable a line is as the start of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Inside a block.
    Middle,
    /// After a blank line.
    AfterBlank,
    /// After a blank line, and not indented.
    Outer,
    /// At the start of a definition.
    Definition,
}

/// The chunks of a file in order. They cover all lines, but chunks without any word are omitted.
pub(crate) fn chunks(lines: &[&str], definitions: &[Definition]) -> Vec<Chunk> {
    let fits = fits(lines, definitions);
    let mut chunks = Vec::new();
    let mut from = 0;
    while from < lines.len() {
        let upto = end(lines, &fits, from).max(from + 1);
        let piece = lines.get(from..upto).unwrap_or_default();
        if piece.iter().any(|line| line.contains(char::is_alphanumeric)) {
            chunks.push(chunk(from, upto, definitions));
        }
        from = upto;
    }
    chunks
}

fn chunk(from: usize, upto: usize, definitions: &[Definition]) -> Chunk {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let (first, last) = (number(from + 1), number(upto));
    let mut names: Vec<String> = Vec::new();
    for definition in definitions {
        if (first..=last).contains(&definition.line) && !names.contains(&definition.name) {
            names.push(definition.name.clone());
        }
    }
    Chunk { first, last, names }
}

/// The end of the chunk that starts at `from`: before the most suitable line near the target length.
fn end(lines: &[&str], fits: &[Fit], from: usize) -> usize {
    let (mut most, mut bytes) = (from, 0_usize);
    for line in lines.get(from..).unwrap_or_default().iter().take(MOST) {
        bytes = bytes.saturating_add(line.len() + 1);
        if bytes > MAX_BYTES {
            break;
        }
        most += 1;
    }
    if most == lines.len() || most <= from + LEAST {
        return most;
    }
    let goal = from + USUAL;
    let best =
        (from + LEAST..=most).max_by_key(|at| (fits.get(*at).copied(), std::cmp::Reverse(at.abs_diff(goal))));
    best.unwrap_or(most)
}

fn fits(lines: &[&str], definitions: &[Definition]) -> Vec<Fit> {
    let mut fits: Vec<Fit> = Vec::with_capacity(lines.len());
    let mut after_blank = true;
    for line in lines {
        let blank = line.trim().is_empty();
        let outer = !line.starts_with(char::is_whitespace);
        fits.push(match (blank, after_blank, outer) {
            (true, ..) | (_, false, _) => Fit::Middle,
            (false, true, false) => Fit::AfterBlank,
            (false, true, true) => Fit::Outer,
        });
        after_blank = blank;
    }
    for definition in definitions {
        let line = usize::try_from(definition.line).unwrap_or_default();
        if let Some(at) = line.checked_sub(1)
            && let Some(fit) = fits.get_mut(begins(lines, at))
        {
            *fit = Fit::Definition;
        }
    }
    fits
}

/// The first line of a definition, including preceding comments, attributes and decorators.
fn begins(lines: &[&str], mut at: usize) -> usize {
    let about = |line: &&str| {
        let line = line.trim_start();
        ["//", "#", "/*", "*", "@", "--", "\"\"\""]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    while at > 0 && lines.get(at - 1).is_some_and(about) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_repo_map::Kind;
    use proptest::prelude::*;

    fn definition(name: &str, line: u32) -> Definition {
        Definition {
            name: name.into(),
            kind: Kind::Function,
            line,
        }
    }

    fn ranges(chunks: &[Chunk]) -> Vec<(u32, u32)> {
        chunks.iter().map(|chunk| (chunk.first, chunk.last)).collect()
    }

    #[test]
    fn a_small_file_is_one_chunk() {
        let lines = ["fn a() {}", "", "fn b() {}"];
        let chunks = chunks(&lines, &[definition("a", 1), definition("b", 3)]);
        assert_eq!(ranges(&chunks), [(1, 3)]);
        assert_eq!(chunks[0].names, ["a", "b"]);
    }

    #[test]
    fn a_chunk_starts_before_a_definition_and_its_comments() {
        let mut lines = vec!["    work();"; 100];
        lines[34] = "/// Says what it does.";
        lines[35] = "#[test]";
        lines[36] = "fn second() {";
        let found = chunks(&lines, &[definition("first", 1), definition("second", 37)]);
        assert_eq!(ranges(&found), [(1, 34), (35, 74), (75, 100)]);
        assert_eq!(found[1].names, ["second"]);
    }

    #[test]
    fn without_definitions_chunks_start_at_blank_lines() {
        let mut lines = vec!["  indented text"; 100];
        (lines[30], lines[31]) = ("", "A new heading");
        (lines[38], lines[39]) = ("", "  nearer, but indented");
        assert_eq!(ranges(&chunks(&lines, &[]))[0], (1, 31));
    }

    #[test]
    fn long_lines_make_small_chunks_and_a_huge_one_is_alone() {
        let (long, huge) = ("x".repeat(5_000), "y".repeat(1_000_000));
        let lines = [long.as_str(), &long, &huge, "z"];
        assert_eq!(ranges(&chunks(&lines, &[])), [(1, 1), (2, 2), (3, 3), (4, 4)]);
    }

    #[test]
    fn lines_without_words_are_left_out() {
        assert!(chunks(&["", "  ", "----"], &[]).is_empty());
        assert!(chunks(&[], &[]).is_empty());
    }

    proptest! {
        #[test]
        fn every_line_with_a_word_is_in_one_chunk(
            lines in proptest::collection::vec("[a-z{} \t]{0,12}", 0..300),
            at in proptest::collection::vec(0_u32..400, 0..40),
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let definitions: Vec<Definition> = at.iter().map(|line| definition("d", *line)).collect();
            let chunks = chunks(&lines, &definitions);
            let mut next = 1;
            for chunk in &chunks {
                prop_assert!(chunk.first >= next && chunk.last >= chunk.first);
                prop_assert!(chunk.last - chunk.first < 60);
                for line in next..chunk.first {
                    prop_assert!(!lines[line as usize - 1].contains(char::is_alphanumeric));
                }
                next = chunk.last + 1;
            }
            for line in next as usize..=lines.len() {
                prop_assert!(!lines[line - 1].contains(char::is_alphanumeric));
            }
        }
    }
}
