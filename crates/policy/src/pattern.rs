//! What stands between the parentheses of a rule.

use crate::glob::LazyGlob;
use crate::path::{absolute, expand_home, inside};
use crate::url::UrlPattern;
use crate::words::Words;
use globset::GlobBuilder;

/// What a rule looks for.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Every call of the tool.
    Any,
    /// A command.
    Command(Words),
    /// A path.
    Path(PathPattern),
    /// An address.
    Url(UrlPattern),
}

/// A glob over paths: `/etc/**`, `~/x`, `**/*.md`, or relative to the working directory.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: LazyGlob,
    root: Root,
    everything: bool,
}

/// What a path pattern is relative to.
#[derive(Debug, Clone)]
enum Root {
    /// Nothing: it names whole paths.
    Whole,
    /// The working directory.
    Workdir,
    /// The home directory; with the same pattern anywhere, for when there is no known home.
    Home(LazyGlob),
}

impl PathPattern {
    /// Reads a pattern.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        let everything = matches!(pattern, "**" | "/**" | "**/*");
        let (root, text) = if let Some(rest) = pattern.strip_prefix("~/") {
            (Root::Home(compile(&format!("**/{rest}"))?), rest)
        } else if pattern.starts_with('/') || pattern.starts_with("**") {
            (Root::Whole, pattern)
        } else {
            (Root::Workdir, pattern.strip_prefix("./").unwrap_or(pattern))
        };
        Ok(Self {
            glob: compile(text)?,
            root,
            everything,
        })
    }

    /// Whether an absolute path fits. Without a known home, anything that ends like a home pattern fits.
    pub(crate) fn matches(&self, workdir: &str, home: Option<&str>, path: &str) -> bool {
        match (&self.root, home) {
            (Root::Whole, _) => self.glob.is_match(path),
            (Root::Workdir, _) => inside(workdir, path).is_some_and(|path| self.glob.is_match(path)),
            (Root::Home(_), Some(home)) => inside(home, path).is_some_and(|path| self.glob.is_match(path)),
            (Root::Home(anywhere), None) => anywhere.is_match(path),
        }
    }

    /// Whether the pattern needs a home directory.
    pub(crate) const fn needs_home(&self) -> bool {
        matches!(self.root, Root::Home(_))
    }

    /// Whether every path fits.
    pub(crate) const fn is_everything(&self) -> bool {
        self.everything
    }
}

fn compile(text: &str) -> Result<LazyGlob, String> {
    let built = GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    built.map(LazyGlob::new).map_err(|error| error.kind().to_string())
}

/// The exact path as a pattern that any working directory reads the same way.
pub(crate) fn exact_path(workdir: &str, home: Option<&str>, path: &str) -> Option<String> {
    let path = absolute(workdir, &expand_home(home, path));
    let pattern = globset::escape(&path);
    let matches = PathPattern::parse(&pattern).ok()?.matches(workdir, home, &path);
    (matches && !pattern.chars().any(crate::path::hidden) && !pattern.contains('\n')).then_some(pattern)
}
