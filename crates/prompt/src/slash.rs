//! Parses slash commands: `/plan`, `/model sonnet`, and those defined by files.

/// A line that may be a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slash<'a> {
    /// The word after the slash.
    pub name: &'a str,
    /// The text after it, trimmed; may have several lines.
    pub arguments: &'a str,
}

/// The longest name of a command.
const MAX_NAME: usize = 64;

/// Parses a text as a command. A path such as `/etc/hosts` or a lone slash is not one; `//` escapes a leading slash.
#[must_use]
pub fn slash(text: &str) -> Option<Slash<'_>> {
    let rest = text.trim().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = (rest.get(..end)?, rest.get(end..)?.trim());
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let plain = name
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && name.chars().all(inner);
    (plain && name.len() <= MAX_NAME).then_some(Slash { name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_told_from_paths_and_text() {
        let read = |text| slash(text).map(|slash| (slash.name, slash.arguments));
        assert_eq!(read("/plan"), Some(("plan", "")));
        assert_eq!(read("  /model  sonnet \n"), Some(("model", "sonnet")));
        assert_eq!(read("/fix-it #12\nand more"), Some(("fix-it", "#12\nand more")));
        for text in [
            "",
            "/",
            "plan",
            "/etc/hosts is wrong",
            "//plan",
            "/ plan",
            "/1",
            "/a.b",
            "a /plan",
            "/пл",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(name in "[a-z][a-z0-9_-]{0,20}", arguments in "[a-z/@ ]{0,30}") {
            let text = format!("/{name} {arguments}");
            prop_assert_eq!(slash(&text), Some(Slash { name: &name, arguments: arguments.trim() }));
        }

        #[test]
        fn a_name_is_never_a_path(text in ".{0,40}") {
            if let Some(read) = slash(&text) {
                prop_assert!(!read.name.contains(['/', '.', ' ']) && !read.name.is_empty());
            }
        }
    }
}
