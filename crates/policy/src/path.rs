//! Paths as text: nothing here accesses a disk.

/// The absolute form of a path: joined to the working directory, with `.` and `..` resolved lexically.
pub(crate) fn absolute(workdir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { workdir };
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// An absolute path relative to the working directory, if it is inside; `.` is the directory itself.
pub(crate) fn inside<'a>(workdir: &str, absolute_path: &'a str) -> Option<&'a str> {
    let root = absolute(workdir, ".");
    if absolute_path == root {
        return Some(".");
    }
    let prefix = if root == "/" { root } else { format!("{root}/") };
    absolute_path.strip_prefix(&prefix)
}

/// A path with a leading `~/` resolved, if the home directory is known.
pub(crate) fn expand_home(home: Option<&str>, path: &str) -> String {
    match (home, path.strip_prefix("~/")) {
        (Some(home), Some(rest)) => format!("{}/{rest}", home.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

/// Characters that change what people see: control characters, bidirectional marks, zero-width characters, tags, odd spaces.
pub(crate) fn hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c, '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The names of the hidden characters in a text, at most eight of them.
pub(crate) fn name_hidden(text: &str) -> Vec<String> {
    text.chars()
        .filter(|c| hidden(*c))
        .take(8)
        .map(|c| format!("U+{:04X}", u32::from(c)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_by_name() {
        assert_eq!(absolute("/w", "a/../b/./c"), "/w/b/c");
        assert_eq!(absolute("/w", "../../etc//passwd"), "/etc/passwd");
        assert_eq!(absolute("/w", "/../x"), "/x");
        assert_eq!(inside("/w/", "/w/a"), Some("a"));
        assert_eq!(inside("/w", "/w"), Some("."));
        assert_eq!(inside("/w", "/ww/a"), None);
        assert_eq!(inside("/", "/a"), Some("a"));
    }
}
