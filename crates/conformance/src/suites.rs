//! Finds the suites in a directory, and runs those that are supported.

use crate::error::ConformanceError;
use crate::report::{Report, Verdict};
use crate::{apply_patch, model_streams};
use std::path::Path;

/// Runs the suites found under a directory, or only the named ones.
///
/// # Errors
/// A directory or a file cannot be read, or a named suite does not exist.
pub fn run(dir: &Path, named: &[String]) -> Result<Vec<Report>, ConformanceError> {
    let found = directories(dir)?;
    if let Some(name) = named.iter().find(|name| !found.contains(name)) {
        return Err(ConformanceError::NoSuite {
            name: name.clone(),
            dir: dir.to_owned(),
        });
    }
    found
        .into_iter()
        .filter(|name| named.is_empty() || named.contains(name))
        .map(|name| suite(dir, &name))
        .collect()
}

fn suite(dir: &Path, name: &str) -> Result<Report, ConformanceError> {
    if name == model_streams::NAME {
        return model_streams::run(&dir.join(name));
    }
    if name == apply_patch::NAME {
        return apply_patch::run(&dir.join(name));
    }
    let mut report = Report::of(name);
    for _ in 0..entries(&dir.join(name))? {
        report.add(
            name,
            Verdict::Skipped("no suite of this name is known".to_owned()),
        );
    }
    Ok(report)
}

/// The number of scenarios, which are directories; a suite without any counts as one.
fn entries(dir: &Path) -> Result<usize, ConformanceError> {
    Ok(directories(dir)?.len().max(1))
}

/// The names of the subdirectories, sorted.
pub(crate) fn directories(dir: &Path) -> Result<Vec<String>, ConformanceError> {
    let failed = |source| ConformanceError::Read {
        path: dir.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}
