//! Changes, as people and models read them.

use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The unified diff.
    pub text: String,
    /// Added lines.
    pub added: usize,
    /// Removed lines.
    pub removed: usize,
}

/// The change from one content to another. Without an old content the file is new, without a new one it is deleted.
#[must_use]
pub fn change(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Change {
    let before = String::from_utf8_lossy(old.unwrap_or_default());
    let after = String::from_utf8_lossy(new.unwrap_or_default());
    // Past the deadline the diff is coarser, but never wrong.
    let diff = TextDiff::configure()
        .timeout(Duration::from_millis(500))
        .diff_lines(&*before, &*after);
    let count = |tag| {
        diff.iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count()
    };
    let side = |name: char, there: bool| {
        if there {
            format!("{name}/{path}")
        } else {
            "/dev/null".to_owned()
        }
    };
    let text = diff
        .unified_diff()
        .context_radius(3)
        .header(&side('a', old.is_some()), &side('b', new.is_some()))
        .to_string();
    Change {
        text,
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_unified_diff_with_its_counts() {
        let expected = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
        assert_eq!(
            change("f", Some(b"a\nb\nc\n"), Some(b"a\nB\nc\n")),
            Change {
                text: expected.to_owned(),
                added: 1,
                removed: 1
            }
        );
    }

    #[test]
    fn a_new_file_is_a_diff_from_nothing() {
        let made = change("f", None, Some(b"x\n"));
        assert_eq!(made.text, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!((made.added, made.removed), (1, 0));
        let gone = change("f", Some(b"x\n"), None);
        assert_eq!(gone.text, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }
}
