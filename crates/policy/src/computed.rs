//! Words that a shell computes (`k*/a`, `$d/.env`), compared with the paths and the commands of rules.

use crate::meet::Items;
use crate::path::{absolute, expand_home};
use crate::tree::{UNKNOWN, literal};

/// The glob of a rule, without its root: its alternatives, and their components with letters.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    globs: Vec<Glob>,
    parts: Vec<Items>,
}

#[derive(Debug, Clone)]
struct Glob {
    items: Items,
    /// The text behind the dot in a last component with a wildcard: `pem` of `*.pem`.
    ending: Option<Items>,
}

impl Computed {
    pub(crate) fn new(globs: &[String]) -> Self {
        let parts = globs.iter().flat_map(|glob| glob.split('/'));
        Self {
            globs: globs.iter().map(|glob| Glob::new(glob)).collect(),
            parts: parts.filter(|part| has_letters(part)).map(Items::glob).collect(),
        }
    }

    /// Whether an absolute word may be a path that a glob below `root` matches, or a directory with such paths. With `ending`,
    /// `x*` does not count as a path of `*.pem`, but `x.p*` does.
    pub(crate) fn may_be(&self, root: &str, word: &str, ending: bool) -> bool {
        let root = match root.trim_end_matches('/') {
            "" => Items::exact(""),
            root => Items::exact(&format!("{root}/")),
        };
        let last = word.rsplit('/').next().unwrap_or_default();
        let file = Items::word(word);
        // A bare `*` names whatever is there, as `.` does.
        let directory = has_letters(last).then(|| Items::word(&format!("{word}/\u{1}")));
        let shown = last
            .rsplit_once('.')
            .map(|(_, shown)| shown)
            .filter(|shown| has_letters(shown))
            .map(Items::word);
        let meets = |glob: &Glob| {
            if let (true, Some(known)) = (ending, &glob.ending)
                && !shown.as_ref().is_some_and(|shown| shown.meets(known))
            {
                return false;
            }
            let glob = root.clone().then(&glob.items);
            file.meets(&glob) || directory.as_ref().is_some_and(|word| word.meets(&glob))
        };
        self.is_telling(word) && self.globs.iter().any(meets)
    }

    /// The same for a root that is not known.
    pub(crate) fn may_be_anywhere(&self, word: &str) -> bool {
        let file = Items::word(word);
        let meets = |glob: &Glob| file.meets(&Items::glob("**/").then(&glob.items));
        self.is_telling(word) && self.globs.iter().any(meets)
    }

    /// Whether a word says enough about a path: one with unknown values could be any path, so one of its components has to
    /// fit a component of the rule with letters.
    fn is_telling(&self, word: &str) -> bool {
        let mut parts = word.split('/').filter(|part| has_letters(part)).map(Items::word);
        !is_unknown(word) || parts.any(|part| self.parts.iter().any(|known| part.meets(known)))
    }
}

impl Glob {
    fn new(glob: &str) -> Self {
        let last = glob.rsplit('/').next().unwrap_or_default();
        let ending = last.rsplit_once('.').filter(|(name, _)| name.contains('*'));
        Self {
            items: Items::glob(glob),
            ending: ending.map(|(_, ending)| Items::glob(ending)),
        }
    }
}

/// The absolute form of a word in a command run in `base`.
pub(crate) fn resolved(word: &str, workdir: &str, home: Option<&str>, base: &str) -> String {
    let mut word = expand_home(home, word);
    for (names, value) in [
        (["$HOME", "${HOME}", "~"], home),
        (["$PWD", "${PWD}", "~+"], Some(workdir)),
    ] {
        for name in names {
            if let (Some(rest), Some(value)) = (word.strip_prefix(name), value)
                && (rest.is_empty() || rest.starts_with('/'))
            {
                word = format!("{value}{rest}");
            }
        }
    }
    absolute(base, &word)
}

/// Whether a shell computes the word from a value that the command's text does not show.
pub(crate) fn is_unknown(word: &str) -> bool {
    word.contains(['$', UNKNOWN])
}

/// Whether a pattern has a character that stands for itself, outside of the names of variables.
pub(crate) fn has_letters(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        if has_own(before) {
            return true;
        }
        let after = after.trim_start_matches(['$', '{']);
        rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '}');
    }
    has_own(rest)
}

fn has_own(text: &str) -> bool {
    literal(text).chars().any(|c| c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, glob: &str, expected: bool) {
        let word = resolved(word, "/w", Some("/home/ana"), "/w");
        let rule = Computed::new(&crate::tree::alternatives(glob));
        assert_eq!(rule.may_be("/w", &word, false), expected, "{word} {glob}");
    }

    #[test]
    fn what_a_shell_may_compute_is_compared_with_a_rule() {
        check("k*/a", "keys/**", true);
        check("k*", "keys/**", true);
        check("$d/.env", "**/.env", true);
        check("${PWD}/keys/a", "keys/**", true);
        check("~+/keys/a", "keys/**", true);
        check("keys/$f", "keys/**", true);
        check("ke\0s/a", "keys/**", true);
        check("*.p*", "**/*.{pem,key}", true);
        check("$f", "keys/**", false);
        check("$d/main.rs", "keys/**", false);
        check("src/$f", "**/*.key", false);
        check("*", "keys/**", false);
        check("$HOME/x", "keys/**", false);
        check("a\\*", "a*b", false);
    }

    #[test]
    fn for_built_in_rules_the_ending_counts() {
        let rule = Computed::new(&["**/*.pem".to_owned()]);
        for (word, narrow, wide) in [
            ("/w/x*", false, true),
            ("/w/x.p*", true, true),
            ("/w/x.r*", false, true),
            ("/w/*.pem", true, true),
        ] {
            assert_eq!(
                (rule.may_be("", word, true), rule.may_be("", word, false)),
                (narrow, wide),
                "{word}"
            );
        }
    }
}
