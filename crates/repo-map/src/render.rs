//! Renders a map: the highest-ranked definitions that fit, by file, each with its line.

use std::collections::BTreeMap;

/// A longer line is cut.
const MAX_LINE: usize = 120;

/// The approximate number of tokens of a text. Tokenizers differ; code averages about four bytes per token.
#[must_use]
pub const fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// A rendered map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendered {
    /// The text; empty when nothing fits.
    pub text: String,
    /// The number of definitions in it.
    pub definitions: usize,
    /// The number of files in it.
    pub files: usize,
}

/// Renders as many of `lines` (path, line number, its text; highest weight first) as fit into `budget` tokens. Files
/// are in the order of their highest-ranked line.
#[must_use]
pub fn render(lines: &[(&str, u32, &str)], budget: usize) -> Rendered {
    let (mut fits, mut most) = (0, lines.len());
    let mut best = Rendered::default();
    while fits < most {
        let half = (fits + most).div_ceil(2);
        let rendered = written(lines.get(..half).unwrap_or_default());
        if tokens(&rendered.text) <= budget {
            fits = half;
            best = rendered;
        } else {
            most = half - 1;
        }
    }
    best
}

fn written(lines: &[(&str, u32, &str)]) -> Rendered {
    let mut order: Vec<&str> = Vec::new();
    let mut files: BTreeMap<&str, BTreeMap<u32, &str>> = BTreeMap::new();
    for (path, number, text) in lines {
        files
            .entry(path)
            .or_insert_with(|| {
                order.push(path);
                BTreeMap::new()
            })
            .insert(*number, text);
    }
    let mut text = String::new();
    let mut definitions = 0;
    for path in &order {
        text.push_str(path);
        text.push_str(":\n");
        for (number, line) in files.get(path).into_iter().flatten() {
            definitions += 1;
            text.push_str(&format!("{number:>5}| {}\n", cut(line)));
        }
    }
    Rendered {
        text,
        definitions,
        files: order.len(),
    }
}

/// A line without surrounding white space, without control characters, and of bounded length.
fn cut(line: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line = line.trim();
    let mut short: String = line.chars().take(MAX_LINE).map(clean).collect();
    if short.len() < line.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_map_is_by_file_and_line() {
        let lines = [
            ("b.rs", 9, "  pub fn second() {"),
            ("a.rs", 1, "fn other()"),
            ("b.rs", 2, "struct First;"),
        ];
        let map = render(&lines, 1_000);
        assert_eq!(
            map.text,
            "b.rs:\n    2| struct First;\n    9| pub fn second() {\na.rs:\n    1| fn other()\n"
        );
        assert_eq!((map.definitions, map.files), (3, 2));
    }

    #[test]
    fn long_lines_and_control_characters_do_not_come_through() {
        let long = format!("fn f(\u{1b}[2J{})", "x".repeat(200));
        let map = render(&[("a.rs", 1, &long)], 1_000);
        assert!(map.text.contains("...") && !map.text.contains('\u{1b}') && map.text.len() < 150);
    }

    proptest! {
        #[test]
        fn a_map_keeps_its_budget_and_wastes_no_line(
            lines in prop::collection::vec((0..5_u8, 1..500_u32, "[a-z ]{0,150}"), 0..60),
            budget in 0..600_usize,
        ) {
            let paths = ["a", "b/c", "d", "e", "f"];
            let lines: Vec<(&str, u32, &str)> = lines
                .iter()
                .map(|(path, number, text)| (paths[usize::from(*path)], *number, text.as_str()))
                .collect();
            let map = render(&lines, budget);
            prop_assert!(tokens(&map.text) <= budget);
            let all = written(&lines);
            prop_assert!(map == all || tokens(&all.text) > budget);
        }
    }
}
