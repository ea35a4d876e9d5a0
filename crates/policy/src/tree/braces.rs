//! Brace expansion: `key{s,}` is `keys` and `key`.

use super::word::UNKNOWN;

/// The maximum number of words that one word may become.
const MAX: usize = 64;

/// The words that the braces of a pattern produce; the pattern itself if it has none. What exceeds the maximum becomes one
/// word with unknown parts.
pub(crate) fn alternatives(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    let mut steps = 0;
    while let Some(pattern) = open.pop() {
        let Some((head, inner, tail)) = group(&pattern) else {
            done.push(pattern);
            continue;
        };
        steps += 1;
        let parts = parts(inner);
        if steps > MAX || done.len() + open.len() + parts.len() > MAX {
            open.push(format!("{head}{UNKNOWN}{tail}"));
        } else {
            open.extend(parts.iter().rev().map(|part| format!("{head}{part}{tail}")));
        }
    }
    done
}

/// The first group of braces that is expanded: the text before, in and behind it.
fn group(pattern: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = find(pattern, from, |c| c == '{') {
        from = at + 1;
        let inner = pattern.get(from..)?;
        let variable = pattern.get(..at).is_some_and(|head| head.ends_with('$'));
        if let Some(length) = closing(inner).filter(|_| !variable) {
            let text = inner.get(..length)?;
            if parts(text).len() > 1 || range(text).is_some() {
                return Some((pattern.get(..at)?, text, inner.get(length + 1..)?));
            }
        }
    }
    None
}

/// The index of the brace that closes a group.
fn closing(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    find(inner, 0, |c| match c {
        '{' => {
            depth += 1;
            false
        }
        '}' if depth == 0 => true,
        '}' => {
            depth -= 1;
            false
        }
        _ => false,
    })
}

/// The index of the first character without a backslash for which `wanted` is true.
fn find(text: &str, from: usize, mut wanted: impl FnMut(char) -> bool) -> Option<usize> {
    let mut escaped = false;
    let found = text.get(from..)?.char_indices().find(|(_, c)| {
        let hit = !escaped && wanted(*c);
        escaped = *c == '\\' && !escaped;
        hit
    });
    found.map(|(at, _)| from + at)
}

/// The alternatives between commas, or the members of a range.
fn parts(inner: &str) -> Vec<String> {
    if let Some(range) = range(inner) {
        return range;
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    for at in commas {
        parts.push(inner.get(from..at).unwrap_or_default().to_owned());
        from = at + 1;
    }
    parts.push(inner.get(from..).unwrap_or_default().to_owned());
    parts
}

/// The members of `a..e`; one unknown member where there are numbers or steps.
fn range(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    let one = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    match (one(first), one(last)) {
        (Some(first), Some(last)) => {
            let (low, high) = (first.min(last), first.max(last));
            Some((low..=high).take(MAX).map(String::from).collect())
        }
        _ => Some(vec![UNKNOWN.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: &[&str]) {
        assert_eq!(alternatives(pattern), expected, "{pattern}");
    }

    #[test]
    fn braces_are_expanded_as_in_a_shell() {
        check("{keys,x}/a", &["keys/a", "x/a"]);
        check("key{s,}", &["keys", "key"]);
        check("a{b,c{d,e}}f", &["abf", "acdf", "acef"]);
        check("cur{l..l}", &["curl"]);
        check("{a..c}", &["a", "b", "c"]);
        check("{}", &["{}"]);
        check("{a}", &["{a}"]);
        check("${a}{b,c}", &["${a}b", "${a}c"]);
        check("\\{a,b}", &["\\{a,b}"]);
        check("{1..20}", &["\0"]);
    }

    #[test]
    fn i6_many_braces_end_as_one_unknown_word() {
        let many = alternatives(&"{a,b}".repeat(1_000));
        assert!(many.len() <= MAX, "{}", many.len());
        assert!(many.iter().any(|word| word.contains(UNKNOWN)));
    }
}
