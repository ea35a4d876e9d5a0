//! Instruction files: `AGENTS.md` of the working directory and of its parents up to the root of the repository.

use agentd_sandbox::{Beneath, SandboxError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The longest instructions, all files together; what is longer is cut.
pub const MAX_INSTRUCTION_BYTES: usize = 32 << 10;
/// The name of instruction files.
const NAME: &str = "AGENTS.md";
/// How far up the root of the repository is looked for.
const MAX_DEPTH: usize = 64;

/// One instruction file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Its path.
    pub path: PathBuf,
    /// What it says, or why it was left out.
    pub text: Result<String, String>,
}

/// Finds and reads the instruction files, from the root of the repository down to `workdir`. Outside a repository only
/// `workdir` itself counts. Blocks: it reads files.
#[must_use]
pub fn instruction_files(workdir: &Path) -> Vec<InstructionFile> {
    let root = repository_root(workdir);
    let Ok(beneath) = Beneath::open(root) else {
        return Vec::new();
    };
    let inner = workdir.strip_prefix(root).unwrap_or(Path::new(""));
    let mut left = MAX_INSTRUCTION_BYTES;
    // The nearest file knows best, so it gets its room first; it is told last.
    let mut files: Vec<InstructionFile> = inner
        .ancestors()
        .filter_map(|directory| {
            let path = directory.join(NAME);
            let text = read(&beneath, &path, &mut left).transpose()?;
            Some(InstructionFile {
                path: root.join(path),
                text,
            })
        })
        .collect();
    files.reverse();
    files
}

/// The nearest directory with a `.git`, or `workdir` when there is none.
fn repository_root(workdir: &Path) -> &Path {
    let mut ancestors = workdir.ancestors().take(MAX_DEPTH);
    ancestors
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        .unwrap_or(workdir)
}

fn read(beneath: &Beneath, path: &Path, left: &mut usize) -> Result<Option<String>, String> {
    let opened = match beneath.open_file(path) {
        Ok(opened) => opened,
        Err(SandboxError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    let limit = *left as u64;
    opened
        .file
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let cut = opened.bytes > bytes.len() as u64;
    if cut && bytes.is_empty() {
        return Err("there was no room left for it".to_owned());
    }
    *left = left.saturating_sub(bytes.len());
    let mut text = String::from_utf8_lossy(&bytes).trim().to_owned();
    if cut {
        text = text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned();
        text.push_str("\n\n[cut here: the instructions are longer than 32 KiB]");
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn texts(workdir: &Path) -> Vec<Result<String, String>> {
        instruction_files(workdir)
            .into_iter()
            .map(|file| file.text)
            .collect()
    }

    #[test]
    fn files_are_read_from_the_repositorys_root_down() {
        let dir = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", "root\n"),
            ("a/x", ""),
            ("a/b/AGENTS.md", "leaf"),
        ]);
        assert_eq!(
            texts(&dir.path().join("a/b")),
            [Ok("root".to_owned()), Ok("leaf".to_owned())]
        );
        assert_eq!(texts(dir.path()), [Ok("root".to_owned())]);
    }

    #[test]
    fn outside_a_repository_only_the_working_directory_counts() {
        let dir = project(&[("AGENTS.md", "outer"), ("a/AGENTS.md", "inner")]);
        assert_eq!(texts(&dir.path().join("a")), [Ok("inner".to_owned())]);
    }

    #[test]
    fn i8_a_link_that_leaves_the_tree_is_not_followed() {
        let secret = project(&[("key", "sk-secret")]);
        let dir = project(&[(".git/HEAD", ""), ("docs/rules.md", "inside"), ("a/x", "")]);
        symlink(secret.path().join("key"), dir.path().join("AGENTS.md")).unwrap();
        symlink("../docs/rules.md", dir.path().join("a/AGENTS.md")).unwrap();
        let found = texts(&dir.path().join("a"));
        assert!(
            matches!(found.as_slice(), [Err(_), Ok(inside)] if inside == "inside"),
            "{found:?}"
        );
    }

    #[test]
    fn long_instructions_are_cut_and_the_nearest_file_gets_its_room_first() {
        let dir = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", "root"),
            ("a/AGENTS.md", &"你".repeat(20_000)),
        ]);
        let found = texts(&dir.path().join("a"));
        let [Err(no_room), Ok(leaf)] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(no_room, "there was no room left for it");
        assert!(
            leaf.starts_with("你你") && leaf.ends_with("longer than 32 KiB]"),
            "{leaf}"
        );
        assert!(leaf.len() < MAX_INSTRUCTION_BYTES + 100);
    }
}
