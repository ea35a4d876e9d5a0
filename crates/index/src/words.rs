//! Names and words: what a query looks for, and the form of a text in the full-text index. Pure.

/// The longest word that is indexed.
const MAX_WORD: usize = 80;
/// The maximum number of words of a query.
const MAX_WORDS: usize = 16;
/// Stop words: they are in every question and carry no meaning.
const STOP: [&str; 52] = [
    "a",
    "all",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "by",
    "can",
    "code",
    "defined",
    "definition",
    "do",
    "does",
    "each",
    "file",
    "files",
    "find",
    "for",
    "from",
    "has",
    "have",
    "how",
    "i",
    "in",
    "into",
    "is",
    "it",
    "its",
    "me",
    "of",
    "on",
    "or",
    "show",
    "that",
    "the",
    "there",
    "they",
    "this",
    "to",
    "up",
    "was",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
    "with",
    "you",
];

/// The words of a text: runs of letters, digits and `_`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.chars().any(char::is_alphanumeric) && word.len() <= MAX_WORD)
}

/// The parts of a name: `parseHTTPHeader` and `parse_http_header` have the same three parts.
pub(crate) fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split('_').flat_map(humps).filter(|part| !part.is_empty())
}

/// Splits before each capital letter that starts a new word.
fn humps(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (hump, after) = rest.split_at_checked(hump_end(rest)).unwrap_or((rest, ""));
        rest = after;
        Some(hump)
    })
}

fn hump_end(rest: &str) -> usize {
    let mut letters = rest.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, letter)) = letters.next() {
        let next_is_small = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
        if let Some(before) = before
            && letter.is_uppercase()
            && (!before.is_uppercase() || next_is_small)
        {
            return at;
        }
        before = Some(letter);
    }
    rest.len()
}

/// Appends a text in its indexed form: each word in lower case, and the parts of compound words.
pub(crate) fn write_down(text: &str, to: &mut String) {
    for word in words(text) {
        small(word, to);
        if is_compound(word) {
            parts(word).for_each(|part| small(part, to));
        }
    }
}

fn small(word: &str, to: &mut String) {
    if word.is_ascii() {
        to.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        to.extend(word.chars().flat_map(char::to_lowercase));
    }
    to.push(' ');
}

/// Whether a word is a name with several parts.
fn is_compound(word: &str) -> bool {
    parts(word).nth(1).is_some()
}

/// The search terms of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// Words of the query that must be names, because they have several parts. In lower case.
    pub(crate) names: Vec<String>,
    /// All words and parts of names, in lower case, without duplicates.
    pub(crate) words: Vec<String>,
    /// The whole query in lower case.
    pub(crate) text: String,
}

impl Wanted {
    /// Parses a query.
    pub(crate) fn read(query: &str) -> Self {
        let mut wanted = Self {
            text: query.trim().to_lowercase(),
            ..Self::default()
        };
        for word in words(query) {
            if is_compound(word) {
                push(&mut wanted.names, word);
            }
            for part in parts(word) {
                push(&mut wanted.words, part);
            }
        }
        let telling: Vec<String> = wanted
            .words
            .iter()
            .filter(|word| !STOP.contains(&word.as_str()))
            .cloned()
            .collect();
        // A query that consists only of stop words keeps them.
        if !telling.is_empty() {
            wanted.words = telling;
        }
        wanted
    }

    /// The full-text queries, the strictest first: chunks that define the names, that contain them, that contain all
    /// words, that contain any word.
    pub(crate) fn asked(&self) -> Vec<String> {
        let quoted = |words: &[String], between: &str| {
            let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
            quoted.join(between)
        };
        let mut asked = Vec::new();
        if !self.names.is_empty() {
            asked.push(format!("names : ({})", quoted(&self.names, " OR ")));
            asked.push(quoted(&self.names, " OR "));
        }
        if !self.words.is_empty() {
            if self.names.is_empty() {
                asked.push(format!("names : ({})", quoted(&self.words, " AND ")));
            }
            asked.push(quoted(&self.words, " AND "));
            if self.words.len() > 1 {
                asked.push(quoted(&self.words, " OR "));
            }
        }
        asked
    }
}

fn push(to: &mut Vec<String>, word: &str) {
    let word = word.to_lowercase();
    if to.len() < MAX_WORDS && !to.contains(&word) {
        to.push(word);
    }
}

/// A quoted string for FTS5, without special meaning.
fn quote(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(word: &str) -> Vec<&str> {
        parts(word).collect()
    }

    #[test]
    fn names_are_split_in_every_naming_style() {
        assert_eq!(split("parseHTTPHeader"), ["parse", "HTTP", "Header"]);
        assert_eq!(split("parse_http_header"), ["parse", "http", "header"]);
        assert_eq!(split("MAX_BYTES"), ["MAX", "BYTES"]);
        assert_eq!(split("utf8"), ["utf8"]);
        assert_eq!(split("__init__"), ["init"]);
        assert_eq!(split("Größe"), ["Größe"]);
        assert_eq!(split("ÄtherWelle"), ["Äther", "Welle"]);
        assert_eq!(split("_"), Vec::<&str>::new());
    }

    #[test]
    fn a_text_is_indexed_with_the_parts_of_its_names() {
        let mut down = String::new();
        write_down("fn openSession(name: &str) -> Über", &mut down);
        assert_eq!(down, "fn opensession open session name str über ");
    }

    #[test]
    fn a_query_is_names_and_words() {
        let wanted = Wanted::read("where is open_session defined?");
        assert_eq!(wanted.names, ["open_session"]);
        assert_eq!(wanted.words, ["open", "session"]);
        assert_eq!(
            wanted.asked(),
            [
                "names : (\"open_session\")",
                "\"open_session\"",
                "\"open\" AND \"session\"",
                "\"open\" OR \"session\"",
            ]
        );
    }

    #[test]
    fn a_query_of_only_common_words_uses_them() {
        assert_eq!(Wanted::read("what is it").words, ["what", "is", "it"]);
        assert!(Wanted::read(" ?! ").asked().is_empty());
    }

    #[test]
    fn a_query_is_bounded() {
        let long: String = (0..1_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(Wanted::read(&long).words.len(), MAX_WORDS);
    }
}
