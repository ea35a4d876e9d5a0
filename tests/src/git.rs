//! A person's git.

use std::path::Path;
use std::process::Command;

/// Runs git in a directory and returns its output. It must succeed.
#[expect(clippy::disallowed_methods, reason = "a person's own git")]
pub fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=ana", "-c", "user.email=ana@example.org"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        // Otherwise a commit starts it in the background.
        .args(["-c", "maintenance.auto=false"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
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
