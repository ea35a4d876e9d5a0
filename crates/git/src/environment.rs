//! The variables that git gets.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What of the daemon's environment git needs.
#[derive(Debug, Clone)]
pub struct GitEnvironment {
    /// The daemon's own `PATH`.
    pub path: OsString,
    /// The daemon's home directory, for what reaches servers: keys, certificates, credential helpers.
    pub home: Option<OsString>,
    /// Other variables for what reaches servers, such as `SSH_AUTH_SOCK` and `HTTPS_PROXY`.
    pub remote: Vec<(String, OsString)>,
    /// The mark by which the next daemon finds processes of a daemon that was killed.
    pub mark: Option<(String, OsString)>,
}

impl Default for GitEnvironment {
    fn default() -> Self {
        Self {
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            home: None,
            remote: Vec::new(),
            mark: None,
        }
    }
}

/// The variables of every run.
const ALWAYS: [(&str, &str); 7] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

/// The variables of a run that reaches no server: no configuration but that of the repository.
const LOCAL: [(&str, &str); 4] = [
    ("HOME", "/nonexistent"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

impl GitEnvironment {
    /// The names of the variables that reach servers and need what they name.
    pub const REMOTE: [&'static str; 9] = [
        "SSH_AUTH_SOCK",
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "NO_PROXY",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];

    /// The program, with its path: to search for it in the variables that git gets, the standard library would fork the whole
    /// daemon, which takes milliseconds.
    /// `None`: it is not installed.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        let runs = |file: &PathBuf| {
            let about = fs::metadata(file);
            about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        };
        let mut places = env::split_paths(&self.path).map(|dir| dir.join("git"));
        places.find(|file| file.is_absolute() && runs(file))
    }

    /// The option that names the files that the person ignores everywhere.
    #[must_use]
    pub fn excludes(&self) -> String {
        let file = self
            .home
            .as_ref()
            .map(|home| Path::new(home).join(".config/git/ignore"));
        let file = file
            .filter(|file| file.is_file())
            .and_then(|file| file.to_str().map(str::to_owned));
        format!("core.excludesFile={}", file.as_deref().unwrap_or("/dev/null"))
    }

    /// All variables of a run; `protocol` is the one by which it may reach a server.
    pub(crate) fn variables(&self, protocol: Option<&str>) -> Vec<(OsString, OsString)> {
        let fixed = |(name, value): (&str, &str)| (name.into(), value.into());
        let mut all: Vec<(OsString, OsString)> = ALWAYS.map(fixed).into();
        all.push(("PATH".into(), self.path.clone()));
        let mark = self.mark.iter();
        all.extend(mark.map(|(name, value)| (name.into(), value.clone())));
        match protocol {
            None => all.extend(LOCAL.map(fixed)),
            Some(protocol) => {
                all.push(("GIT_ALLOW_PROTOCOL".into(), protocol.into()));
                all.push(("GIT_SSH_COMMAND".into(), "ssh -o BatchMode=yes".into()));
                all.extend(self.home.clone().map(|home| ("HOME".into(), home)));
                let more = self.remote.iter();
                all.extend(more.map(|(name, value)| (name.into(), value.clone())));
            }
        }
        all
    }
}
