//! The output of a command that is not at a terminal, as plain text: what a person would have seen in the end.

use crate::typescript::{Typescript, last_version};
use std::borrow::Cow;

/// An output as plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain<'a> {
    /// Without escape sequences and control characters, and with the last version of each line that was overwritten.
    pub text: Cow<'a, str>,
    /// Whether text is missing that was overwritten or erased, or a line end stands for NUL characters.
    pub lost: bool,
}

/// Reduces an output to plain text. Line ends stay as they are, since a carriage return before a line feed overwrites nothing.
#[must_use]
pub fn plain(output: &str) -> Plain<'_> {
    let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !output.contains(controls) {
        return Plain {
            text: Cow::Borrowed(output),
            lost: false,
        };
    }
    let said = Typescript::default().text_of(output);
    let Plain { text, lost } = last_versions(&said);
    Plain {
        text: Cow::Owned(text.into_owned()),
        lost,
    }
}

/// The last version of each line of a text without escape sequences.
#[must_use]
pub fn last_versions(text: &str) -> Plain<'_> {
    let (text, mut lost) = without_nul(text);
    if !text.contains(['\r', '\u{8}']) {
        return Plain { text, lost };
    }
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix("\r\n") {
            Some(line) => (line, "\r\n"),
            None => line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n")),
        };
        let last = last_version(line);
        let visible = line.chars().filter(|c| !matches!(c, '\r' | '\u{8}'));
        lost |= visible.count() > last.chars().count();
        kept.push_str(&last);
        kept.push_str(end);
    }
    Plain {
        text: Cow::Owned(kept),
        lost,
    }
}

/// The text with a line end for each run of NUL characters, and whether that changed it. Programs put NUL between names
/// (`find -print0`, `git ls-files -z`): without it, the names would be one.
fn without_nul(text: &str) -> (Cow<'_, str>, bool) {
    if !text.contains('\0') {
        return (Cow::Borrowed(text), false);
    }
    if is_utf16(text) {
        return (Cow::Owned(text.replace('\0', "")), false);
    }
    let mut parts = text.split('\0');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if !part.is_empty() || parts.peek().is_none() {
            kept.push('\n');
            kept.push_str(part);
        }
    }
    (Cow::Owned(kept), true)
}

/// Whether this looks like ASCII lines in UTF-16: each character is followed by NUL, also a line feed.
fn is_utf16(text: &str) -> bool {
    // The bytes of a byte order mark are not UTF-8.
    let text = text.strip_prefix("\u{fffd}\u{fffd}").unwrap_or(text);
    let is_wide = |pair: &[u8]| matches!(pair, [low, 0] if *low != 0);
    text.contains("\n\0") && text.as_bytes().chunks(2).all(is_wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs, their plain text, and whether some text of them is lost.
    const TABLE: [(&str, &str, bool); 49] = [
        ("", "", false),
        ("plain\n", "plain\n", false),
        ("two\nlines", "two\nlines", false),
        ("tab\there\n", "tab\there\n", false),
        ("dos\r\nlines\r\n", "dos\r\nlines\r\n", false),
        (
            "\u{e4}\u{4e16}\u{1f469}\u{200d}\u{1f4bb}\n",
            "\u{e4}\u{4e16}\u{1f469}\u{200d}\u{1f4bb}\n",
            false,
        ),
        ("10%\r20%\r30%\n", "30%\n", true),
        ("10%\r20%\r30%\r\n", "30%\r\n", true),
        ("10%\r20%\r\r\n", "20%\r\n", true),
        ("\r10%\r20%", "20%", true),
        ("10%\r20%\r", "20%", true),
        ("only\r", "only", false),
        ("\rfirst", "first", false),
        ("\r\r\r", "", false),
        ("\r\n", "\r\n", false),
        ("\n\r", "\n", false),
        ("a\rb\nc\rd\n", "b\nd\n", true),
        ("begin\n1/3\r2/3\r3/3\nend\n", "begin\n3/3\nend\n", true),
        ("long version\rshort\n", "short\n", true),
        ("same\rsame\n", "same\n", true),
        ("\u{1b}[31mred\u{1b}[0m\n", "red\n", false),
        ("\u{1b}[1;32mok\u{1b}[m\tdone\n", "ok\tdone\n", false),
        ("\u{1b}[2K\r50%\u{1b}[2K\r100%\n", "100%\n", true),
        ("\u{1b}]0;title\u{7}text\n", "text\n", false),
        (
            "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\\n",
            "link\n",
            false,
        ),
        ("\u{1b}(B\u{1b}=x\n", "x\n", false),
        ("\u{1b}7save\u{1b}8\n", "save\n", false),
        ("\u{9b}31mc1\u{9b}0m\n", "c1\n", false),
        ("cut \u{1b}[3", "cut ", false),
        ("cut \u{1b}", "cut ", false),
        ("cut \u{1b}]0;ti", "cut ", false),
        ("a\0b\0c\n", "a\nb\nc\n", true),
        ("a\0", "a\n", true),
        ("a\0b", "a\nb", true),
        ("\0a", "\na", true),
        ("./a b\0./c\nd\0", "./a b\n./c\nd\n", true),
        ("a\0\0\0b\0", "a\nb\n", true),
        ("1%\r2%\0x\r\n", "2%\nx\r\n", true),
        ("\u{1b}[31ma\u{1b}[0m\0b\0", "a\nb\n", true),
        ("a\0b\n\0c", "a\nb\n\nc", true),
        ("\0\0\0", "\n", true),
        ("\u{fffd}\u{fffd}n\0o\0\r\0\n\0", "\u{fffd}\u{fffd}no\r\n", false),
        ("bell\u{7} feed\u{c} del\u{7f}\n", "bell feed del\n", false),
        ("passwort\u{8}d\n", "password\n", true),
        ("\u{8}\u{8}x\n", "x\n", false),
        ("|\u{8}/\u{8}-\u{8}\\\u{8}done\n", "done\n", true),
        ("b\u{8}bo\u{8}ol\u{8}ld\n", "bold\n", true),
        ("n\0u\0l\0\r\0\n\0", "nul\r\n", false),
        ("\u{1b}[32m1%\r\u{1b}[32m2%\u{1b}[0m\r\n\0", "2%\r\n\n", true),
    ];

    #[test]
    fn outputs_become_plain_text() {
        for (output, text, lost) in TABLE {
            let found = plain(output);
            assert_eq!((&*found.text, found.lost), (text, lost), "{output:?}");
        }
    }

    /// Strings of parts that mean something to a terminal, and of others.
    fn outputs() -> impl Iterator<Item = String> {
        const PARTS: [&str; 20] = [
            "a",
            "bc",
            " ",
            "\n",
            "\r",
            "\r\n",
            "\t",
            "\u{8}",
            "\0",
            "\u{7}",
            "\u{1b}",
            "\u{1b}[",
            "31m",
            "\u{1b}]0;",
            "\\",
            "\u{9b}",
            "\u{9c}",
            "\u{4e16}",
            "\u{7f}",
            ";",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap()
        };
        std::iter::repeat_with(move || (0..next() % 24).map(|_| PARTS[next() % PARTS.len()]).collect())
            .take(20_000)
    }

    #[test]
    fn plain_text_stays_and_no_output_grows_or_keeps_a_control() {
        for output in outputs() {
            let once = plain(&output).text.into_owned();
            let again = plain(&once);
            assert_eq!((&*again.text, again.lost), (once.as_str(), false), "{output:?}");
            assert!(once.len() <= output.len(), "{output:?}");
            let without_ends = once.replace("\r\n", "\n");
            let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            assert!(!without_ends.contains(control), "{output:?}: {once:?}");
            if !output.replace("\r\n", "\n").contains(control) {
                assert_eq!(once, output);
            }
        }
    }

    #[test]
    fn chunks_of_an_output_have_the_text_of_the_whole() {
        for output in outputs()
            .take(2_000)
            .chain(TABLE.map(|(output, ..)| output.to_owned()))
        {
            let whole = plain(&output);
            let mut typescript = Typescript::default();
            let chunks: String = output
                .chars()
                .map(|c| typescript.text_of(&c.to_string()))
                .collect();
            assert_eq!(last_versions(&chunks).text, whole.text, "{output:?}");
        }
    }
}
