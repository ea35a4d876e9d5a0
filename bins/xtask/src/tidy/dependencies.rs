//! Rules about dependencies, based on `deny.toml`.

use super::layers::metadata;
use super::tree::Tree;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

pub(crate) fn licences_and_bans(tree: &Tree) -> Result<Vec<String>> {
    let deny: Table = tree.text("deny.toml")?.parse().context("deny.toml is not TOML")?;
    let words = |section: &str, key: &str| -> BTreeSet<String> {
        let list = deny
            .get(section)
            .and_then(|s| s.get(key))
            .and_then(toml::Value::as_array);
        let word = |value: &toml::Value| {
            value
                .as_str()
                .or_else(|| value.get("crate").and_then(toml::Value::as_str))
                .map(str::to_owned)
        };
        list.into_iter().flatten().filter_map(word).collect()
    };
    let (allowed, banned) = (words("licenses", "allow"), words("bans", "deny"));
    let metadata = metadata(tree, &[])?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("cargo metadata has no packages")?;
    let used = used(&metadata);
    let mut findings = Vec::new();
    for package in packages {
        let text = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        if !used.contains(text("id")) {
            continue;
        }
        if banned.contains(text("name")) {
            findings.push(format!("{} is banned in deny.toml", text("name")));
        }
        if !acceptable(text("license"), &allowed) {
            findings.push(format!(
                "{}: the licence {:?} is not allowed in deny.toml",
                text("name"),
                text("license")
            ));
        }
        if package
            .get("source")
            .and_then(Value::as_str)
            .is_some_and(|source| !source.starts_with("registry+"))
        {
            findings.push(format!("{} does not come from the registry", text("name")));
        }
    }
    Ok(findings)
}

/// The packages that some build really uses: those in the resolved graph.
fn used(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata.pointer("/resolve/nodes").and_then(Value::as_array);
    nodes
        .into_iter()
        .flatten()
        .filter_map(|node| node.get("id").and_then(Value::as_str))
        .collect()
}

/// Whether the allowed licences satisfy an SPDX expression with at least one choice of its alternatives.
pub(crate) fn acceptable(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    let all = |part: &str| {
        part.split(" AND ").all(|licence| {
            let licence = licence.trim().trim_matches(|c| c == '(' || c == ')').trim();
            licence
                .split(" OR ")
                .any(|one| allowed.contains(one.trim().trim_matches(|c| c == '(' || c == ')')))
        })
    };
    // `(A OR B) AND C` needs both; `A OR B AND C` binds AND tighter.
    if expression.contains('(') {
        all(&expression)
    } else {
        expression.split(" OR ").any(all)
    }
}

/// The program that people also install where no daemon runs.
const SMALL: &str = "agentctl";
/// The packages that it must not link. The program `agentd` answers what only these know.
const HEAVY: [&str; 6] = [
    "agentd-prompt",
    "agentd-repo-map",
    "agentd-sandbox",
    "agentd-tools",
    "agentd-web",
    "jsonschema",
];

pub(crate) fn small_program(tree: &Tree) -> Result<Vec<String>> {
    Ok(heavy(&metadata(tree, &[])?))
}

/// The heavy packages that the small program links, each with the package that first needs it.
pub(crate) fn heavy(metadata: &Value) -> Vec<String> {
    let list = |at: &str| metadata.pointer(at).and_then(Value::as_array);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let packages = list("/packages").into_iter().flatten();
    let names: BTreeMap<String, String> = packages
        .filter_map(|package| Some((text(package, "id")?, text(package, "name")?)))
        .collect();
    let nodes = list("/resolve/nodes").into_iter().flatten();
    let needs: BTreeMap<String, Vec<String>> = nodes
        .filter_map(|node| Some((text(node, "id")?, linked(node))))
        .collect();
    let Some((root, _)) = names.iter().find(|(_, name)| name.as_str() == SMALL) else {
        return vec![format!("there is no package {SMALL}")];
    };
    let mut todo = vec![root];
    let (mut seen, mut findings) = (BTreeSet::new(), BTreeSet::new());
    while let Some(id) = todo.pop() {
        for need in needs.get(id).into_iter().flatten() {
            let name = names.get(need).map_or("", String::as_str);
            if HEAVY.contains(&name) {
                let by = names.get(id).map_or("", String::as_str);
                findings.insert(format!("{SMALL} links {name}, which {by} needs"));
            } else if seen.insert(need) {
                todo.push(need);
            }
        }
    }
    findings.into_iter().collect()
}

/// The packages that a package links; those that only its tests or its build need are not among them.
fn linked(node: &Value) -> Vec<String> {
    let dependencies = node.get("deps").and_then(Value::as_array);
    let links = |dependency: &&Value| {
        let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
        kinds
            .into_iter()
            .flatten()
            .any(|kind| kind.get("kind").is_some_and(Value::is_null))
    };
    let ids = dependencies.into_iter().flatten().filter(links);
    ids.filter_map(|dependency| dependency.get("pkg")?.as_str().map(str::to_owned))
        .collect()
}
