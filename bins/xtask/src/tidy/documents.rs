//! Rules about documentation files.

use super::tree::Tree;
use anyhow::{Context as _, Result};
use regex::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};

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

/// The migrations of the PostgreSQL store.
const SCHEMA: &str = "crates/store-postgres/src/schema";

pub(crate) fn sql_functions(tree: &Tree) -> Result<Vec<String>> {
    let mut schema = Vec::new();
    for entry in std::fs::read_dir(tree.root.join(SCHEMA)).context(SCHEMA)? {
        schema.push(std::fs::read_to_string(entry?.path())?);
    }
    let mut findings = Vec::new();
    let mut folders = vec![tree.root.join("docs")];
    let mut documents = vec![tree.root.join("ARCHITECTURE.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    for path in documents {
        let text = std::fs::read_to_string(&path)?;
        let name = path.strip_prefix(&tree.root)?.display().to_string();
        findings.extend(
            replaced(&text, &schema)?
                .into_iter()
                .map(|what| format!("{name}: {what}")),
        );
    }
    Ok(findings)
}

/// The SQL functions in a document that the schema has in a later version.
pub(crate) fn replaced(document: &str, schema: &[String]) -> Result<Vec<String>> {
    let numbered = r"([a-z_]+)_(\d+)";
    let made = Regex::new(&format!(r"CREATE (?:OR REPLACE )?FUNCTION {numbered}\("))?;
    let named = Regex::new(&format!("`{numbered}`"))?;
    let version = |found: &Captures<'_>| -> Option<(String, u32)> {
        Some((
            found.get(1)?.as_str().to_owned(),
            found.get(2)?.as_str().parse().ok()?,
        ))
    };
    let mut newest = BTreeMap::new();
    for (base, number) in schema
        .iter()
        .flat_map(|sql| made.captures_iter(sql))
        .filter_map(|found| version(&found))
    {
        let known: &mut u32 = newest.entry(base).or_default();
        *known = number.max(*known);
    }
    let named = named.captures_iter(document).filter_map(|found| version(&found));
    Ok(named
        .filter_map(|(base, number)| {
            let newest = newest.get(&base).filter(|newest| **newest > number)?;
            Some(format!("`{base}_{newest}` has replaced `{base}_{number}`"))
        })
        .collect())
}
