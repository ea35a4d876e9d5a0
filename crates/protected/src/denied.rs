//! Paths that the operator's rules forbid to write, as globs.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::OnceLock;

/// Globs over paths: absolute ones, ones that begin with `**`, and others relative to the working directory. Serialized,
/// they are sent to the process that starts commands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeniedWrites {
    globs: Vec<String>,
    #[serde(skip)]
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug, Clone)]
struct Compiled {
    paths: GlobSet,
    /// What leads to such a path: a link in its place would lead elsewhere.
    ways: GlobSet,
}

impl PartialEq for DeniedWrites {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl Eq for DeniedWrites {}

impl DeniedWrites {
    /// These globs.
    #[must_use]
    pub fn new(globs: Vec<String>) -> Self {
        let compiled = OnceLock::new();
        Self { globs, compiled }
    }

    /// Adds paths, with everything below them.
    pub(crate) fn add<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        for path in paths {
            // Bytes that are not UTF-8 match any text.
            let path = globset::escape(&path.to_string_lossy()).replace(char::REPLACEMENT_CHARACTER, "*");
            for glob in [format!("{path}/**"), path] {
                if !self.globs.contains(&glob) {
                    self.globs.push(glob);
                }
            }
        }
        self.compiled = OnceLock::new();
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether an absolute path, or a path relative to the working directory, is one of them. If a glob does not compile,
    /// every path is (I7).
    pub(crate) fn has(&self, absolute: Option<&Path>, relative: &Path) -> bool {
        self.matches(absolute, relative, |compiled| &compiled.paths)
    }

    /// Whether one of them may lie below this path.
    pub(crate) fn leads(&self, absolute: Option<&Path>, relative: &Path) -> bool {
        self.matches(absolute, relative, |compiled| &compiled.ways)
    }

    fn matches(
        &self,
        absolute: Option<&Path>,
        relative: &Path,
        which: impl Fn(&Compiled) -> &GlobSet,
    ) -> bool {
        if self.globs.is_empty() || relative.as_os_str().is_empty() {
            return false;
        }
        let compiled = self.compiled.get_or_init(|| compile(&self.globs));
        compiled.as_ref().is_none_or(|compiled| {
            let set = which(compiled);
            set.is_match(relative) || absolute.is_some_and(|path| set.is_match(path))
        })
    }
}

fn compile(globs: &[String]) -> Option<Compiled> {
    let ways = globs.iter().flat_map(|glob| {
        let ends = glob.match_indices('/').map(|(at, _)| at);
        let ways = ends.filter_map(|end| glob.get(..end));
        ways.filter(|way| !way.is_empty() && !way.ends_with("**"))
    });
    Some(Compiled {
        paths: set(globs.iter().map(String::as_str))?,
        // A slash within braces gives no glob; what it leads to is still denied by its own name.
        ways: set(ways.filter(|way| GlobBuilder::new(way).build().is_ok()))?,
    })
}

fn set<'a>(globs: impl Iterator<Item = &'a str>) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let built = GlobBuilder::new(glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        set.add(built.ok()?);
    }
    set.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(globs: &[&str]) -> DeniedWrites {
        DeniedWrites::new(globs.iter().map(|glob| (*glob).to_owned()).collect())
    }

    #[test]
    fn paths_match_by_their_absolute_or_their_relative_form() {
        let denied = denied(&["prod.cfg", "conf/**", "**/*.lock", "/w/abs/x"]);
        let has = |path: &str| denied.has(Some(&Path::new("/w").join(path)), Path::new(path));
        for path in ["prod.cfg", "conf/a", "conf/a/b", "x/y.lock", "z.lock", "abs/x"] {
            assert!(has(path), "{path}");
        }
        for path in ["", "sub/prod.cfg", "conf", "abs", "abs/y"] {
            assert!(!has(path), "{path}");
        }
    }

    #[test]
    fn a_way_to_a_denied_path_is_known() {
        let denied = denied(&["conf/prod/x.cfg", "**/keys/a", "/w/abs/x"]);
        let leads = |path: &str| denied.leads(Some(&Path::new("/w").join(path)), Path::new(path));
        for path in ["conf", "conf/prod", "keys", "sub/keys", "abs"] {
            assert!(leads(path), "{path}");
        }
        for path in ["other", "conf/other", "conf/prod/x.cfg", "sub"] {
            assert!(!leads(path), "{path}");
        }
    }

    #[test]
    fn added_paths_are_meant_literally_and_once() {
        let mut denied = denied(&["a"]);
        denied.add([Path::new("/w/x[1]"), Path::new("/w/x[1]")]);
        assert_eq!(denied.globs.len(), 3);
        let has = |path: &str| denied.has(Some(&Path::new("/w").join(path)), Path::new(path));
        assert!(has("a") && has("x[1]") && has("x[1]/y/z"));
        assert!(!has("x1") && !has("x[1]y"));
        assert!(denied.leads(Some(Path::new("/w")), Path::new("other")));
    }

    #[test]
    fn i7_with_a_glob_that_does_not_compile_every_path_is_denied() {
        assert!(denied(&["a[b"]).has(None, Path::new("x")));
        assert!(!denied(&[]).has(None, Path::new("x")));
    }
}
