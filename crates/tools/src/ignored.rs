//! The files that a walk skips because of ignore files, as in ripgrep: `.ignore`, `.gitignore`, `.git/info/exclude`, deeper
//! ones first. The files are untrusted, so they are opened beneath the working directory and their size is bounded.

use agentd_policy::check_glob;
use agentd_sandbox::Beneath;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Total bytes of the ignore files in force at one time, from the base of a walk to the current directory.
const ROOM: usize = 256 * 1024;
/// The longest line that counts.
const LONGEST: usize = 1_024;

/// The ignore files from the base of a walk to the current directory.
pub(crate) struct Ignored<'a> {
    workdir: &'a Beneath,
    levels: Vec<Level>,
    room: usize,
}

/// The ignore files of one directory.
struct Level {
    plain: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    taken: usize,
}

impl<'a> Ignored<'a> {
    pub(crate) const fn new(workdir: &'a Beneath) -> Self {
        Self {
            workdir,
            levels: Vec::new(),
            room: ROOM,
        }
    }

    /// Reads the ignore files of a directory below the last one.
    pub(crate) fn enter(&mut self, directory: &Path) {
        let before = self.room;
        let plain = self.read(directory, ".ignore");
        let git = self.read(directory, ".gitignore");
        let exclude = self.read(directory, ".git/info/exclude");
        let level = Level {
            plain,
            git,
            exclude,
            taken: before.saturating_sub(self.room),
        };
        self.levels.push(level);
    }

    pub(crate) fn leave(&mut self) {
        let taken = self.levels.pop().map_or(0, |level| level.taken);
        self.room = self.room.saturating_add(taken);
    }

    /// Whether a path is ignored (or explicitly not ignored); `None` if no line matches it.
    pub(crate) fn says(&self, path: &Path, directory: bool) -> Option<bool> {
        let path = self.workdir.path().join(path);
        let said = |list: &Option<Gitignore>| {
            let found = list.as_ref()?.matched(&path, directory);
            (!found.is_none()).then(|| found.is_ignore())
        };
        let deepest = |list: fn(&Level) -> &Option<Gitignore>| {
            let mut levels = self.levels.iter().rev();
            levels.find_map(|level| said(list(level)))
        };
        deepest(|level| &level.plain)
            .or_else(|| deepest(|level| &level.git))
            .or_else(|| deepest(|level| &level.exclude))
    }

    /// Reads one ignore file: only a regular one, and only as much of it as there is room for.
    fn read(&mut self, directory: &Path, name: &str) -> Option<Gitignore> {
        let root: PathBuf = self.workdir.path().join(directory);
        let opened = self.workdir.open_file(&directory.join(name)).ok()?;
        let mut text = Vec::new();
        let most = u64::try_from(self.room).ok()?;
        opened.file.take(most).read_to_end(&mut text).ok()?;
        self.room = self.room.saturating_sub(text.len());
        let text = String::from_utf8_lossy(&text);
        let mut list = GitignoreBuilder::new(root);
        for line in text.trim_start_matches('\u{feff}').lines() {
            if line.len() <= LONGEST && check_glob(line).is_ok() {
                // A line that is not a valid pattern ignores nothing, as in git.
                let _ = list.add_line(None, line);
            }
        }
        list.build().ok().filter(|list| !list.is_empty())
    }
}
