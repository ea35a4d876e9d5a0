//! The pattern between the parentheses of a rule.

use crate::computed::Computed;
use crate::glob::{LazyGlob, check_glob};
use crate::path::{absolute, expand_home, inside};
use crate::tree::alternatives;
use crate::url::UrlPattern;
use crate::words::Words;
use globset::GlobBuilder;

/// The calls that a rule matches.
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
    /// A tool of a server as long as its description has this hash.
    Version(String),
}

/// A glob over paths: `/etc/**`, `~/x`, `**/*.md`, or relative to the working directory.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: LazyGlob,
    root: Root,
    everything: bool,
    /// The names that the last component may be, where it has no wildcard.
    names: Vec<String>,
    /// The pattern in a form that is compared with words that a shell computes.
    computed: Computed,
}

/// The base of a path pattern.
#[derive(Debug, Clone)]
enum Root {
    /// None: it matches absolute paths.
    Whole,
    /// The working directory.
    Workdir,
    /// The home directory; holds the same pattern for any directory, in case the home directory is unknown.
    Home(LazyGlob),
}

impl PathPattern {
    /// Parses a pattern.
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
            computed: Computed::new(&alternatives(text)),
        })
    }

    /// Whether an absolute path matches. Without a known home directory, any path that ends like a home pattern matches.
    pub(crate) fn matches(&self, workdir: &str, home: Option<&str>, path: &str) -> bool {
        match (&self.root, home) {
            (Root::Whole, _) => self.glob.is_match(path),
            (Root::Workdir, _) => inside(workdir, path).is_some_and(|path| self.glob.is_match(path)),
            (Root::Home(_), Some(home)) => inside(home, path).is_some_and(|path| self.glob.is_match(path)),
            (Root::Home(anywhere), None) => anywhere.is_match(path),
        }
    }

    /// Whether a word of a command run in `base` names a matching path, a directory with matching entries, or has a wildcard
    /// for one.
    pub(crate) fn is_touched(&self, workdir: &str, home: Option<&str>, base: &str, word: &str) -> bool {
        let path = absolute(base, &expand_home(home, word));
        let matches = |path: &str| self.matches(workdir, home, path);
        matches(&path) || matches(&format!("{path}/\u{1}")) || self.is_meant(&path, &matches)
    }

    /// Whether a word with a wildcard may expand to a matching path.
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
        // As in a shell, only an explicit dot matches the first dot of a name.
        let shown = |name: &&String| !name.starts_with('.') || last.starts_with('.');
        let mut names = self.names.iter().filter(shown);
        names.any(|name| glob.is_match(name) && matches(&format!("{dir}/{name}")))
    }

    /// Whether an absolute word that a shell computes may be a matching path. `ending`: see [`Computed::may_be`].
    pub(crate) fn may_be(&self, workdir: &str, home: Option<&str>, word: &str, ending: bool) -> bool {
        let root = match (&self.root, home) {
            (Root::Whole, _) => "",
            (Root::Workdir, _) => workdir,
            (Root::Home(_), Some(home)) => home,
            (Root::Home(_), None) => return self.computed.may_be_anywhere(word),
        };
        self.computed.may_be(root, word, ending)
    }

    /// The glob, absolute or relative to the working directory. Without a known home directory, any path that ends like a
    /// home pattern matches.
    pub(crate) fn text(&self, home: Option<&str>) -> String {
        let text = self.glob.text();
        match (&self.root, home) {
            (Root::Whole | Root::Workdir, _) => text.to_owned(),
            (Root::Home(_), Some(home)) => format!("{}/{text}", globset::escape(home.trim_end_matches('/'))),
            (Root::Home(anywhere), None) => anywhere.text().to_owned(),
        }
    }

    /// Whether the pattern needs a home directory.
    pub(crate) const fn needs_home(&self) -> bool {
        matches!(self.root, Root::Home(_))
    }

    /// Whether such paths may be in a working directory, which every command can read.
    pub(crate) const fn is_near(&self, relative: bool) -> bool {
        matches!(self.root, Root::Workdir) || (matches!(self.root, Root::Whole) && relative)
    }

    /// Whether every path matches.
    pub(crate) const fn is_everything(&self) -> bool {
        self.everything
    }
}

/// The literal names of a pattern's last component.
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

/// The exact path as a pattern that means the same in any working directory.
pub(crate) fn exact_path(workdir: &str, home: Option<&str>, path: &str) -> Option<String> {
    let path = absolute(workdir, &expand_home(home, path));
    let pattern = globset::escape(&path);
    let matches = PathPattern::parse(&pattern).ok()?.matches(workdir, home, &path);
    (matches && !pattern.chars().any(crate::path::hidden) && !pattern.contains('\n')).then_some(pattern)
}
