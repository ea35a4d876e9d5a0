//! Places of the machine whose files act by themselves: classified by their absolute path, so that no choice of a working
//! directory makes them ordinary. Pure, but for [`Places::followed`].

use crate::exception::{DEFAULT_EXCEPTIONS, Exception};
use crate::git;
use crate::named::real_path;
use crate::paths::Reason;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Directories of a home directory that hold programs, without a dot. A shell finds them by `PATH`.
const PROGRAMS_OF_HOME: [&str; 4] = ["bin", "go/bin", "perl5", "sbin"];

/// The system's places: its settings, programs and libraries, the kernel's state, and timetables.
const SYSTEM: [&str; 15] = [
    "/bin",
    "/boot",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/spool",
];
/// Below these, but for people's files: containers keep projects there.
const PROJECTS: [&str; 2] = ["/usr/local/src", "/usr/src"];
/// Programs make working trees below a directory of this name in their own hidden one: `~/.codex/worktrees/a1/app`.
const WORKTREES: &str = "worktrees";
/// A hidden directory that has only working trees.
const HIDDEN_WORKTREES: &str = ".worktrees";
/// The maximum number of entries of a home directory to look at.
const MAX_ENTRIES: usize = 4_096;

/// A place that is protected whatever the working directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path: the given directory, or one above it.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

impl fmt::Display for Place {
    /// `/home/ana/.ssh is protected: tools read hidden files automatically`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is protected: {}", self.path.display(), self.reason.words())
    }
}

/// The places of one machine, as one user sees it. Serialized, they are sent to the process that starts commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Places {
    home: Vec<PathBuf>,
    /// agentd's own files and directories: data, settings, the socket.
    own: Vec<PathBuf>,
    /// The directories of workspaces in them.
    workspaces: Vec<PathBuf>,
    /// Where links of the home directory's hidden entries lead.
    linked: Vec<PathBuf>,
}

impl Places {
    /// The places of a user with this home directory, and agentd's `own` files and directories. Relative paths do not count.
    #[must_use]
    pub fn of(home: Option<&Path>, own: impl IntoIterator<Item = PathBuf>) -> Self {
        let home = home.filter(|home| is_below_root(home));
        Self {
            home: home.into_iter().map(Path::to_owned).collect(),
            own: own.into_iter().filter(|dir| is_below_root(dir)).collect(),
            workspaces: Vec::new(),
            linked: Vec::new(),
        }
    }

    /// Also knows the directory of the workspaces: `SESSION/TREE` in it is a working directory like others.
    #[must_use]
    pub fn with_workspaces(mut self, dir: PathBuf) -> Self {
        self.workspaces.push(dir);
        self
    }

    /// Also knows the real paths of all this, and where links among the home directory's hidden entries lead: a
    /// `~/.config` may be a link into another directory. Reads at most a few thousand entries.
    #[must_use]
    pub fn followed(mut self) -> Self {
        for paths in [&mut self.home, &mut self.own, &mut self.workspaces] {
            let real: Vec<PathBuf> = paths.iter().filter_map(|path| real_path(path)).collect();
            paths.extend(real);
            paths.sort();
            paths.dedup();
        }
        let entries = self.home.iter().filter_map(|home| std::fs::read_dir(home).ok());
        let entries = entries.flat_map(|dir| dir.flatten().take(MAX_ENTRIES));
        let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        let links = hidden.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let targets = links.filter_map(|entry| real_path(&entry.path()));
        // A link to the home directory itself, or to one above it, would make everything a place.
        let contains_home = |path: &Path| self.home.iter().any(|home| home.starts_with(path));
        self.linked = targets.filter(|path| !contains_home(path)).collect();
        self
    }

    /// Whether an absolute path without links is a protected place or inside one. It counts every hidden name in the path
    /// and every git directory.
    #[must_use]
    pub fn place(&self, path: &Path) -> Option<Place> {
        if self.workspace(path) {
            return None;
        }
        self.of_machine(path).or_else(|| hidden(path))
    }

    /// Whether a path is in a place of the home directory, of the system or of agentd. Names below a working directory
    /// are classified on their own.
    #[must_use]
    pub fn of_machine(&self, path: &Path) -> Option<Place> {
        if self.workspace(path) {
            return None;
        }
        let place = |path: PathBuf, reason| Some(Place { path, reason });
        if let Some(own) = self.own.iter().find(|own| path.starts_with(own)) {
            return place(own.clone(), Reason::Own);
        }
        if let Some(linked) = self.linked.iter().find(|linked| path.starts_with(linked)) {
            return place(linked.clone(), Reason::Home);
        }
        if let Some(found) = self.home.iter().find_map(|home| of_home(home, path)) {
            return place(found, Reason::Home);
        }
        let under = |tops: &[&str]| tops.iter().find(|top| path.starts_with(top)).map(PathBuf::from);
        let project = self.home.iter().any(|home| path.starts_with(home)) || under(&PROJECTS).is_some();
        under(&SYSTEM)
            .filter(|_| !project)
            .and_then(|top| place(top, Reason::System))
    }

    /// agentd's own files and directories below a directory.
    pub(crate) fn own_below(&self, dir: &Path) -> impl Iterator<Item = &Path> {
        let own = self.own.iter().map(PathBuf::as_path);
        own.filter(move |own| own.starts_with(dir) && *own != dir)
    }

    /// Whether a path is in the tree of a workspace. agentd's own repository is `git`, next to the tree.
    fn workspace(&self, path: &Path) -> bool {
        let mut inside = self
            .workspaces
            .iter()
            .filter_map(|dir| path.strip_prefix(dir).ok());
        inside.any(|inside| {
            let mut names = inside.components().skip(1);
            names.next().is_some_and(|tree| tree.as_os_str() != "git")
        })
    }
}

fn is_below_root(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}

/// The place of a home directory that contains a path.
fn of_home(home: &Path, path: &Path) -> Option<PathBuf> {
    let names = names(path.strip_prefix(home).ok()?);
    let first = names.first()?;
    if first.starts_with('.') {
        return (!has_worktree(&names)).then(|| home.join(first));
    }
    let mut programs = PROGRAMS_OF_HOME.iter().map(|name| home.join(name));
    programs.find(|place| path.starts_with(place))
}

/// The first directory of an absolute path that is hidden, or a git directory. An exception frees only itself: what is
/// below it was not meant.
fn hidden(path: &Path) -> Option<Place> {
    let names = names(path);
    let reason = |at: usize, name: &String| {
        let rest = names.get(at..).unwrap_or_default();
        if git::is_git(name) {
            Some(Reason::GitMetadata)
        } else if name.starts_with('.') && !is_excepted(name) && !has_worktree(rest) {
            Some(Reason::Hidden)
        } else {
            None
        }
    };
    let found = |(at, name)| Some((at, reason(at, name)?));
    let (at, reason) = names.iter().enumerate().find_map(found)?;
    let mut place = PathBuf::from("/");
    place.extend(names.iter().take(at + 1));
    Some(Place { path: place, reason })
}

/// Whether a hidden name, the first of these, leads to a working tree of a program that makes such.
fn has_worktree(names: &[String]) -> bool {
    match names {
        [hidden, _, ..] if hidden == HIDDEN_WORKTREES => true,
        [hidden, below, _, ..] => below == WORKTREES && !git::is_git(hidden),
        _ => false,
    }
}

fn names(path: &Path) -> Vec<String> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

fn is_excepted(name: &str) -> bool {
    DEFAULT_EXCEPTIONS
        .iter()
        .any(|text| Exception::trusted(text).matches(name))
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
