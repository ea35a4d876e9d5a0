//! What stands between the parentheses of a rule.

use crate::glob::{LazyGlob, check_glob};
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
    /// A tool of a server as long as what the server says of it has this hash.
    Version(String),
}

/// A glob over paths: `/etc/**`, `~/x`, `**/*.md`, or relative to the working directory.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: LazyGlob,
    root: Root,
    everything: bool,
    /// What the last part may be, where it has no wildcard.
    names: Vec<String>,
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
            names: last_names(text),
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

    /// Whether a word of a command that starts in `base` names such a path, a directory whose entries are such, or has a
    /// wildcard for one.
    pub(crate) fn is_touched(&self, workdir: &str, home: Option<&str>, base: &str, word: &str) -> bool {
        let path = absolute(base, &expand_home(home, word));
        let matches = |path: &str| self.matches(workdir, home, path);
        matches(&path) || matches(&format!("{path}/\u{1}")) || self.is_meant(&path, &matches)
    }

    /// Whether a word with a wildcard may become such a path.
    fn is_meant(&self, path: &str, matches: &dyn Fn(&str) -> bool) -> bool {
        let Some((dir, last)) = path
            .rsplit_once('/')
            .filter(|(_, last)| last.contains(['*', '?', '[']))
        else {
            return false;
        };
        let Ok(glob) = GlobBuilder::new(last).literal_separator(true).build() else {
            return false;
        };
        let glob = glob.compile_matcher();
        // As in a shell, only a dot stands for the first dot of a name.
        let shown = |name: &&String| !name.starts_with('.') || last.starts_with('.');
        let mut names = self.names.iter().filter(shown);
        names.any(|name| glob.is_match(name) && matches(&format!("{dir}/{name}")))
    }

    /// Whether the pattern needs a home directory.
    pub(crate) const fn needs_home(&self) -> bool {
        matches!(self.root, Root::Home(_))
    }

    /// Whether such paths may lie in a working directory, where every command reads.
    pub(crate) const fn is_near(&self, relative: bool) -> bool {
        matches!(self.root, Root::Workdir) || (matches!(self.root, Root::Whole) && relative)
    }

    /// Whether every path fits.
    pub(crate) const fn is_everything(&self) -> bool {
        self.everything
    }
}

/// The names that the last part of a pattern spells out.
fn last_names(text: &str) -> Vec<String> {
    let last = text.rsplit_once('/').map_or(text, |(_, last)| last);
    let names: Vec<String> = match last
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
    {
        Some((head, (inner, tail))) => inner.split(',').map(|one| format!("{head}{one}{tail}")).collect(),
        None => vec![last.to_owned()],
    };
    names
        .into_iter()
        .filter(|name| !name.contains(['*', '?', '[', '{', '\\']))
        .collect()
}

fn compile(text: &str) -> Result<LazyGlob, String> {
    check_glob(text)?;
    let built = GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    LazyGlob::new(built.map_err(|error| error.kind().to_string())?)
}

/// The exact path as a pattern that any working directory reads the same way.
pub(crate) fn exact_path(workdir: &str, home: Option<&str>, path: &str) -> Option<String> {
    let path = absolute(workdir, &expand_home(home, path));
    let pattern = globset::escape(&path);
    let matches = PathPattern::parse(&pattern).ok()?.matches(workdir, home, &path);
    (matches && !pattern.chars().any(crate::path::hidden) && !pattern.contains('\n')).then_some(pattern)
}
