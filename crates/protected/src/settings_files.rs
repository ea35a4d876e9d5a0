//! Settings files of toolchains that may hold credentials: `.gitconfig`, cargo's `config.toml`.
//!
//! Commands may read them if nothing in them looks like a secret. A file that cannot be checked is not readable.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The longest settings file to check.
const LONGEST: u64 = 256 << 10;
/// The files, relative to the home directory.
pub const SETTINGS_FILES: [&str; 3] = [".cargo/config.toml", ".config/git/config", ".gitconfig"];
/// Parts of keys and values that indicate secrets, in lower case.
const SECRET: [&str; 15] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "extraheader",
    "authorization",
    "smtppass",
    "oauth",
    "bearer",
    "apikey",
    "api_key",
    "api-key",
    "private_key",
    "privatekey",
];
/// Prefixes of the tokens of well-known services.
const TOKENS: [&str; 9] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "akia",
    "eyj",
];

/// Whether to hide a settings file from commands: it seems to contain a secret, or cannot be checked.
#[must_use]
pub fn holds_secret(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    if file.take(LONGEST + 1).read_to_end(&mut bytes).is_err() {
        return true;
    }
    let long = u64::try_from(bytes.len()).is_ok_and(|length| length > LONGEST);
    long || std::str::from_utf8(&bytes).map_or(true, |text| text.lines().any(is_secret_line))
}

/// Whether a line contains a secret: by its words, or by a user in front of a URL's host.
#[must_use]
pub fn is_secret_line(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    if line.starts_with(['#', ';']) && !TOKENS.iter().any(|token| line.contains(token)) {
        return false;
    }
    let user = line.split("://").skip(1).any(|rest| {
        let end = rest.find(['/', '"', '\'', ' ']).unwrap_or(rest.len());
        rest.get(..end).is_some_and(|place| place.contains('@'))
    });
    // The user in `ssh://git@host` is no secret.
    let plain = line.contains("://git@") && line.matches('@').count() == 1;
    (user && !plain) || SECRET.iter().chain(&TOKENS).any(|word| line.contains(word))
}

/// The settings files below a home directory that commands must not read.
#[must_use]
pub fn secret_settings(home: &Path) -> Vec<PathBuf> {
    let files = SETTINGS_FILES.iter().map(|name| home.join(name));
    files.filter(|path| holds_secret(path)).collect()
}
