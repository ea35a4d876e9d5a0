//! Decides which changes of a repository's configuration a command may make. Pure.
//!
//! `git init`, `git clone` and `git remote add` write configuration, and some of it decides what git runs later. A change
//! is accepted if everything decisive stays as it is, and every new line has a form that git can read in only one way.

use crate::git_config::{Entry, entries};
use std::collections::BTreeSet;
use std::fmt;

/// Variables that run nothing and read no file, whatever their value.
const FREE: [&str; 16] = [
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "extensions.objectformat",
    "init.defaultbranch",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "user.email",
    "user.name",
];
/// Variables of a remote that a command may add but not change: people pull from there and push to it.
const REMOTE: [&str; 4] = [
    "remote.fetch",
    "remote.partialclonefilter",
    "remote.promisor",
    "remote.tagopt",
];
/// Variables of a branch that a command may add but not change.
const BRANCH: [&str; 2] = ["branch.merge", "branch.rebase"];

/// Why a command may not make this change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// A line that git may read in another way.
    Doubtful(String),
    /// A variable that decides what git runs or which host it contacts.
    Decisive(String),
    /// A step of a rebase that does more than to pick, change and merge commits.
    Step(String),
}

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Doubtful(line) => write!(
                f,
                "this line does not have the plain form that git writes: {line}"
            ),
            Self::Decisive(name) => write!(f, "only a person may change {name}"),
            Self::Step(line) => write!(f, "only a person may add this step: {line}"),
        }
    }
}

impl std::error::Error for ConfigChange {}

/// Checks whether a command may replace the configuration `old` by `new`.
///
/// A command may set variables that run nothing, such as `user.name`. It may add a remote if there is none yet, and let
/// branches follow existing remotes. Everything else must stay, in its order.
///
/// # Errors
/// The first change that only a person may make.
pub fn check_config_change(old: &str, new: &str) -> Result<(), ConfigChange> {
    // Trims only characters that git skips, too.
    let trimmed = |line: &'_ str| line.trim_matches([' ', '\t']).to_owned();
    let known: BTreeSet<String> = old.split('\n').map(trimmed).collect();
    let mut lines = new.split('\n').map(trimmed);
    if let Some(line) = lines.find(|line| !known.contains(line) && !is_plain(line)) {
        return Err(ConfigChange::Doubtful(line.chars().take(200).collect()));
    }
    let (before, after) = (entries(old), entries(new));
    let remotes: BTreeSet<&str> = after
        .iter()
        .filter(|entry| entry.name.starts_with("remote."))
        .map(|entry| entry.subsection.as_str())
        .collect();
    let is_new = |entry: &Entry| !before.iter().any(|other| other.is_same_variable(entry));
    let decisive_before = before.iter().filter(|entry| !is_free(entry));
    let decisive_after = after
        .iter()
        .filter(|entry| !(is_free(entry) || is_new(entry) && may_be_added(entry, &remotes)));
    match first_difference(decisive_before, decisive_after) {
        Some(name) => Err(ConfigChange::Decisive(name)),
        None => Ok(()),
    }
}

/// Whether a command may remove a configuration: it decides nothing but the locations of remotes.
#[must_use]
pub fn may_remove_config(old: &str) -> bool {
    entries(old).iter().all(|entry| {
        is_free(entry)
            || ["remote.", "branch."]
                .iter()
                .any(|start| entry.name.starts_with(start))
    })
}

fn first_difference<'a>(
    mut before: impl Iterator<Item = &'a Entry>,
    mut after: impl Iterator<Item = &'a Entry>,
) -> Option<String> {
    loop {
        match (before.next(), after.next()) {
            (None, None) => return None,
            (Some(one), Some(other)) if one == other => {}
            (_, Some(other)) => return Some(other.name.clone()),
            (Some(one), None) => return Some(one.name.clone()),
        }
    }
}

fn is_free(entry: &Entry) -> bool {
    entry.subsection.is_empty() && FREE.contains(&entry.name.as_str())
}

fn may_be_added(entry: &Entry, remotes: &BTreeSet<&str>) -> bool {
    let value = entry.value.as_str();
    match entry.name.as_str() {
        "remote.url" => remotes.len() == 1 && is_address(value),
        "extensions.partialclone" => entry.subsection.is_empty() && remotes.contains(value),
        "branch.remote" => value == "." || remotes.contains(value),
        name if REMOTE.contains(&name) => remotes.len() == 1,
        name => BRANCH.contains(&name),
    }
}

/// The protocols by which git speaks to another host.
const PROTOCOLS: [&str; 4] = ["git", "http", "https", "ssh"];

/// Whether a value is a URL with a host, or `host:path`. It names no helper (`ext::sh`), is no option, and is no path: when
/// a person pushes to a repository of this machine, git runs that repository's hooks.
fn is_address(value: &str) -> bool {
    if value.contains("::") {
        return false;
    }
    let (host, is_protocol) = match value.split_once("://") {
        Some((protocol, rest)) => (
            rest.split('/').next().unwrap_or_default(),
            PROTOCOLS.contains(&protocol),
        ),
        // Git takes a colon after a slash for a part of a path.
        None => match value.split_once(':') {
            Some((host, path)) => (host, !host.contains('/') && !path.is_empty()),
            None => return false,
        },
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    is_protocol && host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
}

/// Checks whether a command may replace the packed references `old` by `new`.
///
/// # Errors
/// It adds a reference by which git shows another object than the one that was asked for.
pub fn check_packed_refs(old: &str, new: &str) -> Result<(), ConfigChange> {
    let replaces = |line: &&str| line.to_ascii_lowercase().contains("refs/replace/");
    let known: BTreeSet<&str> = old.lines().filter(replaces).collect();
    match new.lines().filter(replaces).find(|line| !known.contains(line)) {
        Some(line) => Err(ConfigChange::Decisive(line.chars().take(200).collect())),
        None => Ok(()),
    }
}

/// Whether a trimmed line is empty, a section, or a variable in the form that git writes. It is complete in itself: it has
/// no quotes, no escapes and no comment.
pub(crate) fn is_plain(line: &str) -> bool {
    let plain = |c: char| !c.is_control() && !"\"\\#;".contains(c);
    let word = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if line.is_empty() {
        return true;
    }
    if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        return match header.split_once(' ') {
            None => word(header),
            Some((section, quoted)) => {
                let inside = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                word(section) && inside.is_some_and(|text| text.chars().all(|c| plain(c) && c != ']'))
            }
        };
    }
    line.split_once(" = ")
        .or_else(|| line.strip_suffix(" =").map(|key| (key, "")))
        .is_some_and(|(key, value)| word(key) && value.chars().all(plain))
}

#[cfg(test)]
#[path = "config_change_tests.rs"]
mod tests;
