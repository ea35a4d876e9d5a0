//! Rules about documentation files.

use super::tree::Tree;
use anyhow::{Context as _, Result};
use regex::Regex;
use std::collections::BTreeSet;

pub(crate) fn config_keys(tree: &Tree) -> Result<Vec<String>> {
    let path = "config/agentd.toml";
    let text = tree.text(path)?;
    text.parse::<toml::Table>()
        .with_context(|| format!("{path} is not TOML"))?;
    Ok(undocumented(&text)
        .into_iter()
        .map(|key| format!("{path}: `{key}` has no comment"))
        .collect())
}

/// The description of the HTTP API.
pub(crate) const OPENAPI: &str = "docs/openapi.json";

pub(crate) fn openapi(tree: &Tree) -> Result<Vec<String>> {
    let committed = tree.text(OPENAPI).unwrap_or_default();
    let same = committed == agentd_http::openapi();
    let finding =
        || format!("{OPENAPI} differs from the code: run `cargo xtask openapi` and commit the file");
    Ok((!same).then(finding).into_iter().collect())
}

/// Keys without a comment on their line or above it that no comment explains by name either (keys of a table that
/// occurs several times are explained once).
pub(crate) fn undocumented(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut commented = false;
    let comments: String = text
        .lines()
        .filter_map(|line| line.split_once('#'))
        .map(|(_, comment)| comment)
        .collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let explained: BTreeSet<&str> = comments.split(|c| !is_word(c)).collect();
    for line in text.lines().map(str::trim) {
        let key = line.split_once('=').map(|(key, _)| key.trim());
        match key {
            _ if line.starts_with('#') => commented = true,
            _ if line.is_empty() => commented = false,
            Some(key) if key.chars().all(|c| c.is_alphanumeric() || "_.-\"".contains(c)) => {
                if !commented && !line.contains('#') && !explained.contains(key) {
                    findings.push(key.to_owned());
                }
                commented = false;
            }
            _ => {}
        }
    }
    findings
}

pub(crate) fn architecture_paths(tree: &Tree) -> Result<Vec<String>> {
    let quoted = Regex::new(r"`([A-Za-z0-9_.\-]+/[A-Za-z0-9_./\-]*)`")?;
    let mut findings = Vec::new();
    for document in ["ARCHITECTURE.md", "README.md"] {
        let text = tree.text(document)?;
        let paths: BTreeSet<&str> = quoted
            .captures_iter(&text)
            .filter_map(|c| c.get(1))
            .map(|m| m.as_str())
            .collect();
        let ours = |path: &&&str| {
            ["crates/", "bins/", "config/", "tests/", ".ci/"]
                .iter()
                .any(|top| path.starts_with(top))
        };
        for path in paths.iter().filter(ours) {
            if !tree.root.join(path).exists() {
                findings.push(format!("{document}: `{path}` does not exist"));
            }
        }
    }
    Ok(findings)
}
