//! Writes git directories file by file. `git init` and `git clone` would run templates and read configurations.

use crate::error::{WorkspaceError, at};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A git directory to write.
#[derive(Debug)]
pub(crate) struct Skeleton<'a> {
    /// The branch of `HEAD`, without `refs/heads/`.
    pub(crate) branch: &'a str,
    /// The commit of that branch.
    pub(crate) base: &'a str,
    /// The objects that it borrows.
    pub(crate) objects: &'a Path,
    /// Whether objects have SHA-256 names.
    pub(crate) sha256: bool,
    /// Where `origin` is, for people to see.
    pub(crate) origin: Option<&'a str>,
    /// References to show as those of `origin`, and tags: `(name, object)`.
    pub(crate) references: &'a [(String, String)],
    /// The commits at which a shallow history ends.
    pub(crate) shallow: Option<&'a [u8]>,
    /// Patterns of ignored files that are the person's own.
    pub(crate) exclude: Option<&'a [u8]>,
}

/// Whether a path can be a line of a file in git's own formats.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| !text.chars().any(|c| c.is_control() || c == '"' || c == '\\'))
}

impl Skeleton<'_> {
    /// Writes it to a directory that does not exist yet.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), WorkspaceError> {
        self.try_write(dir).map_err(at(dir))
    }

    fn try_write(&self, dir: &Path) -> io::Result<()> {
        for made in ["objects/info", "objects/pack", "refs/tags", "info", "hooks"] {
            fs::create_dir_all(dir.join(made))?;
        }
        let branch: PathBuf = dir.join("refs/heads").join(self.branch);
        if let Some(parent) = branch.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(branch, format!("{}\n", self.base))?;
        fs::write(dir.join("HEAD"), format!("ref: refs/heads/{}\n", self.branch))?;
        fs::write(dir.join("config"), self.config())?;
        if !is_plain(self.objects) {
            return Err(io::Error::other(
                "a path with control characters cannot be borrowed from",
            ));
        }
        fs::write(
            dir.join("objects/info/alternates"),
            format!("{}\n", self.objects.display()),
        )?;
        if let Some(shallow) = self.shallow {
            fs::write(dir.join("shallow"), shallow)?;
        }
        if let Some(exclude) = self.exclude {
            fs::write(dir.join("info/exclude"), exclude)?;
        }
        if !self.references.is_empty() {
            fs::write(dir.join("packed-refs"), self.packed_refs())?;
        }
        Ok(())
    }

    fn config(&self) -> String {
        let version = u8::from(self.sha256);
        let mut text = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
        );
        if self.sha256 {
            text.push_str("[extensions]\n\tobjectformat = sha256\n");
        }
        if let Some(origin) = self.origin.filter(|origin| is_plain(Path::new(origin))) {
            let _ = write!(
                text,
                "[remote \"origin\"]\n\turl = \"{origin}\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
            );
        }
        text
    }

    fn packed_refs(&self) -> String {
        let mut lines: Vec<(String, &str)> = self
            .references
            .iter()
            .filter_map(|(name, object)| {
                let shown = match name.strip_prefix("refs/heads/") {
                    // The branches of other sessions are nobody's business.
                    Some(branch) if branch.starts_with("agentd/") => return None,
                    Some(branch) => format!("refs/remotes/origin/{branch}"),
                    None => name.clone(),
                };
                Some((shown, object.as_str()))
            })
            .collect();
        lines.sort();
        let mut text = "# pack-refs with: sorted\n".to_owned();
        for (name, object) in lines {
            let _ = writeln!(text, "{object} {name}");
        }
        text
    }
}
