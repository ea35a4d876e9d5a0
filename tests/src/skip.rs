//! Tests that cannot run here say so.

use std::io::Write as _;

/// Says loudly that a test is skipped, and why. A reason that starts with `kernel:` is accepted in CI; any other fails it.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a skip must be seen"
)]
pub fn skipped(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    if let Ok(path) = std::env::var("AGENTD_SKIPS")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path)
    {
        let _ = writeln!(file, "{reason} ({test})");
    }
}
