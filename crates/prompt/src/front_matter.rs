//! Parses Markdown files that start with front matter: YAML between two lines of `---`.

use serde::de::DeserializeOwned;

/// The maximum size of the front matter.
const MAX_BYTES: usize = 16_384;

/// Splits a file into its front matter and its text. A file without front matter has the default.
///
/// # Errors
/// When the front matter does not end, is too long, or is not valid YAML of this type; the text says what and where.
pub(crate) fn split<T: DeserializeOwned + Default>(text: &str) -> Result<(T, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = first_line(text)
        .filter(|(line, _)| *line == "---")
        .map(|(_, rest)| rest)
    else {
        return Ok((T::default(), text.trim()));
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_end() == "---" {
            let block = rest.get(..at).unwrap_or_default();
            let body = rest.get(end..).unwrap_or_default().trim();
            return Ok((block_of(block)?, body));
        }
        at = end;
    }
    Err("the block that begins with --- has no end: add a line ---".to_owned())
}

fn block_of<T: DeserializeOwned + Default>(block: &str) -> Result<T, String> {
    if block.len() > MAX_BYTES {
        return Err(format!("the block at the top has more than {MAX_BYTES} bytes"));
    }
    if block.trim().is_empty() {
        return Ok(T::default());
    }
    serde_norway::from_str(block).map_err(|error| format!("cannot parse the block at the top: {error}"))
}

fn first_line(text: &str) -> Option<(&str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    Some((line.trim_end(), rest))
}

/// A list that people write either as a YAML list or as comma-separated words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Words {
    /// `[Read, Grep]`.
    List(Vec<String>),
    /// `Read, Grep`.
    Line(String),
}

impl Words {
    pub(crate) fn into_list(self) -> Vec<String> {
        let words = match self {
            Self::List(words) => words,
            Self::Line(line) => line.split(',').map(str::to_owned).collect(),
        };
        let words = words.into_iter().map(|word| word.trim().to_owned());
        words.filter(|word| !word.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Front {
        name: String,
        tools: Option<Words>,
    }

    fn tools(text: &str) -> Vec<String> {
        split::<Front>(text).unwrap().0.tools.unwrap().into_list()
    }

    #[test]
    fn a_block_and_what_follows_are_told_apart() {
        let (front, body) =
            split::<Front>("---\r\nname: a\r\nother: 1\r\n---\r\nDo it.\n---\nmore\n").unwrap();
        assert_eq!((front.name.as_str(), body), ("a", "Do it.\n---\nmore"));
        let (front, body) = split::<Front>("Just text.\n").unwrap();
        assert_eq!((front, body), (Front::default(), "Just text."));
        assert_eq!(split::<Front>("---\n---\nx").unwrap().1, "x");
    }

    #[test]
    fn lists_are_written_either_way() {
        assert_eq!(tools("---\ntools: [Read, Grep]\n---\n"), ["Read", "Grep"]);
        assert_eq!(tools("---\ntools: Read, Grep ,\n---\n"), ["Read", "Grep"]);
    }

    #[test]
    fn a_bad_block_says_what_is_wrong() {
        let wrong = |text: &str| split::<Front>(text).unwrap_err();
        assert!(wrong("---\nname: a\n").contains("no end"));
        assert!(wrong("---\nname: [a\n---\n").contains("cannot parse"));
        let long = format!("---\nname: {}\n---\n", "x".repeat(MAX_BYTES));
        assert!(wrong(&long).contains("16384 bytes"));
    }

    proptest! {
        #[test]
        fn no_text_stops_it(text in "(---\n)?[a-z:\\[\\]{}&*! \n-]{0,200}(---\n)?.{0,40}") {
            if let Ok((_, body)) = split::<Front>(&text) {
                prop_assert!(text.contains(body));
            }
        }
    }
}
