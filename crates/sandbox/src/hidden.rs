//! Paths that a deny rule names inside a tree that commands may read.

use agentd_git::GitEnvironment;
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The walk reads at most this many entries, level by level. Deeper down, rules deny by text only.
const MAX_ENTRIES: usize = 50_000;
/// The maximum number of mounts that hide something.
const MAX_MOUNTS: usize = 1_024;
/// A name that no rule contains by accident: a rule that matches it below a directory matches everything there.
const ANY_NAME: &str = "any name at all";

type Rule = dyn Fn(&Path, &Path) -> bool + Send + Sync;

/// Decides what is hidden, by a working directory and an absolute path. Without a rule nothing is hidden.
#[derive(Clone, Default)]
pub struct Hidden {
    rule: Option<Arc<Rule>>,
    history: Option<Arc<History>>,
}

/// How the histories of repositories are searched for what is hidden.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) git: GitEnvironment,
    /// The time limit for all repositories of a session together.
    pub(crate) within: Duration,
}

/// The result of the walk through a working directory.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// The hidden paths, and whether each is a directory.
    pub(crate) hidden: Vec<(PathBuf, bool)>,
    /// Directories with a `HEAD`, `objects` and `refs`, whatever their name.
    pub(crate) git_dirs: Vec<PathBuf>,
}

impl Hidden {
    /// Hides what the rule matches.
    #[must_use]
    pub fn by(rule: impl Fn(&Path, &Path) -> bool + Send + Sync + 'static) -> Self {
        Self {
            rule: Some(Arc::new(rule)),
            history: None,
        }
    }

    /// Also hides the objects of each repository whose history names such a path, or cannot be searched within this time.
    #[must_use]
    pub fn with_history(self, git: GitEnvironment, within: Duration) -> Self {
        let history = self.rule.is_some().then(|| Arc::new(History { git, within }));
        Self { history, ..self }
    }

    pub(crate) fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }

    /// Whether a path is hidden.
    #[must_use]
    pub fn matches(&self, workdir: &Path, path: &Path) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule(workdir, path))
    }

    /// Whether a path, or everything that could be below it, is hidden.
    fn whole(&self, workdir: &Path, path: &Path) -> bool {
        let below = path.join(ANY_NAME);
        self.matches(workdir, path)
            || (self.matches(workdir, &below) && self.matches(workdir, &below.join(ANY_NAME)))
    }

    /// Walks through a working directory. Without a rule it finds nothing.
    pub(crate) fn found(&self, workdir: &Path) -> Inside {
        let mut inside = Inside::default();
        if self.rule.is_none() {
            return inside;
        }
        let mut left = MAX_ENTRIES;
        let mut queue = VecDeque::from([workdir.to_owned()]);
        while let Some(dir) = queue.pop_front() {
            let listed = fs::read_dir(&dir).into_iter().flatten().flatten();
            let entries: Vec<_> = listed.take(left).collect();
            left -= entries.len();
            let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
            let is_git = ["HEAD", "objects", "refs"].into_iter().all(has);
            for entry in &entries {
                // The walk finds a link's target at its own path.
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                match kind.is_dir() {
                    true if self.whole(workdir, &path) => inside.hidden.push((path, true)),
                    // Names there are those of objects.
                    true if is_git && path.ends_with("objects") => {}
                    true => queue.push_back(path),
                    false if !kind.is_symlink() && self.matches(workdir, &path) => {
                        inside.hidden.push((path, false));
                    }
                    false => {}
                }
                if inside.hidden.len() >= MAX_MOUNTS {
                    return inside;
                }
            }
            inside.git_dirs.extend(is_git.then_some(dir));
        }
        inside
    }
}

impl PartialEq for Hidden {
    fn eq(&self, other: &Self) -> bool {
        match (&self.rule, &other.rule) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Hidden {}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.rule.is_some() {
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
        for made in [
            "r/.git/objects/ab",
            "r/.git/refs",
            "bare/objects",
            "bare/refs",
            "none/objects",
        ] {
            fs::create_dir_all(w.join(made)).unwrap();
        }
        for file in [
            "r/.git/HEAD",
            "r/.git/objects/ab/x.pem",
            "r/.git/x.pem",
            "bare/HEAD",
            "none/HEAD",
        ] {
            fs::write(w.join(file), "").unwrap();
        }
        let mut inside = hidden.found(w);
        inside.hidden.sort();
        inside.git_dirs.sort();
        let expected = [("a/b.pem", false), ("a/secret", true), ("r/.git/x.pem", false)];
        assert_eq!(
            inside.hidden,
            expected.map(|(path, directory)| (w.join(path), directory))
        );
        assert_eq!(inside.git_dirs, [w.join("bare"), w.join("r/.git")]);
        let nothing = Hidden::default().found(w);
        assert_eq!((nothing.hidden.len(), nothing.git_dirs.len()), (0, 0));
    }
}
