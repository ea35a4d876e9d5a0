//! The classification of a path.

use crate::denied::DeniedWrites;
use crate::exception::{BadException, DEFAULT_EXCEPTIONS, Exception, MAX_EXCEPTIONS};
use crate::git;
use crate::named::Named;
use crate::obeyed::obeyed;
use crate::places::{Place, Places};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// The class of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// No program acts on it by itself.
    Free,
    /// Git's own data: objects, references, the index. Commands may write it, so that `git commit` works; file tools have
    /// no reason to.
    GitData,
    /// Files that `git init` creates and nothing acts on: sample hooks, `description`. Commands may write them.
    GitSetup,
    /// A git directory, or a directory at its top. Commands may create it empty, and remove it when it is empty.
    GitDirectory,
    /// The configuration of a repository. Commands may replace it within the limits of
    /// [`check_config_change`](crate::check_config_change).
    GitConfig,
    /// The references of a repository in one file. Commands may replace it within the limits of
    /// [`check_packed_refs`](crate::check_packed_refs).
    GitPackedRefs,
    /// The directory of an operation under way that consists of steps: a rebase, or a series of picks. Commands may create
    /// it, and remove it when it is empty.
    GitOperation,
    /// The steps that are left of such an operation. Commands may replace it within the limits of
    /// [`check_steps`](crate::check_steps).
    GitSteps,
    /// The options of a series of picks. Commands may replace it within the limits of
    /// [`check_options`](crate::check_options).
    GitOptions,
    /// Decides what git shows of a repository: `info/exclude`, `shallow`. Only who made the repository may write it.
    GitOfMaker,
    /// A write to it may run code outside of the sandbox.
    Protected(Reason),
}

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is a git directory, or configures one.
    GitMetadata,
    /// Git's configuration names it: hooks, attributes, an included file.
    NamedByGit,
    /// A component starts with a dot: editors, shells, package managers and CI read such files unasked.
    Hidden,
    /// Agents read it as instructions.
    Instructions,
    /// A program runs what it says, without a person naming it.
    Runs,
    /// It is a place of the home directory that shells, desktops and other programs read by themselves.
    Home,
    /// It is a place of the system.
    System,
    /// It is agentd's own.
    Own,
    /// A rule of the operator forbids to write it.
    Denied,
}

impl Reason {
    /// The reason as the end of the sentence "PATH is protected: ..".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::GitMetadata => "git reads it and may run programs that it names",
            Self::NamedByGit => "the git configuration names it",
            Self::Hidden => "tools read hidden files automatically",
            Self::Instructions => "agents read it as instructions",
            Self::Runs => "a tool runs what it says without being told to",
            Self::Home => "programs of your shell, desktop and tools read it automatically",
            Self::System => "programs of the system read it automatically",
            Self::Denied => "a rule forbids to write it",
            Self::Own => "agentd keeps its own files there",
        }
    }
}

/// A path that a file tool must not write without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The reason.
    pub reason: Reason,
    /// The name in the path that causes this; empty if the whole path does.
    pub component: String,
}

impl From<Place> for Guard {
    fn from(place: Place) -> Self {
        let name = place.path.file_name().unwrap_or_default();
        Self {
            component: name.to_string_lossy().into_owned(),
            reason: place.reason,
        }
    }
}

/// The protected paths of one working directory. Serialized, it is sent to the process that starts commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPaths {
    exceptions: Vec<Exception>,
    /// What is known about the working directory.
    found: Box<Named>,
    /// What is protected by its absolute path.
    #[serde(default)]
    places: Box<Places>,
    /// Commands change no repository that was there before the session.
    #[serde(default)]
    keeps_git: bool,
    /// What commands must not write, wherever it is in the working directory.
    #[serde(default)]
    denied: Box<DeniedWrites>,
}

impl Default for ProtectedPaths {
    fn default() -> Self {
        Self {
            exceptions: DEFAULT_EXCEPTIONS
                .iter()
                .map(|text| Exception::trusted(text))
                .collect(),
            found: Box::default(),
            places: Box::default(),
            keeps_git: false,
            denied: Box::default(),
        }
    }
}

impl ProtectedPaths {
    /// Parses the configured exceptions: names of entries, in which `*` matches any characters within a name. A matching
    /// entry and everything below it are free, except for git directories.
    ///
    /// # Errors
    /// An exception that is empty, contains a slash, or matches `.git`; more than 256 of them.
    pub fn new<'a>(exceptions: impl IntoIterator<Item = &'a str>) -> Result<Self, BadException> {
        let exceptions: Vec<Exception> = exceptions
            .into_iter()
            .map(Exception::parse)
            .collect::<Result<_, _>>()?;
        if exceptions.len() > MAX_EXCEPTIONS {
            return Err(BadException::TooMany(exceptions.len()));
        }
        Ok(Self {
            exceptions,
            ..Self::default()
        })
    }

    /// Also protects these places.
    #[must_use]
    pub fn with_places(self, places: Places) -> Self {
        Self {
            places: Box::new(places),
            ..self
        }
    }

    /// Commands must not write these paths either. File tools ask the rules themselves.
    #[must_use]
    pub fn with_denied(self, denied: DeniedWrites) -> Self {
        Self {
            denied: Box::new(denied),
            ..self
        }
    }

    /// Whether there are such paths.
    #[must_use]
    pub const fn has_denied(&self) -> bool {
        !self.denied.is_empty()
    }

    /// Whether a path relative to the working directory is one of them.
    #[must_use]
    pub fn denies(&self, relative: &Path) -> bool {
        self.denied.has(self.absolute(relative).as_deref(), relative)
    }

    /// Whether one of them may lie below this path, so that a link there would lead elsewhere.
    #[must_use]
    pub fn leads_to_denied(&self, relative: &Path) -> bool {
        self.denied.leads(self.absolute(relative).as_deref(), relative)
    }

    fn absolute(&self, relative: &Path) -> Option<std::path::PathBuf> {
        self.found.workdir.as_ref().map(|workdir| workdir.join(relative))
    }

    /// Whether commands leave the repositories as they are that were there before the session.
    #[must_use]
    pub fn keeping_git(self, keeps_git: bool) -> Self {
        Self { keeps_git, ..self }
    }

    /// Whether commands leave the repositories as they are that were there before the session.
    #[must_use]
    pub const fn keeps_git(&self) -> bool {
        self.keeps_git
    }

    /// These places.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The place that contains an absolute path without links, if the path is protected whatever the working directory is.
    #[must_use]
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.places.place(path)
    }

    /// The same for a call in a working directory. Names below that directory are classified on their own: an exception may
    /// free them.
    #[must_use]
    pub fn place_at(&self, workdir: &Path, path: &Path) -> Option<Place> {
        if !path.starts_with(workdir) {
            return self.places.place(path);
        }
        let inside = || self.places.of_machine(path).filter(|_| path != workdir);
        self.places.place(workdir).or_else(inside)
    }

    /// Also protects what git's configuration names in a working directory, and the places that this directory is in or
    /// contains. Commands must not write agentd's own files there, nor replace what leads to them.
    #[must_use]
    pub fn with_named(mut self, named: Named) -> Self {
        self.found.merge(named);
        if let Some(workdir) = &self.found.workdir {
            self.denied.add(self.places.own_below(workdir));
        }
        self
    }

    /// Why every path is protected, if so: agentd cannot tell which files git runs. A sentence for people.
    #[must_use]
    pub fn everything(&self) -> Option<&str> {
        self.found.everything.as_deref()
    }

    /// Classifies a path relative to the working directory. The working directory itself (an empty path) is free.
    #[must_use]
    pub fn classify(&self, relative: &Path) -> Class {
        let Some(names) = names(relative) else {
            return Class::Protected(Reason::Hidden);
        };
        if let Some(place) = self.place_of(relative) {
            return Class::Protected(place.reason);
        }
        if self.denies(relative) {
            return Class::Protected(Reason::Denied);
        }
        match self.in_git(relative, &names) {
            Some((class, _)) => class,
            None => self
                .outside_git(relative, &names)
                .map_or(Class::Free, |(reason, _)| Class::Protected(reason)),
        }
    }

    /// Returns why a file tool must not write a path without asking: it is protected, or git's own data.
    #[must_use]
    pub fn guard(&self, relative: &Path) -> Option<Guard> {
        let guard = |(reason, component)| Guard { reason, component };
        let Some(names) = names(relative) else {
            return Some(guard((Reason::Hidden, String::new())));
        };
        if let Some(place) = self.place_of(relative) {
            return Some(place.into());
        }
        match self.in_git(relative, &names) {
            Some((_, name)) => Some(guard((Reason::GitMetadata, name))),
            None => self.outside_git(relative, &names).map(guard),
        }
    }

    /// The place that protects a path of the working directory: one that contains this directory, or one in it.
    fn place_of(&self, relative: &Path) -> Option<Place> {
        let workdir = self.found.workdir.as_ref()?;
        self.place_at(workdir, &workdir.join(relative))
    }

    /// The class of a path in a git directory, with that directory's name: a `.git`, or what is one by its contents.
    fn in_git(&self, relative: &Path, names: &[String]) -> Option<(Class, String)> {
        if let Some(found) = git::classify(names) {
            return Some(found);
        }
        let around = self.found.repositories.iter().find_map(|repository| {
            let inside = relative.strip_prefix(repository).ok()?;
            let name = repository.file_name()?.to_string_lossy().into_owned();
            Some((Path::new(".git").join(inside), name))
        });
        let inside = || {
            let inside = self.found.inside.as_ref()?;
            Some((Path::new(".git").join(inside).join(relative), String::new()))
        };
        let (path, name) = around.or_else(inside)?;
        let (class, _) = git::classify(&self::names(&path)?)?;
        Some((class, name))
    }

    /// Why a path outside of git directories is protected, with the name that causes this.
    fn outside_git(&self, relative: &Path, names: &[String]) -> Option<(Reason, String)> {
        if self.found.everything.is_some() {
            return Some((Reason::NamedByGit, String::new()));
        }
        if let Some(named) = self.found.paths.iter().find(|named| relative.starts_with(named)) {
            let name = named.file_name().unwrap_or_default();
            return Some((Reason::NamedByGit, name.to_string_lossy().into_owned()));
        }
        let file = names.last()?;
        if file == git::BARE && !names.iter().any(|name| self.excepts(name)) {
            return Some((Reason::GitMetadata, file.clone()));
        }
        for name in names {
            if self.excepts(name) {
                return None;
            }
            if name.starts_with('.') {
                return Some((Reason::Hidden, name.clone()));
            }
        }
        obeyed(file).map(|reason| (reason, file.clone()))
    }

    /// Whether a path is at or below an exception. A directory that moves from such a place to another may contain names
    /// that would be refused there. Names in a git directory, such as a branch `build`, are no exceptions.
    #[must_use]
    pub fn is_excepted(&self, relative: &Path) -> bool {
        let outside = |names: Vec<String>| {
            let mut outside = names.iter().take_while(|name| !git::is_git(name));
            outside.any(|name| self.excepts(name))
        };
        names(relative).is_some_and(outside)
    }

    fn excepts(&self, name: &str) -> bool {
        self.exceptions.iter().any(|exception| exception.matches(name))
    }
}

/// The names of a path, or `None` if it leads upwards or is absolute. Invalid UTF-8 becomes a replacement character, which
/// no exception matches by accident: exceptions are text.
fn names(relative: &Path) -> Option<Vec<String>> {
    let parts = relative.components().filter(|part| *part != Component::CurDir);
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    };
    parts.map(name).collect()
}
