//! Parses mentions: `@src/main.rs`, `@src/main.rs:10-20`, `@docs/`, `@"a name with blanks.md"`. The results are only
//! candidates: a mention that names nothing in the working directory stays text.

/// A piece of text that may name a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The path as written, without `@`, quotes and line numbers.
    pub path: String,
    /// The first line, from 1, and the last line.
    pub lines: Option<(u32, u32)>,
}

/// The longest path.
const MAX_PATH: usize = 1_024;

impl Mention {
    /// Whether the path starts at the root or the home directory and is thus outside the working directory.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.path.starts_with(['/', '~'])
    }
}

/// The mentions in a text, in order and without duplicates. An `@` inside a word (an e-mail address), after a backslash,
/// or before an absolute path is plain text.
#[must_use]
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut found = written(text);
    found.retain(|mention| !mention.is_outside());
    found
}

/// What looks like a mention but is not one, because it names a place outside of every working directory. The writer
/// may have meant one.
#[must_use]
pub fn outside_mentions(text: &str) -> Vec<Mention> {
    let mut found = written(text);
    found.retain(Mention::is_outside);
    found
}

fn written(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut before = ' ';
    let mut fenced = false;
    let mut line_start = true;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if line_start && rest.trim_start_matches(' ').starts_with("```") {
            fenced = !fenced;
        }
        line_start = next == '\n';
        let after = rest.get(next.len_utf8()..).unwrap_or_default();
        let begins =
            before.is_whitespace() || matches!(before, '(' | '[' | '{' | '"' | '\'' | ',' | ';' | ':');
        let read = (next == '@' && begins && !fenced)
            .then(|| mention(after))
            .flatten();
        match read {
            Some((mention, length)) => {
                if !found.contains(&mention) {
                    found.push(mention);
                }
                before = '@';
                rest = after.get(length..).unwrap_or_default();
            }
            None => {
                before = next;
                rest = after;
            }
        }
    }
    found
}

/// Parses one mention after its `@`; returns it with its length in bytes.
fn mention(text: &str) -> Option<(Mention, usize)> {
    let (word, length) = match text.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find(['"', '\n'])?;
            if !quoted.get(end..)?.starts_with('"') {
                return None;
            }
            let tail = lines_length(quoted.get(end + 1..)?);
            let path = quoted.get(..end)?;
            let lines = lines(quoted.get(end + 1..end + 1 + tail)?);
            return named(path, lines).map(|mention| (mention, end + 2 + tail));
        }
        None => {
            let end = text.find(ends_a_word).unwrap_or(text.len());
            let word = text
                .get(..end)?
                .trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
            (word, word.len())
        }
    };
    let at = [word.rfind(":"), word.rfind("#L")].into_iter().flatten();
    let split = at
        .filter_map(|at| Some((at, lines(word.get(at..)?)?)))
        .next_back();
    let (path, lines) = match split {
        Some((at, lines)) => (word.get(..at)?, Some(lines)),
        None => (word, None),
    };
    named(path, lines).map(|mention| (mention, length))
}

fn ends_a_word(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '|' | '@'
        )
}

fn named(path: &str, lines: Option<(u32, u32)>) -> Option<Mention> {
    let fine = !path.is_empty()
        && path.len() <= MAX_PATH
        && !path.starts_with('-')
        && !matches!(path, "/" | "~")
        && !path.chars().any(char::is_control);
    fine.then(|| Mention {
        path: path.to_owned(),
        lines,
    })
}

/// The length in bytes of `:10`, `:10-20` or `#L10-L20` at the start of a text.
fn lines_length(text: &str) -> usize {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '#' | 'L' | '-')))
        .unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default();
    if lines(word).is_some() { end } else { 0 }
}

/// Parses `:10`, `:10-20`, `#L10`, `#L10-L20`.
fn lines(text: &str) -> Option<(u32, u32)> {
    let text = text.strip_prefix(':').or_else(|| text.strip_prefix("#L"))?;
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (first, last.strip_prefix('L').unwrap_or(last)),
        None => (text, text),
    };
    let (first, last) = (number(first)?, number(last)?);
    (first >= 1 && first <= last).then_some((first, last))
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(String, Option<(u32, u32)>)> {
        mentions(text)
            .into_iter()
            .map(|mention| (mention.path, mention.lines))
            .collect()
    }

    #[test]
    fn files_directories_and_lines_are_read() {
        let rows = [
            ("@src/main.rs", "src/main.rs", None),
            ("see @src/main.rs, please", "src/main.rs", None),
            ("(@docs/)", "docs/", None),
            ("@a.rs:10", "a.rs", Some((10, 10))),
            ("@a.rs:10-20.", "a.rs", Some((10, 20))),
            ("@a.rs#L10-L20", "a.rs", Some((10, 20))),
            ("@a.rs#L3", "a.rs", Some((3, 3))),
            ("@a.rs:20-10", "a.rs:20-10", None),
            ("@a.rs:0", "a.rs:0", None),
            ("@\"a b.md\"", "a b.md", None),
            ("@\"a b.md\":2-3 x", "a b.md", Some((2, 3))),
            ("@结果.txt", "结果.txt", None),
            ("what about @x.md?", "x.md", None),
        ];
        for (text, path, lines) in rows {
            assert_eq!(read(text), [(path.to_owned(), lines)], "{text}");
        }
    }

    #[test]
    fn addresses_and_foreign_paths_are_text() {
        for text in [
            "ana@example.com",
            "mail <ana@example.com>",
            "@/etc/passwd",
            "@~/.ssh/id_rsa",
            "\\@a.rs",
            "a@b",
            "@",
            "@ a.rs",
            "`@a.rs`",
            "```\n@a.rs\n```",
            "@\"no end",
            "@@a",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }

    #[test]
    fn what_names_a_place_outside_is_told_apart() {
        let outside = |text: &str| -> Vec<String> {
            let found = outside_mentions(text).into_iter();
            found.map(|mention| mention.path).collect()
        };
        assert_eq!(
            outside("see @/etc/passwd, @a.rs and @~/.ssh/id_rsa:3."),
            ["/etc/passwd", "~/.ssh/id_rsa"]
        );
        for text in ["ana@/etc", "@/", "@~", "`@/etc/passwd`", "/etc/passwd", "@a.rs"] {
            assert!(outside(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn each_is_named_once_in_order() {
        let all: Vec<String> = read("@b @a @b @a:1").into_iter().map(|(path, _)| path).collect();
        assert_eq!(all, ["b", "a", "a"]);
    }

    proptest! {
        #[test]
        fn a_mention_is_a_piece_of_the_text(text in "[a-z@:#L0-9\"/.,()` \n-]{0,60}") {
            for mention in mentions(&text) {
                prop_assert!(text.contains(&mention.path));
                prop_assert!(!mention.path.starts_with('/') && !mention.path.is_empty());
            }
        }

        #[test]
        fn what_people_write_is_found(path in "[a-z]{1,8}(/[a-z_]{1,8}){0,3}\\.[a-z]{1,3}", first in 1_u32..5_000, more in 0_u32..99) {
            let text = format!("look at @{path}:{first}-{} and fix it", first + more);
            prop_assert_eq!(mentions(&text), vec![Mention { path, lines: Some((first, first + more)) }]);
        }

        #[test]
        fn any_text_is_read_without_trouble(text in "\\PC{0,200}") {
            let _ = mentions(&text);
        }
    }
}
