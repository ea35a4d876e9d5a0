//! A person's git.

use std::path::Path;

/// Runs git in a directory and returns its output. It must succeed.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let done = agentd_process_tests::git(dir)
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .output()
        .expect("git starts");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        done.status.success(),
        "git {args:?} in {}: {errors}",
        dir.display()
    );
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}
