//! The page in a real browser. The scenarios are in `tests/page/scenarios`; `tests/page/run.mjs` drives them.

use agentd_tests::{binaries, skipped};
use std::path::Path;
use std::process::Command;

/// The script's exit code if a program is not installed.
const MISSING: i32 = 77;

#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts node")]
fn the_page_works_in_a_real_browser() {
    const NAME: &str = "the_page_works_in_a_real_browser";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let built = binaries();
    let run = Command::new("node")
        .arg(root.join("tests/page/run.mjs"))
        .env("AGENTD", &built.agentd)
        .env("AGENTCTL", &built.agentctl)
        .output();
    let Ok(run) = run else {
        skipped(NAME, "node is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout);
    if run.status.code() == Some(MISSING) {
        skipped(NAME, said.trim());
        return;
    }
    let failed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}{failed}");
}
