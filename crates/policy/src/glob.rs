//! A glob that is compiled on first use: a daemon has many rules, and most of them are about tools that it does not use for
//! a while. Globs come from models, projects and operators, so their size is checked before they are compiled.

use globset::{Glob, GlobMatcher, GlobSet, GlobSetBuilder};
use std::sync::{Arc, OnceLock};

/// A longer glob is compiled immediately, so that one that does not compile is refused where it is parsed.
const SHORT: usize = 200;
/// The longest glob, in bytes.
const LONGEST: usize = 4_096;
/// The maximum nesting of braces. The regex parser gives up above 250, and `globset` recurses once per level.
const DEEPEST: usize = 10;
/// The maximum number of alternatives in all braces of one glob.
const ALTERNATIVES: usize = 1_000;

/// Checks that a glob is small enough to be compiled: its length, the depth of its braces and their alternatives.
///
/// # Errors
/// Which bound it exceeds, as a clause for a message.
pub fn check_glob(text: &str) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it has {} bytes; the limit is {LONGEST}", text.len()));
    }
    let (mut depth, mut alternatives) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth > 0 => alternatives += 1,
            _ => {}
        }
        if depth > DEEPEST {
            return Err(format!("its braces nest deeper than {DEEPEST} levels"));
        }
    }
    if alternatives > ALTERNATIVES {
        return Err(format!("its braces have more than {ALTERNATIVES} alternatives"));
    }
    Ok(())
}

/// Compiles a glob and returns an error when that fails; `Glob::compile_matcher` panics instead.
///
/// # Errors
/// Which bound it exceeds, or why it does not compile.
pub fn compile_glob(glob: &Glob) -> Result<GlobSet, String> {
    check_glob(glob.glob())?;
    let mut set = GlobSetBuilder::new();
    set.add(glob.clone());
    set.build().map_err(|error| error.kind().to_string())
}

/// A glob; clones share the compiled form.
#[derive(Debug, Clone)]
pub(crate) struct LazyGlob {
    glob: Glob,
    matcher: Arc<OnceLock<GlobMatcher>>,
}

impl LazyGlob {
    /// Creates a glob that is within the bounds and compiles.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn new(glob: Glob) -> Result<Self, String> {
        let lazy = Self {
            glob,
            matcher: Arc::default(),
        };
        // Stars, question marks and letters always compile.
        let text = lazy.glob.glob();
        if text.len() > SHORT || text.contains(['{', '[']) {
            compile_glob(&lazy.glob)?;
            lazy.matcher();
        }
        Ok(lazy)
    }

    pub(crate) fn text(&self) -> &str {
        self.glob.glob()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.matcher().is_match(text)
    }

    fn matcher(&self) -> &GlobMatcher {
        self.matcher.get_or_init(|| self.glob.compile_matcher())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lazy(text: &str) -> Result<LazyGlob, String> {
        LazyGlob::new(Glob::new(text).unwrap())
    }

    #[test]
    fn i7_a_glob_that_may_be_too_large_is_compiled_where_it_is_read() {
        let compiled = |text: &str| lazy(text).unwrap().matcher.get().is_some();
        assert!(!compiled(&"a".repeat(SHORT)));
        assert!(compiled(&"a".repeat(SHORT + 1)));
        assert!(compiled("{a,b}") && compiled("[ab]"));
    }

    #[test]
    fn clones_share_what_was_compiled() {
        let lazy = lazy("a*").unwrap();
        let copy = lazy.clone();
        assert!(copy.is_match("ab") && !copy.is_match("b"));
        assert!(lazy.matcher.get().is_some());
    }

    #[test]
    fn i6_a_glob_is_accepted_up_to_its_bounds_and_refused_beyond() {
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        let many = |alternatives: usize| format!("{{{}}}", ",".repeat(alternatives));
        for (fits, too_large) in [
            ("a".repeat(LONGEST), "a".repeat(LONGEST + 1)),
            (nested(DEEPEST), nested(DEEPEST + 1)),
            (many(ALTERNATIVES), many(ALTERNATIVES + 1)),
        ] {
            assert_eq!(check_glob(&fits), Ok(()));
            assert!(lazy(&fits).is_ok(), "{fits}");
            assert!(check_glob(&too_large).is_err());
            assert!(lazy(&too_large).is_err(), "{too_large}");
        }
    }

    #[test]
    fn redteam_control_deeply_nested_braces_make_globset_panic() {
        // Positive control: without the check, a glob of 521 bytes panics when it is compiled.
        let glob = Glob::new(&format!("{}a{}", "{".repeat(260), "}".repeat(260))).unwrap();
        let compiled = std::panic::catch_unwind(|| glob.compile_matcher());
        assert!(compiled.is_err());
        assert!(LazyGlob::new(glob).is_err());
    }
}
