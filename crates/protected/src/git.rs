//! Classifies the contents of a git directory: data, or what decides which programs git runs.

use crate::paths::{Class, Reason};
use std::path::Path;

/// The references by which git shows other objects in the place of those that were asked for.
const REPLACE: &str = "replace";
/// The names that make a directory a repository: the first, and either the next two or the last.
pub(crate) const PARTS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Whether a directory with these of `PARTS` is a repository: git recognizes it by its contents, whatever its name.
#[must_use]
pub fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    let [head, objects, refs, common] = PARTS;
    has(head) && (has(common) || (has(objects) && has(refs)))
}

/// Whether adding a file or directory of this name makes a repository of a directory that has these of its parts.
#[must_use]
pub fn completes_repository(has: impl Fn(&str) -> bool, name: &str) -> bool {
    PARTS.contains(&name) && !is_repository(&has) && is_repository(|part| name == part || has(part))
}

/// Without a file of this name a directory is not a bare repository. Git obeys the configuration of a bare repository
/// inside a work tree as soon as someone runs git in it.
pub(crate) const BARE: &str = "HEAD";

/// Directories of data: objects, references and their logs.
const DATA_DIRS: [&str; 3] = ["objects", "refs", "logs"];
/// These files list other repositories to take objects from.
const ALTERNATES: [&str; 2] = ["alternates", "http-alternates"];
/// Directories at the top of a git directory that `git init` creates.
const DIRECTORIES: [&str; 6] = ["branches", "hooks", "info", "logs", "objects", "refs"];
/// Data files at the top of a git directory, without the suffix of their locks.
const DATA_FILES: [&str; 18] = [
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
    "packed-refs.new",
    "gc.pid",
    "gc.log",
];
/// An operation that consists of steps, its directory, and the list of the steps that are left.
const OPERATIONS: [(&str, &str); 2] = [("rebase-merge", "git-rebase-todo"), ("sequencer", "todo")];
/// The options of a series of picks.
const OPTIONS: [&str; 2] = ["sequencer", "opts"];
/// What git notes about an operation and never runs, without the suffix of locks. What is missing here decides more: a
/// strategy names a program, and a key of a signature is an argument of one.
const NOTED: [&str; 32] = [
    "abort-safety",
    "allow_rerere_autoupdate",
    "amend",
    "author-script",
    "autostash",
    "cdate_is_adate",
    "current-fixups",
    "done",
    "drop_redundant_commits",
    "end",
    "git-rebase-todo.backup",
    "head",
    "head-name",
    "ignore_date",
    "interactive",
    "keep_redundant_commits",
    "message",
    "message-fixup",
    "message-squash",
    "msgnum",
    "no-reschedule-failed-exec",
    "onto",
    "orig-head",
    "patch",
    "quiet",
    "refs-to-delete",
    "reschedule-failed-exec",
    "rewritten-list",
    "rewritten-pending",
    "signoff",
    "squash-onto",
    "stopped-sha",
];
/// Prefixes of the names that git generates for copies of the index.
const INDEX_COPIES: [&str; 3] = ["index.stash.", "next-index-", "sharedindex."];

/// Whether a component names a git directory, even if the file system ignores case.
pub(crate) fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether a directory is where git keeps git directories of other work trees: those of submodules, at any depth below
/// `modules`, or of worktrees.
#[must_use]
pub fn holds_git_directories(path: &Path) -> bool {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let Some(at) = names.iter().rposition(|name| is_git(name)) else {
        return false;
    };
    match names.get(at + 1..).unwrap_or_default() {
        [modules, ..] if modules == "modules" => true,
        [worktrees] | [worktrees, _] => worktrees == "worktrees",
        _ => false,
    }
}

/// Whether git notes something about an operation in this file.
fn is_noted(operation: &str, file: &str) -> bool {
    let Some((_, steps)) = OPERATIONS.iter().find(|(known, _)| *known == operation) else {
        return false;
    };
    let unlocked = file.strip_suffix(".lock");
    let is_lock = unlocked.is_some_and(|file| file == *steps || OPTIONS == [operation, file]);
    is_lock || NOTED.contains(&unlocked.unwrap_or(file)) || is_copy_of_sed(file)
}

/// Whether `sed -i`, which people use to edit a list of steps, writes to a file of this name first: `sedAbC123`.
fn is_copy_of_sed(file: &str) -> bool {
    file.strip_prefix("sed")
        .is_some_and(|rest| rest.len() == 6 && rest.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The class of a path at or below a git directory, with that directory's name; `None` for any other path.
pub(crate) fn classify(names: &[String]) -> Option<(Class, String)> {
    let at = names.iter().rposition(|name| is_git(name))?;
    let name = names.get(at)?.clone();
    let inside: Vec<&str> = names.iter().skip(at + 1).map(String::as_str).collect();
    // A linked worktree has its own index, HEAD and logs; its other files say where it belongs.
    let inside = match inside.as_slice() {
        ["worktrees", _, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    let class = match inside {
        [] => Class::GitDirectory,
        [dir] if DIRECTORIES.contains(dir) => Class::GitDirectory,
        [dir] if OPERATIONS.iter().any(|(operation, _)| operation == dir) => Class::GitOperation,
        [dir, file] if OPERATIONS.contains(&(*dir, *file)) => Class::GitSteps,
        inside if *inside == OPTIONS => Class::GitOptions,
        ["config"] => Class::GitConfig,
        ["packed-refs"] => Class::GitPackedRefs,
        // What git ignores, and where it lets history end.
        ["info", "exclude"] | ["shallow" | "shallow.lock"] => Class::GitOfMaker,
        inside if is_data(inside) => Class::GitData,
        inside if is_setup(inside) => Class::GitSetup,
        _ => Class::Protected(Reason::GitMetadata),
    };
    Some((class, name))
}

/// Whether `git init` creates this file and nothing acts on it.
fn is_setup(inside: &[&str]) -> bool {
    match inside {
        // Git writes a configuration under this name first.
        ["config.lock" | "description"] => true,
        ["hooks", name] => name.ends_with(".sample"),
        // A test of the file system's abilities: `tAbC123`.
        [name] => name.len() == 7 && name.starts_with('t') && name.chars().all(|c| c.is_ascii_alphanumeric()),
        _ => false,
    }
}

fn is_data(inside: &[&str]) -> bool {
    match inside {
        ["refs", name, ..] if name.eq_ignore_ascii_case(REPLACE) => false,
        ["objects", "info", file, ..] => !ALTERNATES.contains(&file.trim_end_matches(".lock")),
        ["packed-refs.lock"] => true,
        // `git gc` writes it for servers that know nothing of git.
        ["info", file] => *file == "refs" || file.starts_with("refs_"),
        [dir, file] if is_noted(dir, file) => true,
        [dir, _, ..] => DATA_DIRS.contains(dir),
        [file] => {
            let name = file.strip_suffix(".lock").unwrap_or(file);
            DATA_FILES.contains(&name) || INDEX_COPIES.iter().any(|start| name.starts_with(start))
        }
        [] => false,
    }
}
