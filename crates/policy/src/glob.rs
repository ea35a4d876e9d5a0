//! A glob that is compiled when something is first held against it: a daemon has many rules, and most of them are about
//! tools that it will not run for a while.

use globset::{Glob, GlobMatcher};
use std::sync::{Arc, OnceLock};

/// A longer one is compiled at once: what does not compile must be refused where it is read.
const SHORT: usize = 200;

/// A glob; clones share what was compiled.
#[derive(Debug, Clone)]
pub(crate) struct LazyGlob {
    glob: Glob,
    matcher: Arc<OnceLock<GlobMatcher>>,
}

impl LazyGlob {
    pub(crate) fn new(glob: Glob) -> Self {
        let lazy = Self {
            glob,
            matcher: Arc::default(),
        };
        if lazy.glob.glob().len() > SHORT {
            lazy.matcher();
        }
        lazy
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

    #[test]
    fn i7_a_glob_that_may_be_too_large_is_compiled_where_it_is_read() {
        let compiled = |length: usize| {
            let lazy = LazyGlob::new(Glob::new(&"a".repeat(length)).unwrap());
            lazy.matcher.get().is_some()
        };
        assert!(!compiled(SHORT));
        assert!(compiled(SHORT + 1));
    }

    #[test]
    fn clones_share_what_was_compiled() {
        let lazy = LazyGlob::new(Glob::new("a*").unwrap());
        let copy = lazy.clone();
        assert!(copy.is_match("ab") && !copy.is_match("b"));
        assert!(lazy.matcher.get().is_some());
    }
}
