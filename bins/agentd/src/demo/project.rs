//! The project that an agent of the demo repairs.

use agentd_provider::demo as script;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// One project in a directory of its own.
#[derive(Debug)]
pub(super) struct Project {
    number: u32,
    dir: PathBuf,
    before: Vec<(String, String)>,
}

impl Project {
    /// Writes the project's files into a directory below `work`.
    pub(super) fn create(work: &Path, number: u32) -> Result<Self> {
        let dir = work.join(format!("project-{number}"));
        let before = script::project_files(number);
        for (path, content) in &before {
            let path = dir.join(path);
            let parent = path.parent().context("the file has no parent directory")?;
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Self { number, dir, before })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn name(&self) -> String {
        format!("demo {}", self.number)
    }

    pub(super) fn prompt(&self) -> String {
        script::prompt(self.number)
    }

    /// The agent's changes, as a unified diff.
    pub(super) fn diff(&self) -> Result<String> {
        let mut all = String::new();
        for (path, before) in &self.before {
            let after =
                fs::read_to_string(self.dir.join(path)).with_context(|| format!("cannot read {path}"))?;
            if after != *before {
                let diff = similar::TextDiff::from_lines(before, &after);
                all.push_str(
                    &diff
                        .unified_diff()
                        .header(&format!("a/{path}"), &format!("b/{path}"))
                        .to_string(),
                );
            }
        }
        Ok(all)
    }
}
