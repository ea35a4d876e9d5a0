//! What of a repository decides what git runs: a person's next `git` there must not run what an agent wrote.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The largest configuration that is looked through.
const MAX_CONFIG: u64 = 1 << 20;
/// The most submodules and worktrees that are looked at.
const MAX_PARTS: usize = 256;

/// Of a git directory: what runs, or names what runs.
const DECIDES: [&str; 4] = ["hooks", "config", "config.worktree", "info/attributes"];
/// Of a worktree's own directory: what names the directory above.
const LEADS: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// What is to stay as it is, below `workdir/.git` and where its configuration points to. Only what is there: what is not
/// there cannot be put under a mount without making it.
pub(crate) fn kept(workdir: &Path) -> Vec<PathBuf> {
    let git = workdir.join(".git");
    let mut paths: Vec<PathBuf> = DECIDES.iter().map(|name| git.join(name)).collect();
    for module in parts(&git.join("modules")) {
        paths.extend(DECIDES.iter().map(|name| module.join(name)));
    }
    for worktree in parts(&git.join("worktrees")) {
        paths.extend(LEADS.iter().map(|name| worktree.join(name)));
    }
    let config = git.join("config");
    if fs::metadata(&config).is_ok_and(|found| found.len() <= MAX_CONFIG) {
        let text = fs::read_to_string(&config).unwrap_or_default();
        paths.extend(named(&text, workdir));
    }
    paths.retain(|path| path.starts_with(workdir) && path != workdir && is_plain(workdir, path));
    paths
}

/// The directories in a directory.
fn parts(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_PARTS);
    entries.map(|entry| entry.path()).collect()
}

/// A file or a directory to which no link leads: a mount on it is a mount on it and on nothing else.
fn is_plain(workdir: &Path, path: &Path) -> bool {
    let mut at = path;
    while at != workdir {
        match fs::symlink_metadata(at) {
            Ok(found) if found.is_dir() || (at == path && found.is_file()) => {}
            Ok(_) | Err(_) => return false,
        }
        let Some(parent) = at.parent() else { return false };
        at = parent;
    }
    true
}

/// Files and directories that a configuration names: what it includes, and where its hooks are.
fn named(config: &str, workdir: &Path) -> Vec<PathBuf> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in config.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            let end = rest.find([']', ' ', '"']).unwrap_or(rest.len());
            section = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let value = Path::new(value.trim().trim_matches('"'));
        let base = match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("include" | "includeif", "path") => workdir.join(".git"),
            ("core", "hookspath" | "attributesfile") => workdir.to_owned(),
            _ => continue,
        };
        found.extend(tidied(&base.join(value)));
    }
    found
}

/// A path without `.` and `..`, as far as the text tells.
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

/// Keeps a repository from being led to another configuration by a `commondir` of its own: no repository has one at its
/// top, and git follows it. It cannot be put under a mount, as its being there is what does it; so one that appears is
/// taken away.
pub(crate) struct Guard(Option<OwnedFd>);

impl Guard {
    /// Looks after the repository in this directory; after none where there is none, or where it has one already.
    pub(crate) fn over(workdir: &Path) -> Self {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::PATH | OFlags::CLOEXEC;
        let git = open(workdir, flags, Mode::empty())
            .and_then(|dir| openat(&dir, ".git", flags, Mode::empty()))
            .ok();
        Self(git.filter(|git| !has_common_dir(git)))
    }

    /// After none.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Takes away what appeared since.
    pub(crate) fn look(&self) {
        if let Some(git) = &self.0
            && has_common_dir(git)
        {
            // A directory in its place leads nowhere; git fails there, which somebody sees.
            let _ = unlinkat(git, COMMON_DIR, AtFlags::empty());
        }
    }
}

const COMMON_DIR: &str = "commondir";

fn has_common_dir(git: &OwnedFd) -> bool {
    rustix::fs::statat(git, COMMON_DIR, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_kept_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let w = dir.path();
        for made in [
            ".git/hooks",
            ".git/info",
            ".git/modules/m/hooks",
            ".git/worktrees/t",
            ".husky",
            "conf",
        ] {
            fs::create_dir_all(w.join(made)).unwrap();
        }
        let config = "[core]\n\thooksPath = .husky\n[include]\n\tpath = ../conf/shared\n[includeIf \"onbranch:x\"]\n\tpath = \"../gone\"\n\
                      [Include]\npath = ../../outside\n";
        for (file, text) in [
            (".git/config", config),
            (".git/modules/m/config", ""),
            (".git/worktrees/t/commondir", "../.."),
            ("conf/shared", ""),
        ] {
            fs::write(w.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", w.join(".git/info/attributes")).unwrap();
        let mut found = kept(w);
        found.sort();
        let expected = [
            ".git/config",
            ".git/hooks",
            ".git/modules/m/config",
            ".git/modules/m/hooks",
            ".git/worktrees/t/commondir",
            ".husky",
            "conf/shared",
        ];
        assert_eq!(found, expected.map(|path| w.join(path)));
    }

    #[test]
    fn a_common_directory_that_appears_is_taken_away_and_one_that_was_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir(&git).unwrap();
        let (file, guard) = (git.join(COMMON_DIR), Guard::over(dir.path()));
        guard.look();
        fs::write(&file, "/evil").unwrap();
        Guard::over(dir.path()).look();
        assert!(file.exists());
        guard.look();
        assert!(!file.exists());
    }
}
