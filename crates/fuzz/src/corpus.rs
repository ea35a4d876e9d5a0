//! The seed inputs.

use std::path::{Path, PathBuf};

/// Every seed input of a target, with its file. The logs of the golden tests are included.
#[must_use]
pub fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut directories = vec![here.join("corpus").join(target)];
    if matches!(target, "fold" | "import") {
        directories.push(here.join("../../tests/golden/logs"));
    }
    if target == "decoder" {
        directories.push(here.join("../conformance/tests/seeds"));
    }
    let mut found = Vec::new();
    for directory in directories {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let bytes = std::fs::read(&path).expect("a file of the corpus can be read");
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}
