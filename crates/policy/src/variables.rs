//! Variables whose values are set in the text itself: `x=curl; $x evil`.

/// The maximum number of values that are tried for a name.
const MAX_VALUES: usize = 8;
/// The maximum number of names that are remembered.
const MAX_NAMES: usize = 64;
/// The longest word that an expansion may produce.
const MAX_WORD: usize = 4_096;

/// The possible values of variables. A name assigned several times has all the values: which one applies is unknown.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<(String, Vec<String>)>);

impl Values {
    /// Adds assignments; a value may use earlier assignments.
    pub(crate) fn learn(&mut self, assigned: &[(String, String)]) {
        for (name, value) in assigned {
            let values = if value.contains('$') {
                let mut values: Vec<String> = (0..self.choices())
                    .map(|choice| self.filled(value, choice))
                    .collect();
                values.dedup();
                values
            } else {
                vec![value.clone()]
            };
            let room = self.0.len() < MAX_NAMES;
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => {
                    known.extend(values.into_iter().take(MAX_VALUES.saturating_sub(known.len())));
                }
                None if room => self.0.push((name.clone(), values)),
                None => {}
            }
        }
    }

    /// The command with its variables expanded, once for each choice of values; empty when no variable is known.
    pub(crate) fn expand(&self, words: &[String]) -> Vec<Vec<String>> {
        if self.0.is_empty() || !words.iter().any(|word| word.contains('$')) {
            return Vec::new();
        }
        let mut all: Vec<Vec<String>> = Vec::new();
        for choice in 0..self.choices() {
            let mut expanded = Vec::new();
            for word in words {
                let filled = self.filled(word, choice);
                if filled == *word || !filled.contains(char::is_whitespace) {
                    expanded.push(filled);
                } else if expanded.is_empty() {
                    // The name of a program is rarely quoted, so its value may be several words.
                    expanded.extend(filled.split_whitespace().map(str::to_owned));
                } else {
                    expanded.push(filled);
                }
            }
            if expanded != words && !all.contains(&expanded) {
                all.push(expanded);
            }
        }
        all
    }

    fn choices(&self) -> usize {
        self.0.iter().map(|(_, values)| values.len()).max().unwrap_or(0)
    }

    fn filled(&self, word: &str, choice: usize) -> String {
        let mut text = String::with_capacity(word.len());
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let (name, behind) = name_of(after);
            let known = self.0.iter().find(|(known, _)| known == name);
            match known.and_then(|(_, values)| values.get(choice).or_else(|| values.last())) {
                Some(value) if text.len() + value.len() <= MAX_WORD => {
                    text.push_str(value);
                    rest = behind;
                }
                _ => {
                    text.push('$');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        text
    }
}

/// The name after a `$`, and the rest. In `${name...}` everything up to the brace belongs to the variable.
fn name_of(after: &str) -> (&str, &str) {
    let end = |text: &str| {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len())
    };
    match after.strip_prefix('{') {
        Some(inner) => {
            let name = inner.get(..end(inner)).unwrap_or_default();
            (name, inner.split_once('}').map_or("", |(_, behind)| behind))
        }
        None => after.split_at(end(after)),
    }
}
