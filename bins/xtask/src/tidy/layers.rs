//! Rules about crates and their dependencies, from `cargo metadata`.

use super::tree::Tree;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// A workspace member as far as the rules need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The package's name.
    pub(crate) name: String,
    /// The directory of its manifest.
    pub(crate) folder: String,
    /// Its layer.
    pub(crate) layer: Option<u64>,
    /// Its description.
    pub(crate) description: String,
    /// Its dependencies by name, with their kind (`dev` for tests).
    pub(crate) dependencies: Vec<(String, bool)>,
}

pub(crate) fn strictly_downwards(tree: &Tree) -> Result<Vec<String>> {
    Ok(upward(&members(tree)?))
}

/// Dependencies that do not point to a strictly lower layer.
pub(crate) fn upward(members: &[Member]) -> Vec<String> {
    let layers: BTreeMap<&str, Option<u64>> = members.iter().map(|m| (m.name.as_str(), m.layer)).collect();
    let mut findings = Vec::new();
    for member in members {
        let Some(layer) = member.layer else {
            findings.push(format!(
                "{}: the manifest has no `layer` in [package.metadata.agentd]",
                member.name
            ));
            continue;
        };
        for (dependency, dev) in &member.dependencies {
            if let Some(Some(lower)) = layers.get(dependency.as_str())
                && *lower >= layer
                && !(*dev && *lower == layer)
            {
                findings.push(format!(
                    "{} (layer {layer}) depends on {dependency} (layer {lower})",
                    member.name
                ));
            }
        }
    }
    findings
}

pub(crate) fn named_and_described(tree: &Tree) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for member in members(tree)? {
        let folder = member.folder.rsplit('/').next().unwrap_or_default();
        if member.name != folder && member.name != format!("agentd-{folder}") {
            findings.push(format!(
                "{}: the package in {} should be called agentd-{folder}",
                member.name, member.folder
            ));
        }
        if member.description.trim().is_empty() {
            findings.push(format!("{}: the manifest has no description", member.name));
        }
    }
    Ok(findings)
}

fn members(tree: &Tree) -> Result<Vec<Member>> {
    let metadata = metadata(tree, &["--no-deps"])?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("cargo metadata has no packages")?;
    Ok(packages.iter().map(member).collect())
}

/// The output of `cargo metadata` for the workspace.
#[expect(clippy::disallowed_methods, reason = "asks cargo for the dependency graph")]
pub(crate) fn metadata(tree: &Tree, more: &[&str]) -> Result<Value> {
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version=1", "--locked"])
        .args(more)
        .current_dir(&tree.root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

fn member(package: &Value) -> Member {
    let text = |key: &str| {
        package
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let dependencies = package
        .get("dependencies")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    Member {
        name: text("name"),
        folder: text("manifest_path").trim_end_matches("/Cargo.toml").to_owned(),
        layer: package.pointer("/metadata/agentd/layer").and_then(Value::as_u64),
        description: text("description"),
        dependencies: dependencies
            .iter()
            .filter_map(|d| {
                let dev = d.get("kind").and_then(Value::as_str) == Some("dev");
                d.get("name")
                    .and_then(Value::as_str)
                    .map(|name| (name.to_owned(), dev))
            })
            .collect(),
    }
}
