//! Finds what git's configuration names in a working directory. The only reader of that configuration.

use crate::git::{completes_repository, is_repository};
use crate::git_config::{Entry, entries};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::{Component, Path, PathBuf};

/// The largest configuration file to read.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum number of files to read.
const MAX_FILES: usize = 512;
/// The maximum number of words in values to look up; each costs about a microsecond.
const MAX_WORDS: usize = 16_384;
/// The configuration of the machine.
const SYSTEM: &str = "/etc/gitconfig";
/// The maximum depth of includes; git's own limit.
const MAX_DEPTH: u8 = 10;
/// Variables whose whole value is a path that git reads or executes.
const PATHS: [&str; 4] = [
    "core.hookspath",
    "core.attributesfile",
    "init.templatedir",
    "core.worktree",
];

/// Variables that hold only names of remotes and references. A repository has thousands of them.
const REFERENCES: [&str; 3] = ["branch.merge", "branch.remote", "remote.fetch"];

/// What git's configuration names in a working directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Relative to the working directory.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Why every path must count as named, if so.
    pub(crate) everything: Option<String>,
    /// The real path of the working directory.
    pub(crate) workdir: Option<PathBuf>,
    /// Directories that are repositories by their contents, relative to the working directory.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// The working directory's path in a repository that it is in.
    pub(crate) inside: Option<PathBuf>,
}

impl Named {
    /// Adds what was found later. The first reason and the newest directory count.
    pub(crate) fn merge(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.repositories.extend(other.repositories);
        self.everything = self.everything.take().or(other.everything);
        self.workdir = other.workdir.or(self.workdir.take());
        self.inside = other.inside.or(self.inside.take());
    }

    /// Names these paths, relative to the working directory.
    #[must_use]
    pub fn paths<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Names every path, for this reason: a sentence for people.
    #[must_use]
    pub fn everything(why: impl Into<String>) -> Self {
        Self {
            everything: Some(why.into()),
            ..Self::default()
        }
    }
}

/// Returns the paths relative to `workdir` that the configuration of its repositories names: the hooks directory,
/// attributes, included files, git directories elsewhere, and files that a command in it mentions. The repositories are the
/// one that contains `workdir`, its submodules, and those above the paths `near` (relative to `workdir`). It also finds the
/// real path of `workdir`, by which [`ProtectedPaths`](crate::ProtectedPaths) knows the protected places around it.
///
/// It reads only regular files and blocks no longer than the disk does. An unreadable file in `workdir` names everything
/// (I7).
#[must_use]
pub fn named_by_git(workdir: &Path, home: Option<&Path>, near: &[PathBuf]) -> Named {
    named(
        workdir,
        &Others {
            home,
            system: Path::new(SYSTEM),
        },
        near,
    )
}

/// The locations of configuration that applies to every repository.
struct Others<'a> {
    home: Option<&'a Path>,
    system: &'a Path,
}

fn named(workdir: &Path, others: &Others<'_>, near: &[PathBuf]) -> Named {
    let mut reader = Reader {
        workdir,
        others,
        found: Named {
            workdir: Some(real_path(workdir).unwrap_or_else(|| workdir.to_owned())),
            ..Named::default()
        },
        files: MAX_FILES,
        words: MAX_WORDS,
    };
    for top in reader.repositories(near) {
        reader.repository(&top);
    }
    reader.by_contents(near);
    reader.found
}

struct Reader<'a> {
    workdir: &'a Path,
    others: &'a Others<'a>,
    found: Named,
    /// The remaining number of files to read.
    files: usize,
    /// The remaining number of words to look up.
    words: usize,
}

impl Reader<'_> {
    /// The top directories of the work trees.
    fn repositories(&mut self, near: &[PathBuf]) -> BTreeSet<PathBuf> {
        let is_top = |dir: &Path| fs::symlink_metadata(dir.join(".git")).is_ok();
        let mut tops: BTreeSet<PathBuf> = BTreeSet::new();
        tops.extend(
            self.workdir
                .ancestors()
                .find(|dir| is_top(dir))
                .map(Path::to_owned),
        );
        let modules = self.workdir.join(".gitmodules");
        if let Some(text) = self.read(&modules) {
            let paths = entries(&text)
                .into_iter()
                .filter(|entry| entry.name == "submodule.path");
            let dirs = paths.filter_map(|entry| tidied(&self.workdir.join(entry.value)));
            tops.extend(dirs.filter(|dir| dir.starts_with(self.workdir) && is_top(dir)));
        }
        for path in near.iter().filter_map(|path| tidied(&self.workdir.join(path))) {
            let inside = path
                .ancestors()
                .skip(1)
                .take_while(|dir| dir.starts_with(self.workdir));
            tops.extend(inside.filter(|dir| is_top(dir)).map(Path::to_owned));
        }
        tops
    }

    /// Finds the repositories without a `.git`, which git recognizes by their contents: one that the working directory is
    /// in, and those that the paths `near` are in, or would complete.
    fn by_contents(&mut self, near: &[PathBuf]) {
        let has = |dir: &Path, part: &str| fs::symlink_metadata(dir.join(part)).is_ok();
        let around = self
            .workdir
            .ancestors()
            .find(|dir| is_repository(|part| has(dir, part)));
        let inside = around.and_then(|dir| self.workdir.strip_prefix(dir).ok());
        self.found.inside = inside.map(Path::to_owned);
        for path in near.iter().filter_map(|path| tidied(&self.workdir.join(path))) {
            let mut at = path.as_path();
            while let (Some(dir), Some(name)) = (at.parent(), at.file_name()) {
                let Ok(relative) = dir.strip_prefix(self.workdir) else {
                    break;
                };
                let has = |part: &str| has(dir, part);
                let is_one = is_repository(has) || completes_repository(has, &name.to_string_lossy());
                if is_one && !relative.as_os_str().is_empty() {
                    self.found.repositories.insert(relative.to_owned());
                } else if is_one {
                    self.found.inside.get_or_insert_with(PathBuf::new);
                }
                at = dir;
            }
        }
    }

    fn repository(&mut self, top: &Path) {
        let mut git = top.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(found) if found.is_file() => {
                let text = self.read(&git).unwrap_or_default();
                let Some(elsewhere) = text.trim().strip_prefix("gitdir:") else {
                    return;
                };
                git = top.join(elsewhere.trim());
                self.add(&git);
            }
            Ok(found) if found.is_symlink() => self.add(&git),
            Ok(_) | Err(_) => {}
        }
        let common = self.read(&git.join("commondir"));
        let common = common.map_or_else(|| git.clone(), |text| git.join(text.trim()));
        if common != git {
            self.add(&common);
        }
        let mut files = vec![common.join("config"), git.join("config.worktree")];
        let global = self.others.home.into_iter().flat_map(|home| {
            [".gitconfig", ".config/git/config"]
                .into_iter()
                .map(|name| home.join(name))
        });
        files.extend(global);
        files.push(self.others.system.to_owned());
        for file in files {
            self.config(&file, top, 0);
        }
    }

    fn config(&mut self, file: &Path, top: &Path, depth: u8) {
        let Some(text) = self.read(file) else { return };
        for Entry { name, value, .. } in entries(&text) {
            if matches!(name.as_str(), "include.path" | "includeif.path") {
                let included = self.resolved(file.parent().unwrap_or(top), &value);
                self.add(&included);
                if depth < MAX_DEPTH {
                    self.config(&included, top, depth + 1);
                }
            } else if PATHS.contains(&name.as_str()) {
                let path = self.resolved(top, &value);
                // Setting the work tree to its default location names nothing.
                if name != "core.worktree" {
                    self.add(&path);
                }
            } else if !REFERENCES.contains(&name.as_str()) {
                self.mentioned(top, &value);
            }
        }
    }

    /// Adds the files of the working directory that a value mentions: it may be a command (`!sh tools/x.sh`).
    fn mentioned(&mut self, top: &Path, value: &str) {
        for word in value.split(|c: char| c.is_whitespace() || "'\"`;|&()<>=!".contains(c)) {
            if word.is_empty() {
                continue;
            }
            let Some(left) = self.words.checked_sub(1) else {
                let dir = self.workdir.display();
                return self.everything(format!(
                    "the git configuration of {dir} has more than {MAX_WORDS} words"
                ));
            };
            self.words = left;
            let path = self.resolved(top, word);
            if fs::metadata(&path).is_ok_and(|found| found.is_file()) {
                self.add(&path);
            }
        }
    }

    /// A path from the configuration, with `~/` resolved.
    fn resolved(&self, base: &Path, value: &str) -> PathBuf {
        match (value.strip_prefix("~/"), self.others.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(value),
        }
    }

    /// Adds a path as written, and its target after links, if they are in the working directory.
    fn add(&mut self, path: &Path) {
        for path in [tidied(path), real_path(path)].into_iter().flatten() {
            let Ok(inside) = path.strip_prefix(self.workdir) else {
                continue;
            };
            if inside.as_os_str().is_empty() {
                let dir = path.display();
                self.everything(format!("the git configuration names {dir} itself"));
            } else {
                self.found.paths.insert(inside.to_owned());
            }
        }
    }

    /// Only the first reason is reported.
    fn everything(&mut self, why: String) {
        self.found.everything.get_or_insert(why);
    }

    /// The text of a regular file; `None` if it does not exist. An unreadable file outside the working directory counts
    /// as missing, too: no agent made it unreadable.
    fn read(&mut self, path: &Path) -> Option<String> {
        let text = match self.files.checked_sub(1) {
            Some(left) => {
                self.files = left;
                read_regular(path)
            }
            None => Err(()),
        };
        match text {
            Ok(text) => text,
            Err(()) => {
                if tidied(path).is_some_and(|path| path.starts_with(self.workdir)) {
                    self.everything(format!(
                        "cannot read the git configuration {}, so any file may be a hook",
                        path.display()
                    ));
                }
                None
            }
        }
    }
}

fn read_regular(path: &Path) -> Result<Option<String>, ()> {
    // Neither waits for the writer of a pipe, nor acquires a controlling terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(_) => return Err(()),
    };
    let stat = fstat(&file).map_err(|_| ())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(());
    }
    let mut bytes = Vec::new();
    let limited = File::from(file).take(MAX_BYTES + 1).read_to_end(&mut bytes);
    let length = limited.map_err(|_| ())?;
    if u64::try_from(length).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The real path; the kernel reports it for an open file.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// A path without `.` and `..`, resolved by its text alone.
fn tidied(path: &Path) -> Option<PathBuf> {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !tidy.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            other => tidy.push(other),
        }
    }
    Some(tidy)
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
