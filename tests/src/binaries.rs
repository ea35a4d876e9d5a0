//! The real binaries, built once for all tests of a run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The paths of the built binaries.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// The daemon, with fault points compiled in (they do nothing unless asked).
    pub agentd: PathBuf,
    /// The command.
    pub agentctl: PathBuf,
    /// The load tool.
    pub bench: PathBuf,
    /// The helper that parses source files; the daemon finds it beside itself.
    pub tags: PathBuf,
}

/// The programs, in the order of [`Binaries`].
const PROGRAMS: [&str; 4] = ["agentd", "agentctl", "agentd-bench", "agentd-tags"];

static BUILT: OnceLock<Binaries> = OnceLock::new();

/// Builds `agentd`, `agentctl` and what they need at the first call. `cargo test` alone does not build another package's binary.
///
/// # Panics
/// When the build fails: no test can go on without it.
pub fn binaries() -> &'static Binaries {
    BUILT.get_or_init(build)
}

#[expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "the harness of tests starts cargo"
)]
fn build() -> Binaries {
    // `cargo xtask stress` has built them.
    if let Ok(dir) = std::env::var("AGENTD_TEST_PROGRAMS") {
        let built = |name: &str| Path::new(&dir).join(name);
        return kept_beside(PROGRAMS.map(built));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests live in the workspace");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    // What cargo tells a test of its package would make build scripts run again, and rebuild everything that depends on them,
    // in this build and once more in the next plain one.
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR"
        });
        if told {
            command.env_remove(name);
        }
    }
    // With a test among the targets, and in the whole workspace, cargo selects the same features as `cargo test --workspace`:
    // then everything but the binaries is built already.
    let output = command
        .args(["build", "--locked", "--workspace", "--profile", "test"])
        .args(["--test", "suite"])
        .args(PROGRAMS.map(|name| ["--bin", name]).as_flattened())
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "the binaries do not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let built = |name: &str| {
        let path = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message.pointer("/target/name").and_then(|n| n.as_str()) == Some(name))
            .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from));
        path.unwrap_or_else(|| panic!("cargo built no {name}"))
    };
    kept_beside(PROGRAMS.map(built))
}

/// Copies the binaries to a directory of our own: a later plain build must not replace a binary that tests still run.
#[expect(clippy::expect_used, reason = "the harness of tests copies what was built")]
fn kept_beside([agentd, agentctl, bench, tags]: [PathBuf; 4]) -> Binaries {
    let dir = agentd
        .parent()
        .expect("a binary is in a directory")
        .join("harness");
    std::fs::create_dir_all(&dir).expect("the target directory can be written");
    let keep = |from: &Path| keep(from, &dir);
    Binaries {
        agentd: keep(&agentd),
        agentctl: keep(&agentctl),
        bench: keep(&bench),
        tags: keep(&tags),
    }
}

/// Copies a binary into `dir`, unless it is there already.
#[expect(clippy::expect_used, reason = "the harness of tests copies what was built")]
fn keep(from: &Path, dir: &Path) -> PathBuf {
    let to = dir.join(from.file_name().expect("a binary has a name"));
    let fresh = dir.join(format!(
        "{}.{}",
        to.file_name().expect("named above").to_string_lossy(),
        std::process::id()
    ));
    // A daemon that runs starts its wardens from this file: one that is the same already stays.
    let same = |a: &std::fs::Metadata, b: &std::fs::Metadata| {
        a.len() == b.len() && a.modified().ok() <= b.modified().ok()
    };
    if let (Ok(built), Ok(kept)) = (from.metadata(), to.metadata())
        && same(&built, &kept)
    {
        return to;
    }
    std::fs::copy(from, &fresh).expect("the binary can be copied");
    std::fs::rename(&fresh, &to).expect("the copy can be renamed");
    to
}
