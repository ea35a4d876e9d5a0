//! Parses git's configuration syntax. Pure.

use std::iter::Peekable;
use std::str::Chars;

/// One variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The section and the key in lower case, without a subsection: `core.hookspath`.
    pub(crate) name: String,
    /// The subsection: the name of a remote or a branch; otherwise empty.
    pub(crate) subsection: String,
    pub(crate) value: String,
}

impl Entry {
    /// Whether both set the same variable, regardless of the value.
    pub(crate) fn is_same_variable(&self, other: &Self) -> bool {
        self.name == other.name && self.subsection == other.subsection
    }
}

/// The variables with a value. Where git would report an error, this skips the rest of the line: it may find more than git
/// reads, but never less.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    let ((mut section, mut subsection), mut found) = ((String::new(), String::new()), Vec::new());
    while let Some(c) = chars.peek().copied() {
        match c {
            '[' => (section, subsection) = header(&mut chars),
            '#' | ';' => skip_line(&mut chars),
            c if c.is_whitespace() => _ = chars.next(),
            _ => {
                let key = key(&mut chars);
                if chars.next_if_eq(&'=').is_some() {
                    let name = format!("{section}.{key}");
                    let value = value(&mut chars);
                    let subsection = subsection.clone();
                    found.push(Entry {
                        name,
                        subsection,
                        value,
                    });
                } else {
                    skip_line(&mut chars);
                }
            }
        }
    }
    found
}

/// The work tree that the configuration of a git directory names, as written.
#[must_use]
pub fn work_tree(text: &str) -> Option<String> {
    let named = entries(text)
        .into_iter()
        .rfind(|entry| entry.name == "core.worktree" && entry.subsection.is_empty());
    named.map(|entry| entry.value)
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    while chars.next().is_some_and(|c| c != '\n') {}
}

/// Parses `[core]`, `[includeIf "gitdir:x"]` or `[branch.x]`: the first word in lower case, and the rest.
fn header(chars: &mut Peekable<Chars<'_>>) -> (String, String) {
    let (mut name, mut quoted) = (String::new(), false);
    chars.next();
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            ']' if !quoted => break,
            '"' => quoted = !quoted,
            '\\' if quoted => name.extend(chars.next()),
            _ => name.push(c),
        }
    }
    let end = name.find(|c: char| c == '.' || c.is_whitespace());
    let (section, rest) = name.split_at(end.unwrap_or(name.len()));
    (
        section.to_ascii_lowercase(),
        rest.get(1..).unwrap_or_default().to_owned(),
    )
}

fn key(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut key = String::new();
    while let Some(c) = chars.next_if(|c| !matches!(c, '=' | '\n')) {
        key.push(c);
    }
    key.trim().to_ascii_lowercase()
}

/// Reads a value up to the end of its line: resolves quotes and escapes; a backslash joins lines.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut value, mut quoted) = (String::new(), false);
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            '\\' => {
                chars.next_if_eq(&'\r');
                match chars.next() {
                    Some('\n') | None => {}
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some(other) => value.push(other),
                }
            }
            other => value.push(other),
        }
    }
    value.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_work_tree_counts() {
        let text = "[core]\n\tworktree = a\n\tbare = false\n\tworktree = ../../../lib/m\n[core \"x\"]\n\tworktree = b\n";
        assert_eq!(work_tree(text).as_deref(), Some("../../../lib/m"));
        assert_eq!(work_tree("[core]\n\tbare = false\n"), None);
    }

    #[test]
    fn variables_are_found_as_git_finds_them() {
        let text = "\u{feff}[core] hooksPath = .husky ; here\n\tEditor=\"a # b\"\r\n[includeIf \"gitdir:~/]x\"]\npath = a\\\n/b\n\
                    # [x]\n[alias]\n st = !sh \\\"x\\\" \\\\y\nbare\n[a.b]\nc = d\n[open \"";
        let found: Vec<(String, String)> = entries(text)
            .into_iter()
            .map(|entry| (entry.name, entry.value))
            .collect();
        let expected = [
            ("core.hookspath", ".husky"),
            ("core.editor", "a # b"),
            ("includeif.path", "a/b"),
            ("alias.st", "!sh \"x\" \\y"),
            ("a.c", "d"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.into(), value.into())));
    }
}
