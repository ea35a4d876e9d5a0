//! Rules about what cargo builds for a package: each test program is linked and started, and each run of rustdoc takes a
//! second even if there is no example.

use super::layers::metadata;
use super::tree::{Source, Tree};
use anyhow::{Context as _, Result};
use serde_json::Value;

/// A workspace member with its targets, as far as the rules need them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// The directory of its manifest, relative to the root.
    pub(crate) folder: String,
    /// Whether its library has documentation tests; `None` without a library.
    pub(crate) doctest: Option<bool>,
    /// The names of its integration-test targets.
    pub(crate) tests: Vec<String>,
}

pub(crate) fn documentation_tests(tree: &Tree) -> Result<Vec<String>> {
    Ok(wrong_doctests(&packages(tree)?, &tree.sources))
}

pub(crate) fn one_test_program(tree: &Tree) -> Result<Vec<String>> {
    Ok(several_test_programs(&packages(tree)?))
}

/// Libraries that have examples or `doctest = false`, but not exactly one of the two.
pub(crate) fn wrong_doctests(packages: &[Package], sources: &[Source]) -> Vec<String> {
    let finding = |package: &Package| {
        let folder = format!("{}/src/", package.folder);
        let example = sources
            .iter()
            .find(|source| source.path.starts_with(&folder) && has_example(&source.text));
        match (package.doctest?, example) {
            (true, None) => Some(format!(
                "{}: no documentation has an example: add `doctest = false` to [lib]",
                package.name
            )),
            (false, Some(source)) => Some(format!(
                "{}: the example in {} does not run: remove `doctest = false`",
                package.name, source.path
            )),
            (true, Some(_)) | (false, None) => None,
        }
    };
    packages.iter().filter_map(finding).collect()
}

/// Packages with more than one integration-test target.
pub(crate) fn several_test_programs(packages: &[Package]) -> Vec<String> {
    let finding = |package: &Package| {
        (package.tests.len() > 1).then(|| {
            format!(
                "{}: {} programs of integration tests ({}): make them modules of tests/it/main.rs",
                package.name,
                package.tests.len(),
                package.tests.join(", ")
            )
        })
    };
    packages.iter().filter_map(finding).collect()
}

/// Whether a source file has an example that rustdoc compiles.
pub(crate) fn has_example(text: &str) -> bool {
    let mut within = false;
    for line in text.lines().map(str::trim_start) {
        let Some(words) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            within = false;
            continue;
        };
        if let Some(language) = words.trim().strip_prefix("```") {
            if !within && compiles(language) {
                return true;
            }
            within = !within;
        }
    }
    false
}

/// Whether rustdoc compiles a code block with these words after its fence.
fn compiles(words: &str) -> bool {
    let known = |word: &str| {
        matches!(
            word,
            "rust" | "should_panic" | "no_run" | "compile_fail" | "test_harness" | "standalone_crate"
        ) || word.starts_with("edition")
            || word
                .strip_prefix('E')
                .is_some_and(|code| code.chars().all(|c| c.is_ascii_digit()))
    };
    words.split([',', ' ']).filter(|word| !word.is_empty()).all(known)
}

fn packages(tree: &Tree) -> Result<Vec<Package>> {
    let metadata = metadata(tree, &["--no-deps"])?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("cargo metadata has no packages")?;
    let root = format!("{}/", tree.root.display());
    Ok(packages.iter().map(|found| package(found, &root)).collect())
}

fn package(package: &Value, root: &str) -> Package {
    let text = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let targets = package.get("targets").and_then(Value::as_array);
    let of = |kind: &'static str| {
        targets.into_iter().flatten().filter(move |target| {
            let kinds = target.get("kind").and_then(Value::as_array);
            kinds.into_iter().flatten().any(|one| one == kind)
        })
    };
    let manifest = text(package, "manifest_path");
    Package {
        name: text(package, "name"),
        folder: manifest
            .trim_start_matches(root)
            .trim_end_matches("/Cargo.toml")
            .to_owned(),
        doctest: of("lib")
            .next()
            .and_then(|library| library.get("doctest"))
            .and_then(Value::as_bool),
        tests: of("test").map(|test| text(test, "name")).collect(),
    }
}
