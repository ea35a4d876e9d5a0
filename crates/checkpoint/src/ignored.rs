//! What `.gitignore` files leave out. Files that are recorded already stay recorded.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::Path;

use crate::trees::path_of;

/// The most bytes of one such file that are read.
pub(crate) const MOST_BYTES: u64 = 1 << 20;

/// The rules of the directories from the root to the current one.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    levels: Vec<(usize, Gitignore)>,
}

impl Ignored {
    /// Adds the rules of a directory, whose path has this many bytes, with its last slash.
    pub(crate) fn enter(&mut self, prefix: usize, text: &[u8]) {
        let mut builder = GitignoreBuilder::new("");
        for line in text.split(|byte| *byte == b'\n') {
            // A line that cannot be understood rules nothing, as in git.
            let _ = builder.add_line(None, String::from_utf8_lossy(line).trim_end_matches('\r'));
        }
        if let Ok(rules) = builder.build() {
            self.levels.push((prefix, rules));
        }
    }

    /// How many directories have rules.
    pub(crate) const fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Forgets the rules of the directories that were left.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.levels.truncate(depth);
    }

    /// Whether a path is ignored.
    pub(crate) fn has(&self, path: &[u8], is_dir: bool) -> bool {
        for (prefix, rules) in self.levels.iter().rev() {
            let below: &Path = path_of(path.get(*prefix..).unwrap_or_default());
            match rules.matched(below, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_rule_decides() {
        let mut ignored = Ignored::default();
        ignored.enter(0, b"*.log\n/target/\nsecret\r\n");
        assert!(
            ignored.has(b"a/b.log", false) && ignored.has(b"target", true) && ignored.has(b"secret", false)
        );
        assert!(!ignored.has(b"a/target", true) && !ignored.has(b"target", false));
        ignored.enter(2, b"!b.log\n");
        assert!(!ignored.has(b"a/b.log", false) && ignored.has(b"a/c.log", false));
        ignored.leave(1);
        assert!(ignored.has(b"a/b.log", false));
    }
}
