//! What a token may do, in plain words. Pure.

use crate::methods::Scope;
use agentd_protocol::{Labels, PermissionMode, TokenRights, listed};

/// What a token with these scopes, labels and rights may do, a sentence each.
pub(crate) fn may(scopes: &[String], labels: &Labels, rights: &TokenRights) -> Vec<String> {
    let has = |scope: Scope| scopes.iter().any(|name| Scope::parse(name) == Some(scope));
    let which = match labels.is_empty() {
        true => "all sessions".to_owned(),
        false => format!("sessions with {}", listed(labels)),
    };
    let mut words = Vec::new();
    if has(Scope::Read) {
        words.push(format!("sees {which}"));
    }
    if has(Scope::Steer) {
        words.push(format!("creates, steers and closes {which}"));
    }
    if has(Scope::Approve) {
        words.push(format!(
            "answers the questions of {which}, makes them less strict, and brings their changes to directories and branches"
        ));
    }
    if has(Scope::Import) {
        words.push("imports logs as new sessions".to_owned());
    }
    if has(Scope::Admin) {
        words.push("administers the daemon: tokens, settings, audit, backups, stop".to_owned());
    }
    if [Scope::Steer, Scope::Approve, Scope::Import].into_iter().any(has) {
        words.extend(places(rights));
        words.push(format!(
            "gives a session at most the mode {}: {}",
            rights.mode,
            asks(rights.mode)
        ));
    }
    words
}

fn places(rights: &TokenRights) -> [String; 2] {
    let dirs = match rights.dirs.as_slice() {
        [] => "uses no directory directly".to_owned(),
        [all] if all == "/" => "uses every directory except protected ones".to_owned(),
        dirs => format!("uses {} and everything below", dirs.join(", ")),
    };
    let (mut places, urls): (Vec<_>, Vec<_>) = rights
        .sources
        .iter()
        .map(String::as_str)
        .partition(|source| source.starts_with('/'));
    match urls.as_slice() {
        [] => places.push("URLs of workspace.urls"),
        urls if urls.contains(&"*") => places.push("every URL"),
        urls => places.extend(urls),
    }
    [
        dirs,
        format!("works in clones and copies of {}", places.join(", ")),
    ]
}

const fn asks(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "only reads run",
        PermissionMode::Default => "writes and commands ask",
        PermissionMode::AcceptEdits => "commands ask, writes in the working directory run",
        PermissionMode::Yolo => "everything runs unasked, except for what a deny rule forbids",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scopes: &[&str], labels: &Labels, rights: &TokenRights) -> String {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        may(&scopes, labels, rights).join("\n")
    }

    #[test]
    fn a_token_is_described_by_what_it_may_do() {
        let labels = Labels::from([("team".to_owned(), "a".to_owned())]);
        let rights = TokenRights {
            dirs: vec!["/srv/app".to_owned()],
            sources: vec!["/srv/lib".to_owned(), "https://git.example/a".to_owned()],
            mode: PermissionMode::AcceptEdits,
        };
        assert_eq!(
            words(&["read", "steer"], &labels, &rights),
            "sees sessions with team=a\n\
             creates, steers and closes sessions with team=a\n\
             uses /srv/app and everything below\n\
             works in clones and copies of /srv/lib, https://git.example/a\n\
             gives a session at most the mode accept-edits: commands ask, writes in the working directory run"
        );
    }

    #[test]
    fn the_narrowest_rights_and_all_rights_are_said() {
        let narrow = words(&["steer", "fly"], &Labels::new(), &TokenRights::default());
        assert!(
            narrow
                .contains("uses no directory directly\nworks in clones and copies of URLs of workspace.urls"),
            "{narrow}"
        );
        assert!(
            narrow.ends_with("the mode default: writes and commands ask"),
            "{narrow}"
        );
        let all = words(&["import"], &Labels::new(), &TokenRights::all());
        assert!(
            all.contains("every directory except protected ones\nworks in clones and copies of every URL"),
            "{all}"
        );
        assert_eq!(
            words(&["read"], &Labels::new(), &TokenRights::all()),
            "sees all sessions"
        );
    }
}
