//! Which packages a change concerns: pure functions of the changed paths and of the dependency graph.

use anyhow::Result;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Files outside of packages on which everything depends. Format, lints and house rules have files of their own, and are
/// checked in any case.
const EVERYTHING: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/"];

/// A package of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its folder, relative to the root.
    pub(crate) folder: String,
    /// The packages of the workspace that it is built with.
    pub(crate) dependencies: BTreeSet<String>,
    /// Those that only its tests are built with.
    pub(crate) of_tests: BTreeSet<String>,
    /// The files outside of its folder that its sources include, relative to the root.
    pub(crate) includes: BTreeSet<String>,
}

/// The packages to test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Affected {
    /// All packages, because of this path.
    Everything(String),
    /// These packages.
    Packages(BTreeSet<String>),
}

/// The packages whose files changed, and all that are built with them.
pub(crate) fn affected(changed: &[String], packages: &[Package]) -> Affected {
    let of_all = |path: &&String| {
        let listed = |entry: &str| *path == entry || (entry.ends_with('/') && path.starts_with(entry));
        EVERYTHING.iter().any(|entry| listed(entry))
    };
    if let Some(path) = changed.iter().find(of_all) {
        return Affected::Everything(path.clone());
    }
    let is_concerned = |package: &&Package| {
        changed
            .iter()
            .any(|path| owns(package, path) || package.includes.contains(path))
    };
    let direct = packages.iter().filter(is_concerned);
    let built = dependants(direct.map(|p| p.name.clone()).collect(), packages);
    let tested = packages.iter().filter(|p| !p.of_tests.is_disjoint(&built));
    let tested: Vec<String> = tested.map(|p| p.name.clone()).collect();
    Affected::Packages(built.into_iter().chain(tested).collect())
}

/// Whether a file belongs to a package: no package of this workspace is within another one.
fn owns(package: &Package, path: &str) -> bool {
    path.strip_prefix(&package.folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// These packages, and all that are built with them, directly or not.
fn dependants(mut names: BTreeSet<String>, packages: &[Package]) -> BTreeSet<String> {
    loop {
        let more = packages.iter().filter(|p| !p.dependencies.is_disjoint(&names));
        let more: Vec<String> = more.map(|p| p.name.clone()).collect();
        let before = names.len();
        names.extend(more);
        if names.len() == before {
            return names;
        }
    }
}

/// The files that a source includes, relative to the root.
pub(crate) fn includes(source: &str, text: &str) -> Result<BTreeSet<String>> {
    let include = Regex::new(r#"include(?:_str|_bytes)?!\(\s*"([^"]+)""#)?;
    let folder: Vec<&str> = source.split('/').collect();
    let folder = folder.split_last().map_or(&[][..], |(_, folder)| folder);
    let paths = include.captures_iter(text).filter_map(|found| found.get(1));
    Ok(paths.map(|path| beside(folder, path.as_str())).collect())
}

/// A path relative to a folder, without `..`.
fn beside(folder: &[&str], path: &str) -> String {
    let mut parts = folder.to_vec();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Reads the packages from the output of `cargo metadata`; `includes` are the included files by package folder.
pub(crate) fn packages(
    metadata: &serde_json::Value,
    includes: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<Package> {
    let root = text(metadata, "workspace_root");
    let listed = metadata.get("packages").and_then(serde_json::Value::as_array);
    let listed = || listed.into_iter().flatten();
    let members: BTreeSet<&str> = listed().map(|package| text(package, "name")).collect();
    let package = |package: &serde_json::Value| {
        let manifest = text(package, "manifest_path").trim_end_matches("/Cargo.toml");
        let folder = manifest.trim_start_matches(root).trim_start_matches('/');
        let dependencies = package.get("dependencies").and_then(|all| all.as_array());
        let (tests, build): (Vec<_>, Vec<_>) = dependencies
            .into_iter()
            .flatten()
            .filter(|d| members.contains(text(d, "name")))
            .partition(|d| text(d, "kind") == "dev");
        let names = |list: Vec<&serde_json::Value>| list.iter().map(|d| text(d, "name").to_owned()).collect();
        Package {
            name: text(package, "name").to_owned(),
            folder: folder.to_owned(),
            dependencies: names(build),
            of_tests: names(tests),
            includes: includes.get(folder).cloned().unwrap_or_default(),
        }
    };
    listed().map(package).collect()
}

fn text<'a>(value: &'a serde_json::Value, key: &str) -> &'a str {
    value.get(key).and_then(|text| text.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Affected, Package, affected, includes, packages};
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// `store` is built with `protocol`, `node` with `store`; the tests of `text` with `store`.
    fn workspace() -> Vec<Package> {
        let package = |name: &str, dependencies: &[&str], of_tests: &[&str]| Package {
            name: format!("agentd-{name}"),
            folder: format!("crates/{name}"),
            dependencies: set(dependencies),
            of_tests: set(of_tests),
            includes: BTreeSet::new(),
        };
        let mut all = vec![
            package("protocol", &[], &[]),
            package("store", &["agentd-protocol"], &[]),
            package("store-postgres", &["agentd-store"], &[]),
            package("node", &["agentd-store"], &[]),
            package("text", &[], &["agentd-store"]),
            package("tui", &["agentd-text"], &[]),
        ];
        all[3].includes = set(&["docs/faults.md"]);
        all
    }

    fn changed(paths: &[&str]) -> Affected {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        affected(&paths, &workspace())
    }

    fn only(names: &[&str]) -> Affected {
        Affected::Packages(set(names))
    }

    #[test]
    fn a_change_concerns_its_package_and_what_is_built_with_it() {
        let all = [
            "agentd-node",
            "agentd-protocol",
            "agentd-store",
            "agentd-store-postgres",
            "agentd-text",
        ];
        assert_eq!(changed(&["crates/protocol/src/lib.rs"]), only(&all));
        assert_eq!(changed(&["crates/node/Cargo.toml"]), only(&["agentd-node"]));
        assert_eq!(
            changed(&["crates/store-postgres/src/schema/1.sql"]),
            only(&["agentd-store-postgres"])
        );
    }

    #[test]
    fn what_only_tests_are_built_with_goes_no_further() {
        // `tui` is built with `text`, and not with the tests of `text`.
        assert_eq!(
            changed(&["crates/store/src/lib.rs"]),
            only(&[
                "agentd-node",
                "agentd-store",
                "agentd-store-postgres",
                "agentd-text"
            ])
        );
    }

    #[test]
    fn a_file_outside_concerns_what_includes_it() {
        assert_eq!(changed(&["docs/faults.md", "README.md"]), only(&["agentd-node"]));
        assert_eq!(changed(&["docs/http.md"]), only(&[]));
        assert_eq!(changed(&[]), only(&[]));
    }

    #[test]
    fn the_lock_file_the_manifest_and_the_toolchain_concern_everything() {
        for path in [
            "Cargo.lock",
            "Cargo.toml",
            "rust-toolchain.toml",
            ".cargo/config.toml",
        ] {
            assert_eq!(
                changed(&["README.md", path]),
                Affected::Everything(path.to_owned())
            );
        }
    }

    #[test]
    fn included_files_are_found_by_their_path_from_the_root() {
        let text = r#"
            const A: &str = include_str!("../../../docs/http.md");
            const B: &[u8] = include_bytes!(
                "words/a.bin"
            );"#;
        let found = includes("crates/http/src/routes.rs", text).unwrap();
        assert_eq!(found, set(&["docs/http.md", "crates/http/src/words/a.bin"]));
    }

    #[test]
    fn packages_are_read_from_the_metadata() {
        let metadata = json!({"workspace_root": "/w", "packages": [
            {"name": "agentd-protocol", "manifest_path": "/w/crates/protocol/Cargo.toml", "dependencies": []},
            {"name": "agentd-store", "manifest_path": "/w/crates/store/Cargo.toml", "dependencies": [
                {"name": "agentd-protocol", "kind": null},
                {"name": "agentd-text", "kind": "dev"},
                {"name": "serde", "kind": null},
            ]},
            {"name": "agentd-text", "manifest_path": "/w/crates/text/Cargo.toml", "dependencies": []},
        ]});
        let included = BTreeMap::from([("crates/store".to_owned(), set(&["docs/a.md"]))]);
        let store = Package {
            name: "agentd-store".into(),
            folder: "crates/store".into(),
            dependencies: set(&["agentd-protocol"]),
            of_tests: set(&["agentd-text"]),
            includes: set(&["docs/a.md"]),
        };
        let read = packages(&metadata, &included);
        assert_eq!(read.len(), 3);
        assert_eq!(read[1], store);
    }
}
