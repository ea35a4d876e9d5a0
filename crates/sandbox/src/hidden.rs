//! Paths that a deny rule names inside a tree that commands may read.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The walk reads at most this many entries, level by level. Deeper down, rules deny by text only.
const MAX_ENTRIES: usize = 50_000;
/// The maximum number of mounts that hide something.
const MAX_MOUNTS: usize = 1_024;
/// A name that no rule contains by accident: a rule that matches it below a directory matches everything there.
const ANY_NAME: &str = "any name at all";

type Rule = dyn Fn(&Path, &Path) -> bool + Send + Sync;

/// Decides what is hidden, by a working directory and an absolute path. Without a rule nothing is hidden.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<Rule>>);

impl Hidden {
    /// Hides what the rule matches.
    #[must_use]
    pub fn by(rule: impl Fn(&Path, &Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// Whether a path is hidden.
    #[must_use]
    pub fn matches(&self, workdir: &Path, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|rule| rule(workdir, path))
    }

    /// Whether a path, or everything that could be below it, is hidden.
    fn whole(&self, workdir: &Path, path: &Path) -> bool {
        let below = path.join(ANY_NAME);
        self.matches(workdir, path)
            || (self.matches(workdir, &below) && self.matches(workdir, &below.join(ANY_NAME)))
    }

    /// Finds the existing hidden paths in a working directory, and whether each is a directory.
    pub(crate) fn found(&self, workdir: &Path) -> Vec<(PathBuf, bool)> {
        let mut found = Vec::new();
        if self.0.is_none() {
            return found;
        }
        let mut entries = 0;
        let mut queue = VecDeque::from([workdir.to_owned()]);
        while let Some(dir) = queue.pop_front() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                entries += 1;
                if entries > MAX_ENTRIES || found.len() >= MAX_MOUNTS {
                    return found;
                }
                // The walk finds a link's target at its own path.
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                match kind.is_dir() {
                    true if self.whole(workdir, &path) => found.push((path, true)),
                    true => queue.push_back(path),
                    false if !kind.is_symlink() && self.matches(workdir, &path) => found.push((path, false)),
                    false => {}
                }
            }
        }
        found
    }
}

impl PartialEq for Hidden {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Hidden {}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Hidden(by rules)"
        } else {
            "Hidden(nothing)"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_hidden_by_name_and_directories_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let w = dir.path();
        fs::create_dir_all(w.join("a/secret/deep")).unwrap();
        for file in ["a/secret/1", "a/secret/2", "a/b.pem", "a/free"] {
            fs::write(w.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("free", w.join("a/link.pem")).unwrap();
        let hidden = Hidden::by(|workdir, path| {
            let text = path.strip_prefix(workdir).unwrap().display().to_string();
            text.contains("secret/") || text.ends_with(".pem")
        });
        let mut found = hidden.found(w);
        found.sort();
        assert_eq!(found, [(w.join("a/b.pem"), false), (w.join("a/secret"), true)]);
        assert_eq!(Hidden::default().found(w), []);
    }
}
