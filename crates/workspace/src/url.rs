//! Checks the URLs of repositories.

use crate::error::WorkspaceError;

/// The schemes that git fetches from without running a program that the URL names.
const SCHEMES: [&str; 4] = ["https", "http", "ssh", "file"];
/// The longest URL.
const MAX_BYTES: usize = 2_048;

/// Accepts the URLs that agentd fetches: `https`, `http`, `ssh`, `file`, and `user@host:path`. A URL ends up in the log, so
/// it must not contain a password (I8); helpers such as `ext::` would run a program.
///
/// # Errors
/// Any other text.
pub fn check_url(url: &str) -> Result<(), WorkspaceError> {
    let refused = |why: &str| {
        Err(WorkspaceError::refused(
            "bad_repository_url",
            format!("the URL of the repository {why}"),
            "use https://HOST/PATH, ssh://HOST/PATH, USER@HOST:PATH or file:///PATH; for a directory, name it as the working directory",
        ))
    };
    if url.is_empty() || url.len() > MAX_BYTES {
        return refused("is empty or too long");
    }
    if url.starts_with('-') || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return refused("begins with a dash or contains white space");
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        if !SCHEMES.contains(&scheme) {
            return refused("has a scheme that agentd does not fetch");
        }
        let authority = rest.split('/').next().unwrap_or_default();
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        if user.contains(':') || (scheme.starts_with("http") && !user.is_empty()) {
            return refused("contains credentials, which would be stored in the log");
        }
        if host.starts_with('-') || user.starts_with('-') || rest.contains('?') || rest.contains('#') {
            return refused("has an unusual host, or a query");
        }
        if scheme == "file" && !rest.starts_with('/') {
            return refused("names no absolute path");
        }
        return Ok(());
    }
    let Some((host, path)) = url.split_once(':') else {
        return refused("has no scheme");
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    let usual = !path.is_empty() && !path.starts_with(':') && !path.starts_with('-');
    if usual && host.contains('@') && host.chars().all(plain) && !host.contains("@-") {
        return Ok(());
    }
    refused("has no scheme that agentd fetches")
}

/// The only protocol that git may use for a URL: a server cannot redirect to another.
#[must_use]
pub fn protocol(url: &str) -> &str {
    url.split_once("://").map_or("ssh", |(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_urls_that_run_programs_or_hold_secrets_are_refused() {
        for good in [
            "https://git.example/a/b.git",
            "http://127.0.0.1:8080/a.git",
            "ssh://git@git.example:2222/a.git",
            "git@git.example:a/b.git",
            "file:///srv/git/a.git",
        ] {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/srv/git/a",
            "../a",
            "ext::sh -c id",
            "ext::sh",
            "fd::3",
            "-u./x",
            "--upload-pack=touch /tmp/x",
            "https://user:secret@git.example/a.git",
            "https://token@git.example/a.git",
            "https://git.example/a.git?token=x",
            "ssh://-oProxyCommand=id/a",
            "ssh://-oProxyCommand=id@host/a",
            "-oProxyCommand=id@host:a",
            "git@-oProxyCommand=id:a",
            "git://git.example/a.git",
            "file://relative",
            "https://git.example/a b",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
