//! Walks the files beneath the working directory as ripgrep does: ignore files honoured, links not followed.

use crate::run::Abandoned;
use agentd_sandbox::{Beneath, EntryKind};
use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A search ends after this time with what it has.
pub(crate) const SEARCH_WITHIN: Duration = Duration::from_secs(20);

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

/// A glob for paths; without `/` in it, it is for names at any depth.
pub(crate) fn matcher(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob: Glob = if pattern.contains('/') {
        GlobBuilder::new(pattern).literal_separator(true).build()?
    } else {
        GlobBuilder::new(&format!("**/{pattern}"))
            .literal_separator(true)
            .build()?
    };
    Ok(glob.compile_matcher())
}

/// Whether a path or pattern names hidden things, so that they are wanted.
pub(crate) fn names_hidden(pattern: &str) -> bool {
    pattern
        .split('/')
        .any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Walks the regular files below `base` in the order of their paths, each relative to the working directory. `visit` says
/// whether to go on, and `stop` is asked before each. Whether everything was walked.
pub fn files(
    workdir: &Beneath,
    base: &Path,
    hidden: bool,
    stop: &dyn Fn() -> bool,
    mut visit: impl FnMut(PathBuf) -> bool,
) -> bool {
    let walk = WalkBuilder::new(workdir.path().join(base))
        .hidden(!hidden)
        .follow_links(false)
        // Only what is beneath the working directory counts, with or without a repository around it.
        .parents(false)
        .git_global(false)
        .require_git(false)
        .filter_entry(|entry: &DirEntry| entry.file_name() != OsStr::new(".git"))
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        if stop() {
            return false;
        }
        // What cannot be read is not there, as for ripgrep.
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(relative) = entry.path().strip_prefix(workdir.path()) else {
            continue;
        };
        // The walk went by paths; a directory may have become a link meanwhile. This look goes by descriptor.
        let real = workdir
            .entry(relative)
            .is_ok_and(|entry| entry.kind == EntryKind::File);
        if real && !visit(relative.to_owned()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_is_for_names_at_any_depth() {
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
        assert!(matcher("a[").is_err());
    }

    #[test]
    fn hidden_things_are_wanted_when_named() {
        assert!(names_hidden(".github/**") && names_hidden("a/.env"));
        assert!(!names_hidden("./a/../b") && !names_hidden("*.rs") && !names_hidden("."));
    }
}
