//! Whether two patterns can match the same text: a word that a shell computes and the pattern of a rule.

use crate::tree::UNKNOWN;

/// Larger patterns meet: on doubt, a rule that forbids applies.
const MAX_STATES: usize = 1 << 20;

/// The characters that an item of a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Set {
    /// This one.
    One(char),
    /// Each but `/`. A wildcard of a shell does not match a dot at the beginning of a name.
    Name { hidden: bool },
    /// These ranges, or all others.
    Class(Vec<(char, char)>, bool),
    /// Each.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Once(Set),
    Many(Set),
    /// Any number of directories, each with its `/`.
    Dirs,
}

/// A place in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Where a name begins.
    Beginning,
    /// The same, but a wildcard of a shell that matched nothing came first, so no hidden name begins here.
    Shown,
    Inside,
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Items(Vec<Item>);

impl Items {
    /// The glob of a rule, without braces.
    pub(crate) fn glob(text: &str) -> Self {
        Self::compile(text, true)
    }

    /// A word of a command, with wildcards and unknown values.
    pub(crate) fn word(text: &str) -> Self {
        Self::compile(text, false)
    }

    /// A text that means itself.
    pub(crate) fn exact(text: &str) -> Self {
        Self(text.chars().map(|c| Item::Once(Set::One(c))).collect())
    }

    /// A word in which `*` is any text, as in rules about commands.
    pub(crate) fn wild(text: &str) -> Self {
        let item = |c| {
            if c == '*' {
                Item::Many(Set::All)
            } else {
                Item::Once(Set::One(c))
            }
        };
        Self(text.chars().map(item).collect())
    }

    /// This pattern, then another.
    pub(crate) fn then(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    fn compile(text: &str, rule: bool) -> Self {
        let mut items = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let begins = rest.len() == text.len() || matches!(items.last(), Some(Item::Once(Set::One('/'))));
            let mut used = c.len_utf8();
            let item = match c {
                '\\' => {
                    let next = rest.chars().nth(1).unwrap_or('\\');
                    used = rest.get(1..).map_or(1, |_| 1 + next.len_utf8());
                    Item::Once(Set::One(next))
                }
                '*' if rest.starts_with("**/") && begins => {
                    used = 3;
                    Item::Dirs
                }
                '*' if rest.starts_with("**") && (begins || !rule) => {
                    used = 2;
                    Item::Many(Set::All)
                }
                '*' => Item::Many(Set::Name { hidden: rule }),
                '?' => Item::Once(Set::Name { hidden: rule }),
                '[' => match class(rest) {
                    Some((set, length)) => {
                        used = length;
                        Item::Once(set)
                    }
                    None => Item::Once(Set::One('[')),
                },
                UNKNOWN if !rule => Item::Many(Set::All),
                '$' if !rule => match variable(rest) {
                    Some(length) => {
                        used = length;
                        Item::Many(Set::All)
                    }
                    None => Item::Once(Set::One('$')),
                },
                c => Item::Once(Set::One(c)),
            };
            items.push(item);
            rest = rest.get(used..).unwrap_or_default();
        }
        Self(items)
    }

    /// Whether some text matches both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let (height, width) = (self.0.len() + 1, other.0.len() + 1);
        if height.saturating_mul(width) > MAX_STATES {
            return true;
        }
        let mut seen = vec![false; height * width * 3];
        let mut open = vec![(0_usize, 0_usize, At::Beginning)];
        while let Some((a, b, at)) = open.pop() {
            let Some(seen) = seen.get_mut((a * width + b) * 3 + at as usize) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let (left, right) = (self.0.get(a), other.0.get(b));
            if left.is_none() && right.is_none() {
                return true;
            }
            if let Some(after) = left.and_then(|item| item.end(at)) {
                open.push((a + 1, b, after));
            }
            if let Some(after) = right.and_then(|item| item.end(at)) {
                open.push((a, b + 1, after));
            }
            let (Some(left), Some(right)) = (left, right) else {
                continue;
            };
            let (one, two) = (left.set(), right.set());
            let next = |at| (a + left.step(), b + right.step(), at);
            if one.shares(two, at, |c| c == '/') {
                open.push(next(At::Beginning));
            }
            if one.shares(two, at, |c| c != '/') {
                open.push(next(At::Inside));
            }
        }
        false
    }
}

impl Item {
    const fn set(&self) -> &Set {
        match self {
            Self::Once(set) | Self::Many(set) => set,
            Self::Dirs => &Set::All,
        }
    }

    const fn step(&self) -> usize {
        matches!(self, Self::Once(_)) as usize
    }

    /// Where a text is behind the item, if the item may end here.
    fn end(&self, at: At) -> Option<At> {
        match self {
            Self::Once(_) => None,
            Self::Many(Set::Name { hidden: false }) if at == At::Beginning => Some(At::Shown),
            Self::Many(_) => Some(at),
            Self::Dirs => (at != At::Inside).then_some(at),
        }
    }
}

impl Set {
    /// Whether both sets have a common character of a kind: `/`, or all others.
    fn shares(&self, other: &Self, at: At, kind: impl Fn(char) -> bool) -> bool {
        match (self, other) {
            (Self::One('.'), _) | (_, Self::One('.')) if at == At::Shown => false,
            (Self::One(c), set) | (set, Self::One(c)) => kind(*c) && set.has(*c, at),
            (Self::All, Self::All) => true,
            // Two classes may have a common character.
            _ => !kind('/'),
        }
    }

    fn has(&self, c: char, at: At) -> bool {
        match self {
            Self::One(one) => *one == c,
            Self::Name { hidden } => c != '/' && (*hidden || at == At::Inside || c != '.'),
            Self::Class(ranges, negated) => {
                let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                c != '/' && inside != *negated
            }
            Self::All => true,
        }
    }
}

/// A class such as `[a-z]`, and its length in the text.
fn class(text: &str) -> Option<(Set, usize)> {
    let inner = text.get(1..)?;
    let negated = inner.starts_with(['!', '^']);
    let inner = inner.get(usize::from(negated)..)?;
    // A bracket at the beginning is a member.
    let first = inner.chars().next()?;
    let end = first.len_utf8() + inner.get(first.len_utf8()..)?.find(']')?;
    let members = inner.get(..end)?;
    let length = 1 + usize::from(negated) + end + 1;
    if members.contains("[:") || members.contains('/') {
        // Named classes are not resolved.
        return (!members.contains('/')).then_some((
            Set::Name { hidden: false },
            length + usize::from(text.get(length..)?.starts_with(']')),
        ));
    }
    let members: Vec<char> = members.chars().filter(|c| *c != '\\').collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(low) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some('-'), Some(high)) => {
                ranges.push((*low, *high));
                at += 3;
            }
            _ => {
                ranges.push((*low, *low));
                at += 1;
            }
        }
    }
    Some((Set::Class(ranges, negated), length))
}

/// The length of `$name` or `${name}`.
fn variable(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('$')?;
    let inner = rest.strip_prefix('{');
    let name = inner.unwrap_or(rest);
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let length = name.find(ends).unwrap_or(name.len());
    let braces = usize::from(inner.is_some());
    let closed = inner.is_none() || name.get(length..)?.starts_with('}');
    (length > 0 && closed).then_some(1 + length + 2 * braces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, glob: &str, expected: bool) {
        assert_eq!(
            Items::word(word).meets(&Items::glob(glob)),
            expected,
            "{word} {glob}"
        );
    }

    #[test]
    fn a_word_meets_a_glob_if_a_path_matches_both() {
        for (word, glob) in [
            ("k*/a", "keys/**"),
            ("*/a", "keys/**"),
            ("ke?s/a", "keys/**"),
            ("[k]eys/a", "keys/**"),
            ("[!x]eys/a", "keys/*"),
            ("[[:alpha:]]eys/a", "keys/*"),
            ("*", "*.key"),
            ("a/*.k*", "**/*.key"),
            (".e*", "**/.env"),
            ("a/b/.en?", "**/.env"),
            ("$d/.env", "**/.env"),
            ("ke${x}/a", "keys/**"),
            ("\0/.env", "a/b/.env"),
            ("**/a", "keys/b/a"),
            ("a*c", "ab*"),
        ] {
            check(word, glob, true);
        }
        for (word, glob) in [
            ("k*/a", "leys/**"),
            ("k*", "keys/**"),
            ("*", "**/.env"),
            ("?env", ".env"),
            ("*.env", "**/.env"),
            ("*.rs", "**/*.key"),
            ("k*y", "k/y"),
            ("[a-c]x", "dx"),
            ("\\*", "a"),
            ("$", "a"),
            ("a*", "b*"),
        ] {
            check(word, glob, false);
        }
    }

    #[test]
    fn i6_large_patterns_meet_on_doubt() {
        let large = "a*".repeat(2_000);
        assert!(Items::word(&large).meets(&Items::glob(&"b".repeat(2_000))));
        assert!(!Items::word(&"a*".repeat(100)).meets(&Items::glob(&"b".repeat(200))));
    }
}
