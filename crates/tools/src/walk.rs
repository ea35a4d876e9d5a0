//! Walks the files beneath the working directory as ripgrep does: honours ignore files and does not follow links.

use crate::ignored::Ignored;
use crate::run::Abandoned;
use agentd_policy::{check_glob, compile_glob};
use agentd_sandbox::{Beneath, EntryKind, Named};
use globset::{GlobBuilder, GlobSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A search ends after this time and returns what it has.
pub(crate) const SEARCH_WITHIN: Duration = Duration::from_secs(20);

/// The most entries to read of one directory: all of them are in memory at once, to be sorted.
const MAX_ENTRIES: usize = 200_000;
/// The deepest nesting of directories; the kernel takes no path that is much deeper.
const MAX_DEPTH: usize = 2_000;

/// When to stop.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    abandoned: Abandoned,
}

impl Patience {
    pub(crate) fn new(abandoned: &Abandoned) -> Self {
        Self::within(SEARCH_WITHIN, abandoned)
    }

    pub(crate) fn within(time: Duration, abandoned: &Abandoned) -> Self {
        Self {
            until: Instant::now() + time,
            abandoned: abandoned.clone(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.abandoned.yes() || Instant::now() >= self.until
    }
}

/// A glob for paths; without `/` it matches names at any depth. The error is a clause for a message.
pub(crate) fn matcher(pattern: &str) -> Result<GlobSet, String> {
    check_glob(pattern)?;
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anywhere = if pattern.contains('/') { "" } else { "**/" };
    let glob = GlobBuilder::new(&format!("{anywhere}{pattern}"))
        .literal_separator(true)
        .build();
    compile_glob(&glob.map_err(|error| error.to_string())?)
}

/// The same glob with brackets that stand for themselves, as in `pages/[slug].tsx`; `None` without brackets.
pub(crate) fn with_brackets(pattern: &str) -> Option<GlobSet> {
    let escaped = |c: char| match c {
        '[' => "[[]".to_owned(),
        ']' => "[]]".to_owned(),
        other => other.to_string(),
    };
    let named = pattern
        .contains('[')
        .then(|| pattern.chars().map(escaped).collect::<String>());
    // What does not compile this way has no such name.
    named.and_then(|named| matcher(&named).ok())
}

/// Whether a path or pattern names hidden files, which are then included.
pub(crate) fn names_hidden(pattern: &str) -> bool {
    pattern
        .split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Walks the regular files below `base` in path order, each relative to the working directory. `visit` returns whether
/// to go on, and `stop` is checked before each. Returns whether everything was walked.
///
/// Opens every directory and ignore file beneath the working directory, without following links and without blocking:
/// a pipe that is named `.gitignore` is not read.
pub fn files(
    workdir: &Beneath,
    base: &Path,
    hidden: bool,
    stop: &dyn Fn() -> bool,
    mut visit: impl FnMut(PathBuf) -> bool,
) -> bool {
    let mut walk = Walk {
        workdir,
        hidden,
        ignored: Ignored::new(workdir),
        open: Vec::new(),
        complete: true,
    };
    walk.enter(base.to_owned());
    while let Some(level) = walk.open.last_mut() {
        if stop() {
            return false;
        }
        let Some(entry) = level.entries.next() else {
            walk.leave();
            continue;
        };
        let path = level.directory.join(&entry.name);
        let directory = entry.kind == EntryKind::Directory;
        if !directory && entry.kind != EntryKind::File || !walk.wants(&path, &entry.name, directory) {
            continue;
        }
        if directory {
            walk.enter(path);
        } else if !visit(path) {
            return false;
        }
    }
    walk.complete
}

/// A walk in progress: the directories from its base to the current one.
struct Walk<'a> {
    workdir: &'a Beneath,
    hidden: bool,
    ignored: Ignored<'a>,
    open: Vec<Level>,
    complete: bool,
}

/// A directory that is being walked.
struct Level {
    directory: PathBuf,
    entries: std::vec::IntoIter<Named>,
}

impl Walk<'_> {
    /// Whether neither its name nor an ignore file leaves out an entry.
    fn wants(&self, path: &Path, name: &OsStr, directory: bool) -> bool {
        if name == OsStr::new(".git") {
            return false;
        }
        match self.ignored.says(path, directory) {
            Some(ignored) => !ignored,
            None => self.hidden || !name.as_encoded_bytes().starts_with(b"."),
        }
    }

    /// Enters a directory. An unreadable one counts as empty, as in ripgrep.
    fn enter(&mut self, directory: PathBuf) {
        if self.open.len() >= MAX_DEPTH {
            self.complete = false;
            return;
        }
        let place = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &directory
        };
        let Ok((entries, more)) = self.workdir.names(place, MAX_ENTRIES) else {
            return;
        };
        self.complete &= !more;
        self.ignored.enter(&directory);
        let entries = entries.into_iter();
        self.open.push(Level { directory, entries });
    }

    fn leave(&mut self) {
        self.open.pop();
        self.ignored.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_matches_names_at_any_depth() {
        for (pattern, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "x/y/a.rs", true),
            ("x/*.rs", "x/a.rs", true),
            ("x/*.rs", "x/y/a.rs", false),
            ("x/**/*.rs", "x/y/z/a.rs", true),
            ("./x/*.rs", "x/a.rs", true),
            ("{a,b}.rs", "x/b.rs", true),
        ] {
            assert_eq!(
                matcher(pattern).unwrap().is_match(path),
                expected,
                "{pattern} {path}"
            );
        }
        assert!(matcher("a[").is_err() && matcher(&"{".repeat(11)).is_err());
    }

    #[test]
    fn hidden_files_are_included_when_named() {
        assert!(names_hidden(".github/**") && names_hidden("a/.env"));
        assert!(!names_hidden("./a/../b") && !names_hidden("*.rs") && !names_hidden("."));
    }
}
