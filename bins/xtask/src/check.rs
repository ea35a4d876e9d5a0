//! `just check`: checks the packages that a change concerns, which git and cargo's metadata tell.
//!
//! All cargo commands select the whole workspace, as `cargo test --workspace` does: with single packages, cargo would select
//! other features, and compile most dependencies again. The tests of other packages are up to date, and do not run.

mod affected;

use affected::{Affected, Package, affected, includes, packages};
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The branches to compare with; the first that exists counts.
const BASES: [&str; 2] = ["origin/main", "main"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare with this commit; default: where the branch left origin/main, or else main
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
    /// Only print the packages that the changes concern
    #[arg(long)]
    list: bool,
}

/// The arguments of cargo's runner, which runs the test executables of some packages only.
#[derive(clap::Args)]
pub(crate) struct RunnerArgs {
    /// The names of packages, with commas
    packages: String,
    /// The executable and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Checks the changes.
pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let concerned = affected(&changed(root, args.base.as_deref())?, &members(root)?);
    tell(&concerned)?;
    if args.list {
        return Ok(ExitCode::SUCCESS);
    }
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let start = Instant::now();
        let good = check(root, &concerned)?;
        let seconds = start.elapsed().as_secs_f64();
        let result = if good { "ok" } else { "FAILED" };
        writeln!(std::io::stdout(), "check: {name} {result} ({seconds:.1} s)")?;
        failed.extend((!good).then_some(name));
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        writeln!(std::io::stdout(), "check: failed: {}", failed.join(", "))?;
        ExitCode::FAILURE
    })
}

/// Replaces this process by a test executable, if cargo runs it for one of the packages.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo names the package in the environment"
)]
pub(crate) fn runner(args: &RunnerArgs) -> Result<ExitCode> {
    let package = std::env::var("CARGO_PKG_NAME").context("CARGO_PKG_NAME")?;
    if !args.packages.split(',').any(|name| name == package) {
        return Ok(ExitCode::SUCCESS);
    }
    let (program, rest) = args.command.split_first().context("no executable")?;
    Err(Command::new(program).args(rest).exec()).context("cannot run the tests")
}

type Check = fn(&Path, &Affected) -> Result<bool>;

/// Each check says whether it is content.
const CHECKS: [(&str, Check); 4] = [
    ("format", format),
    ("house rules", house_rules),
    ("lints", lints),
    ("unit tests", unit_tests),
];

fn format(root: &Path, _: &Affected) -> Result<bool> {
    succeeds(cargo(root).args(["fmt", "--all", "--check"]))
}

fn house_rules(root: &Path, _: &Affected) -> Result<bool> {
    let findings = crate::tidy::check(root)?;
    for finding in &findings {
        writeln!(std::io::stdout(), "tidy: {finding}")?;
    }
    Ok(findings.is_empty())
}

fn lints(root: &Path, concerned: &Affected) -> Result<bool> {
    if *concerned == Affected::Packages(BTreeSet::new()) {
        return Ok(true);
    }
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked"];
    succeeds(cargo(root).args(clippy).args(["--", "-D", "warnings"]))
}

fn unit_tests(root: &Path, concerned: &Affected) -> Result<bool> {
    let mut tests = cargo(root);
    tests.args(["test", "--quiet", "--workspace", "--locked", "--lib", "--bins"]);
    match concerned {
        Affected::Everything(_) => {}
        Affected::Packages(names) if names.is_empty() => return Ok(true),
        Affected::Packages(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            tests.args(runner_option("only", &names.join(","))?);
        }
    }
    tests.arg("--no-fail-fast");
    succeeds(&mut tests)
}

/// The options of cargo that make it run each test executable with `xtask TASK ARGUMENT`.
pub(crate) fn runner_option(task: &str, argument: &str) -> Result<[String; 2]> {
    let own = std::env::current_exe()?;
    let own = own.to_str().context("the path of xtask is no text")?;
    let words = serde_json::to_string(&[own, task, argument])?;
    Ok(["--config".into(), format!("target.'cfg(unix)'.runner = {words}")])
}

fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(command.status().context("cannot start cargo")?.success())
}

#[expect(clippy::disallowed_methods, reason = "a development task starts cargo")]
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn tell(concerned: &Affected) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match concerned {
        Affected::Everything(path) => writeln!(out, "check: everything, because of {path}")?,
        Affected::Packages(names) if names.is_empty() => {
            writeln!(out, "check: the changes concern no package")?;
        }
        Affected::Packages(names) => {
            let list: Vec<&str> = names.iter().map(String::as_str).collect();
            writeln!(out, "check: {} packages: {}", list.len(), list.join(", "))?;
        }
    }
    Ok(())
}

/// The paths that differ from the base: committed, staged, in the working tree, or not yet known to git.
fn changed(root: &Path, base: Option<&str>) -> Result<Vec<String>> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => default_base(root),
    };
    let mut paths = lines(&git(root, &["diff", "--name-only", "--no-renames", &base])?);
    paths.extend(lines(&git(
        root,
        &["ls-files", "--others", "--exclude-standard"],
    )?));
    Ok(paths)
}

/// Where the branch left the main line.
fn default_base(root: &Path) -> String {
    let found = BASES
        .iter()
        .find_map(|base| git(root, &["merge-base", base, "HEAD"]).ok());
    found.map_or_else(|| "HEAD".to_owned(), |commit| commit.trim().to_owned())
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[expect(clippy::disallowed_methods, reason = "a development task asks git")]
fn git(root: &Path, args: &[&str]) -> Result<String> {
    // A path with unusual letters would be quoted.
    let output = Command::new("git")
        .args(["-c", "core.quotePath=false"])
        .args(args)
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("git {} failed: {said}", args.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages of the workspace.
fn members(root: &Path) -> Result<Vec<Package>> {
    let output = cargo(root)
        .args(["metadata", "--format-version=1", "--no-deps", "--locked"])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let mut included: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in lines(&git(root, &["ls-files", "*.rs"])?) {
        let parts: Vec<&str> = source.split('/').collect();
        let folder = match parts.as_slice() {
            ["tests", ..] => "tests".to_owned(),
            [kind, name, ..] => format!("{kind}/{name}"),
            _ => continue,
        };
        // A file that git lists may be deleted.
        let text = std::fs::read_to_string(root.join(&source)).unwrap_or_default();
        included
            .entry(folder)
            .or_default()
            .extend(includes(&source, &text)?);
    }
    Ok(packages(&metadata, &included))
}
