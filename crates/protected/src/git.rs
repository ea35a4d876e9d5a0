//! What inside of a git directory is data, and what decides what git runs.

use crate::paths::{Class, Reason};

/// Without a file of this name a directory is no bare repository. Git follows the configuration of one that lies in a work
/// tree as soon as somebody runs git in it.
pub(crate) const BARE: &str = "HEAD";

/// Directories of data: objects, references and their logs.
const DATA_DIRS: [&str; 3] = ["objects", "refs", "logs"];
/// Objects of another repository are looked up where these say.
const ALTERNATES: [&str; 2] = ["alternates", "http-alternates"];
/// Directories at the top of a git directory that `git init` makes.
const DIRECTORIES: [&str; 6] = ["branches", "hooks", "info", "logs", "objects", "refs"];
/// Files of data at the top of a git directory, without the suffix of their locks.
const DATA_FILES: [&str; 20] = [
    "index",
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "packed-refs",
    "packed-refs.new",
    "shallow",
    "gc.pid",
    "gc.log",
];
/// Beginnings of names that git makes up for copies of the index.
const INDEX_COPIES: [&str; 3] = ["index.stash.", "next-index-", "sharedindex."];

/// Whether a component is the name of a git directory, also where the file system ignores case.
pub(crate) fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The class of a path at or below a git directory, with that directory's name; `None` for any other path.
pub(crate) fn classify(names: &[String]) -> Option<(Class, String)> {
    let at = names.iter().rposition(|name| is_git(name))?;
    let name = names.get(at)?.clone();
    let inside: Vec<&str> = names.iter().skip(at + 1).map(String::as_str).collect();
    // A linked worktree has an index, a HEAD and logs of its own; its other files say where it belongs.
    let inside = match inside.as_slice() {
        ["worktrees", _, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    let class = match inside {
        [] => Class::GitDirectory,
        [dir] if DIRECTORIES.contains(dir) => Class::GitDirectory,
        ["config"] => Class::GitConfig,
        inside if is_data(inside) => Class::GitData,
        inside if is_setup(inside) => Class::GitSetup,
        _ => Class::Protected(Reason::GitMetadata),
    };
    Some((class, name))
}

/// Whether nothing acts on a file that `git init` makes.
fn is_setup(inside: &[&str]) -> bool {
    match inside {
        // Git writes a configuration under this name first.
        ["config.lock" | "description"] | ["info", "exclude"] => true,
        ["hooks", name] => name.ends_with(".sample"),
        // A trial of what the file system can do: `tAbC123`.
        [name] => name.len() == 7 && name.starts_with('t') && name.chars().all(|c| c.is_ascii_alphanumeric()),
        _ => false,
    }
}

fn is_data(inside: &[&str]) -> bool {
    match inside {
        ["objects", "info", file, ..] => !ALTERNATES.contains(&file.trim_end_matches(".lock")),
        // For servers that know nothing of git: `git gc` writes it.
        ["info", file] => *file == "refs" || file.starts_with("refs_"),
        [dir, _, ..] => DATA_DIRS.contains(dir),
        [file] => {
            let name = file.strip_suffix(".lock").unwrap_or(file);
            DATA_FILES.contains(&name) || INDEX_COPIES.iter().any(|start| name.starts_with(start))
        }
        [] => false,
    }
}
