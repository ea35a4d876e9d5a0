//! The files of the workspace, loaded once.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path relative to the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl Source {
    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("tests.rs")
    }

    /// The text without a trailing `#[cfg(test)] mod … {`.
    pub(crate) fn without_tests(&self) -> &str {
        self.text
            .find("\n#[cfg(test)]\nmod ")
            .map_or(self.text.as_str(), |at| self.text.get(..at).unwrap_or_default())
    }

    /// Only the test code of the file.
    pub(crate) fn only_tests(&self) -> &str {
        if self.is_test() {
            return &self.text;
        }
        self.text
            .find("\n#[cfg(test)]\nmod ")
            .map_or("", |at| self.text.get(at..).unwrap_or_default())
    }
}

/// The workspace.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Its root.
    pub(crate) root: PathBuf,
    /// Its Rust files.
    pub(crate) sources: Vec<Source>,
}

impl Tree {
    /// Loads the tree.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self {
            root: root.to_path_buf(),
            sources: Vec::new(),
        };
        for folder in ["crates", "bins", "tests"] {
            tree.walk(&root.join(folder))?;
        }
        tree.sources.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn walk(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    self.walk(&path)?;
                }
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let path = path
                    .strip_prefix(&self.root)?
                    .to_string_lossy()
                    .replace('\\', "/");
                self.sources.push(Source { path, text });
            }
        }
        Ok(())
    }

    /// The content of a file below the root.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }
}
