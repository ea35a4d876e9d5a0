//! A person's git.

use std::path::Path;
use std::process::Command;

/// A person's git in a directory. It sees the configuration of the repository, and neither the variables nor the files of
/// whoever runs the tests: these may sign commits, run hooks, name another repository or speak another language.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a person's own git")]
pub fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ]);
    for setting in [
        "user.name=ana",
        "user.email=ana@example.org",
        "init.defaultBranch=main",
        // Otherwise a commit starts it in the background.
        "maintenance.auto=false",
    ] {
        git.args(["-c", setting]);
    }
    git
}
