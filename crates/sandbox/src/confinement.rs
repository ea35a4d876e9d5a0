//! The access rights of a confined warden and its commands.

use crate::annex::Annex;
use crate::environment::Environment;
use crate::hidden::Hidden;
use crate::history::DeniedHistory;
use agentd_protected::{ProtectedPaths, SETTINGS_FILES, holds_secret};
use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::Builder;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The sandbox around one session's commands. They write below the working directory and a private temporary directory, and
/// nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The level of the sandbox.
    pub level: SandboxLevel,
    /// The session's temporary directory; created if missing.
    pub temp: PathBuf,
    /// The directories that may be read and run apart from these two: [`readable`].
    pub read: Vec<PathBuf>,
    /// What creates the namespaces of an isolated session.
    #[serde(default)]
    pub builder: Builder,
    /// What commands must not read in the working directory. Only namespaces can hide it.
    #[serde(skip)]
    pub hidden: Hidden,
    /// Which paths of the working directory commands must not write; those that git's configuration names are added later.
    pub protected: ProtectedPaths,
    /// Whether the warden performs the calls that change names and modes, and refuses protected ones. False where the
    /// kernel cannot pass calls on: then only mounts protect what already exists.
    pub broker: bool,
    /// The directory of the workspaces, which may need more than their trees.
    #[serde(skip)]
    pub workspaces: Option<PathBuf>,
    /// What the workspace needs beyond its tree; found when the warden starts.
    #[serde(default)]
    pub annex: Annex,
    /// Which object stores commands must not read either; found when the warden starts.
    #[serde(skip)]
    pub history: DeniedHistory,
    /// The identity of the daemon's network namespace; found when the warden starts.
    #[serde(default)]
    pub network_outside: Option<(u64, u64)>,
}

impl Confinement {
    /// The default confinement of a level.
    #[must_use]
    pub fn new(level: SandboxLevel, temp: PathBuf, read: Vec<PathBuf>) -> Self {
        Self {
            level,
            temp,
            read,
            builder: Builder::default(),
            hidden: Hidden::default(),
            protected: ProtectedPaths::default(),
            broker: true,
            workspaces: None,
            annex: Annex::default(),
            history: DeniedHistory::default(),
            network_outside: None,
        }
    }

    /// The temporary directory's path as commands see it.
    pub(crate) fn temp_inside(&self) -> &Path {
        match self.level {
            SandboxLevel::Isolated => Path::new("/tmp"),
            SandboxLevel::Confined | SandboxLevel::None => &self.temp,
        }
    }
}

/// Programs and what they need to start.
const PROGRAMS: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
];

/// The machine's settings that programs read and that hold no secrets.
const SETTINGS: [&str; 44] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "default/locale",
    "dpkg",
    "environment.d",
    "fonts",
    "gai.conf",
    "gitattributes",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "issue",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/tls/certs",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// Below the home directory: toolchains. Settings that may hold credentials are in [`SETTINGS_FILES`].
const HOME: [&str; 9] = [
    ".cargo/bin",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/attributes",
    ".config/git/ignore",
    ".nvm/versions",
    ".pyenv",
    ".rustup",
];

/// Whether a path is of the system's programs and libraries, or tells where they are.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    let loader = path.to_str().is_some_and(|path| path.starts_with("/etc/ld.so."));
    loader || PROGRAMS.iter().any(|place| path.starts_with(place))
}

/// What commands may read and run: programs, the machine's settings without secrets, the toolchains on PATH, and what the
/// operator adds. Missing paths are dropped later.
#[must_use]
pub fn readable(environment: &Environment, extra: &[PathBuf]) -> Vec<PathBuf> {
    let value = |name: &str| {
        let mut found = environment.iter().filter(move |(key, _)| *key == name);
        found.next().map(|(_, value)| value)
    };
    let mut paths: Vec<PathBuf> = PROGRAMS.iter().map(PathBuf::from).collect();
    paths.extend(SETTINGS.iter().map(|name| Path::new("/etc").join(name)));
    let home = value("HOME").map(Path::new).filter(|home| home.is_absolute());
    paths.extend(
        home.iter()
            .flat_map(|home| HOME.iter().map(|name| home.join(name))),
    );
    let settings = home
        .iter()
        .flat_map(|home| SETTINGS_FILES.iter().map(|name| home.join(name)));
    paths.extend(settings.filter(|path| !holds_secret(path)));
    for entry in value("PATH").unwrap_or_default().split(':').map(Path::new) {
        paths.extend(toolchain(entry));
    }
    for (variable, parts) in [
        ("CARGO_HOME", &["bin", "config.toml", "git", "registry"][..]),
        ("RUSTUP_HOME", &[""][..]),
    ] {
        let root = value(variable).map(Path::new).filter(|root| root.is_absolute());
        paths.extend(
            root.iter()
                .flat_map(|root| parts.iter().map(|part| root.join(part)))
                .filter(|path| !path.ends_with("config.toml") || !holds_secret(path)),
        );
    }
    paths.extend(extra.iter().cloned());
    paths.retain(|path| path.is_absolute() && path.parent().is_some());
    paths.sort();
    paths.dedup();
    paths
}

/// A directory of programs, with the sibling directories that programs expect.
fn toolchain(entry: &Path) -> Vec<PathBuf> {
    if !entry.is_absolute() {
        return Vec::new();
    }
    let mut paths = vec![entry.to_owned()];
    if entry.ends_with("bin")
        && let Some(root) = entry.parent()
    {
        paths.extend(["include", "lib", "lib64", "libexec"].map(|name| root.join(name)));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_on_path_are_readable_and_credentials_beside_them_are_not() {
        let environment = Environment::default()
            .with("HOME", "/home/ana")
            .with("PATH", "/home/ana/.cargo/bin:/srv/go/bin:relative:/usr/bin")
            .with("CARGO_HOME", "/srv/cargo");
        let paths = readable(
            &environment,
            &["/data/models".into(), "not/absolute".into(), "/".into()],
        );
        for expected in [
            "/usr",
            "/etc/passwd",
            "/home/ana/.cargo/bin",
            "/home/ana/.rustup",
            "/srv/go/bin",
            "/srv/go/lib",
            "/srv/cargo/registry",
            "/data/models",
        ] {
            assert!(paths.contains(&PathBuf::from(expected)), "{expected} is missing");
        }
        let secrets = [
            "/home/ana/.cargo/credentials.toml",
            "/home/ana/.ssh/id_ed25519",
            "/home/ana/.config/git/credentials",
            "/etc/shadow",
            "/srv/cargo/credentials.toml",
        ];
        for secret in secrets.map(Path::new) {
            assert!(
                !paths.iter().any(|path| secret.starts_with(path)),
                "{secret:?} is readable"
            );
        }
        assert!(paths.iter().all(|path| path.is_absolute()));
    }
}
