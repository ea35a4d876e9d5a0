//! What a workspace needs beyond its own tree: the objects that it borrows, and for a git worktree the places in its
//! repository where git must write. agentd notes it next to the tree when it makes the workspace, out of the reach of
//! commands.

use crate::error::SandboxError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the note, next to the tree.
const NOTE: &str = "walls.json";
/// The largest note to read.
const MAX_BYTES: u64 = 65_536;

/// Places outside of the working directory that commands in it may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Annex {
    /// They may be read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// These directories may also be written, where the repository's rules allow it.
    #[serde(default)]
    pub write: Vec<PathBuf>,
    /// The git directory that the latter belong to. The same names are protected in it as in a `.git`.
    #[serde(default)]
    pub repository: Option<PathBuf>,
}

impl Annex {
    /// Notes it for a workspace whose tree is in this directory.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        fs::write(dir.join(NOTE), serde_json::to_vec(self)?)
    }

    /// Reads the note about a working directory, if it is the tree of a workspace: a directory two levels below
    /// `workspaces`. Without a note, commands have nothing but the tree.
    ///
    /// # Errors
    /// There is a note, and it cannot be read (I7).
    pub(crate) fn of(workdir: &Path, workspaces: &Path) -> Result<Self, SandboxError> {
        let Some(dir) = workdir.parent().filter(|dir| dir.parent() == Some(workspaces)) else {
            return Ok(Self::default());
        };
        let note = dir.join(NOTE);
        let unusable = |why: String| SandboxError::no_walls(format!("{}: {why}", note.display()));
        match fs::metadata(&note) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(error.to_string())),
            Ok(found) if found.len() > MAX_BYTES => return Err(unusable("it is too large".to_owned())),
            Ok(_) => {}
        }
        let text = fs::read(&note).map_err(|error| unusable(error.to_string()))?;
        let annex: Self = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        annex.make_places();
        Ok(annex)
    }

    /// Git removes directories of references when they are empty; a wall needs a directory to open.
    fn make_places(&self) {
        let references = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "refs");
        if self
            .repository
            .as_ref()
            .is_some_and(|repository| repository.join("HEAD").is_file())
        {
            for path in self.write.iter().filter(references) {
                let _ = fs::create_dir_all(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_only_the_note_beside_the_tree_of_a_workspace_counts() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("id/app");
        fs::create_dir_all(tree.join("inner")).unwrap();
        let annex = Annex {
            read: vec!["/srv/app/.git/objects".into()],
            ..Annex::default()
        };
        annex.write(&dir.path().join("id")).unwrap();
        annex.write(&tree).unwrap();
        assert_eq!(Annex::of(&tree, dir.path()).unwrap(), annex);
        // What a command could write says nothing.
        assert_eq!(
            Annex::of(&tree.join("inner"), dir.path()).unwrap(),
            Annex::default()
        );
        assert_eq!(
            Annex::of(&tree, Path::new("/elsewhere")).unwrap(),
            Annex::default()
        );
        fs::write(dir.path().join("id").join(NOTE), "{").unwrap();
        assert!(Annex::of(&tree, dir.path()).is_err());
    }
}
