//! `[fleet]`: what this node believes of the other nodes on its store.

use agentd_protocol::PermissionMode;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[fleet]`: requests of other nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetConfig {
    /// How far the time of a request may be from the clock of this node.
    #[serde(with = "crate::duration::plain")]
    pub clock_window: Duration,
    /// The most requests that are remembered for that time, so that none is accepted twice. Beyond that they are refused.
    pub remembered_requests: u32,
    /// What local users of other nodes may do here.
    pub local_users: LocalUsers,
}

/// What local users of other nodes may do here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalUsers {
    /// Their scopes, of `read`, `steer`, `approve` and `import`.
    pub scopes: Vec<String>,
    /// The least strict mode of what they set up, unless `permission.mode` is less strict.
    pub mode: PermissionMode,
    /// Directories in and below which their sessions may work, in addition to `node.shared_paths`.
    pub dirs: Vec<String>,
}

/// The scopes that local users of other nodes can have: those of sessions, and none of the daemon.
const SCOPES: [&str; 4] = ["read", "steer", "approve", "import"];

impl LocalUsers {
    /// The key that is wrong, what is wrong, and the fix.
    pub(crate) fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let scope = self.scopes.iter().find(|scope| !SCOPES.contains(&scope.as_str()));
        if let Some(scope) = scope {
            let what = format!("{scope:?} is no scope that users of other nodes can have");
            return Some((
                "fleet.local_users.scopes",
                what,
                "use read, steer, approve and import",
            ));
        }
        let dir = self.dirs.iter().find(|dir| !crate::daemon::is_plain_path(dir))?;
        let what = format!("{dir:?} is not a plain absolute path");
        let fix = "write it from / on, without .., a double slash or a slash at the end";
        Some(("fleet.local_users.dirs", what, fix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_users_of_other_nodes_administer_nothing_whatever_the_settings_say() {
        let with = |scopes: &[&str], dirs: &[&str]| LocalUsers {
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            dirs: dirs.iter().map(|dir| (*dir).to_owned()).collect(),
            ..LocalUsers::default()
        };
        let key = |users: &LocalUsers| users.problem().map(|(key, ..)| key);
        for scope in ["admin", "", "Read", "*"] {
            assert_eq!(
                key(&with(&["read", scope], &[])),
                Some("fleet.local_users.scopes"),
                "{scope}"
            );
        }
        for dir in ["srv", "/srv/", "/srv/../a", ""] {
            assert_eq!(
                key(&with(&["read"], &["/", dir])),
                Some("fleet.local_users.dirs"),
                "{dir}"
            );
        }
        assert_eq!(key(&with(&SCOPES, &["/", "/srv/a"])), None);
        assert_eq!(key(&with(&[], &[])), None);
        assert_eq!(key(&LocalUsers::default()), None);
    }
}
