//! `[workspace]`: where sessions work, and when their files are recorded.

use crate::sandbox::Network;
use agentd_protocol::WorkspaceChoice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::time::Duration;

/// When the files of a working directory are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpointing {
    /// At the start of a turn, and after each step that may have changed files.
    #[default]
    Step,
    /// At the start and the end of a turn.
    Turn,
    /// Never: undo and diff cover only what the file tools did.
    Off,
}

/// `[workspace]`: where sessions work, and when their files are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceConfig {
    /// The kind of a session that names none.
    pub kind: WorkspaceChoice,
    /// Other defaults for directories and everything below them.
    pub directories: BTreeMap<String, WorkspaceChoice>,
    /// The beginnings of the URLs that tokens may have cloned; local users may name any.
    pub urls: Vec<String>,
    /// The beginnings of the URLs that branches may be pushed to; empty: none.
    pub push: Vec<String>,
    /// Ignored files and directories that a clone or a worktree of a local repository gets a copy of.
    pub include: Vec<String>,
    /// Commands that run in a new workspace before its first turn.
    pub setup: Vec<String>,
    /// The time limit for all of them together.
    #[serde(with = "crate::duration::plain")]
    pub setup_limit: Duration,
    /// Their network access.
    pub setup_network: Network,
    /// Whether recorded files of workspaces are kept in the store, too.
    pub keep: Keep,
    /// The most bytes that the store keeps of one session's files.
    pub keep_bytes: u64,
    /// The time limit for making one.
    #[serde(with = "crate::duration::plain")]
    pub make_limit: Duration,
    /// Bytes that may be copied into one, apart from what git checks out.
    pub copy_bytes: u64,
    /// Files that may be copied into one, apart from what git checks out.
    pub copy_files: u64,
    /// Days after which the workspace of a closed session is removed, if all its work was fetched; 0: never.
    pub keep_days: u32,
    /// Bytes that all workspaces may take; above it, those of closed sessions go, the oldest first. 0: no limit.
    pub disk_budget: u64,
    /// When the files of a working directory are recorded.
    pub checkpoint: Checkpointing,
    /// A larger file is left out of a checkpoint.
    pub checkpoint_file_bytes: u64,
    /// A directory with more files is not recorded.
    pub checkpoint_files: u64,
    /// The new and changed files of one checkpoint may have at most this many bytes together.
    pub checkpoint_bytes: u64,
    /// The author of commits made of a session's work: `Name <address>`.
    pub author: String,
}

/// Where the recorded files of workspaces are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// On the machine of the workspace.
    #[default]
    Local,
    /// In the store as well, so that another machine can bring them back.
    Store,
}

impl WorkspaceConfig {
    /// The kind for a directory: of the innermost configured directory that it is in, otherwise `kind`.
    #[must_use]
    pub fn choice(&self, workdir: &Path) -> WorkspaceChoice {
        let inside = self
            .directories
            .iter()
            .filter(|(dir, _)| workdir.starts_with(dir));
        let inner = inside.max_by_key(|(dir, _)| Path::new(dir).components().count());
        inner.map_or(self.kind, |(_, choice)| *choice)
    }

    /// The name and the address in `author`; `None` if it does not have this form.
    #[must_use]
    pub fn author(&self) -> Option<(&str, &str)> {
        let (name, address) = self.author.trim_end().strip_suffix('>')?.split_once('<')?;
        let (name, address) = (name.trim(), address.trim());
        let plain = |part: &str| !part.contains(['<', '>']) && !part.contains(char::is_control);
        (!name.is_empty() && plain(name) && plain(address)).then_some((name, address))
    }

    /// Whether a token may have a URL cloned.
    #[must_use]
    pub fn may_clone(&self, url: &str) -> bool {
        url_is_below(url, &self.urls)
    }

    /// Whether a branch may be pushed to a URL.
    #[must_use]
    pub fn may_push(&self, url: &str) -> bool {
        url_is_below(url, &self.push)
    }

    /// The first entry of `include` that does not stay in the repository, or that leads into git's own directory.
    pub(crate) fn bad_include(&self) -> Option<&str> {
        let bad = |entry: &&String| {
            let mut parts = Path::new(entry).components();
            entry.is_empty()
                || !parts.all(|part| match part {
                    Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
                    _ => false,
                })
        };
        self.include.iter().find(bad).map(String::as_str)
    }
}

/// Whether a URL begins with an entry, which ends with a whole part of the URL's path. `..` would lead elsewhere.
#[must_use]
pub fn url_is_below(url: &str, entries: &[String]) -> bool {
    let climbs = url
        .to_ascii_lowercase()
        .replace("%2e", ".")
        .split(['/', '\\'])
        .any(|part| part == "..");
    !climbs
        && entries.iter().any(|begin| {
            let rest = url.strip_prefix(begin.trim_end_matches('/'));
            !begin.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_directory_decides() {
        let config = WorkspaceConfig {
            directories: BTreeMap::from([
                ("/srv".to_owned(), WorkspaceChoice::Clone),
                ("/srv/app".to_owned(), WorkspaceChoice::Worktree),
            ]),
            ..WorkspaceConfig::default()
        };
        let choice = |dir| config.choice(Path::new(dir));
        assert_eq!(choice("/srv/app/src"), WorkspaceChoice::Worktree);
        assert_eq!(choice("/srv/application"), WorkspaceChoice::Clone);
        assert_eq!(choice("/home/ana"), WorkspaceChoice::Auto);
    }

    #[test]
    fn an_author_is_a_name_and_an_address() {
        let author = |author: &str| WorkspaceConfig {
            author: author.to_owned(),
            ..WorkspaceConfig::default()
        };
        assert_eq!(author("").author(), None);
        assert_eq!(
            WorkspaceConfig::default().author(),
            Some(("agentd", "agentd@localhost"))
        );
        for bad in [
            "Ana",
            "<ana@example.com>",
            "Ana <ana@example.com",
            "Ana\nB <a>",
            "Ana <<a>>",
        ] {
            assert_eq!(author(bad).author(), None, "{bad:?}");
        }
    }

    #[test]
    fn tokens_name_only_urls_below_an_entry() {
        let config = WorkspaceConfig {
            urls: vec![
                "https://git.example/team/".to_owned(),
                "https://git.example/one.git".to_owned(),
            ],
            ..WorkspaceConfig::default()
        };
        for good in ["https://git.example/team/app.git", "https://git.example/one.git"] {
            assert!(config.may_clone(good), "{good}");
        }
        for bad in [
            "https://git.example/teams/a",
            "https://git.example/one.git.evil",
            "http://git.example/team/a",
            "https://git.example/team/../other/a",
            "https://git.example/team/%2E./other/a",
        ] {
            assert!(!config.may_clone(bad), "{bad}");
        }
        assert!(!WorkspaceConfig::default().may_clone("https://git.example/team/a"));
    }

    #[test]
    fn included_paths_stay_in_the_repository_and_out_of_git() {
        let bad = |entry: &str| {
            let include = vec![entry.to_owned()];
            let config = WorkspaceConfig {
                include,
                ..WorkspaceConfig::default()
            };
            config.bad_include().is_some()
        };
        for good in [".env.example", "node_modules", "web/node_modules"] {
            assert!(!bad(good), "{good}");
        }
        for entry in [
            "",
            "/etc/passwd",
            "../secret",
            "a/../../b",
            ".git/hooks",
            "a/.GIT/config",
            "./x",
        ] {
            assert!(bad(entry), "{entry}");
        }
    }
}
