//! Named daemons: `agentctl/config.toml` in the user's configuration directory.

use crate::environment::Environment;
use crate::failure::Failure;
use agentd_client::Remote;
use agentd_protocol::{ClearToken, Fault, without_types};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file of a token or of certificates is far smaller.
const MAX_FILE: u64 = 1 << 20;

/// The file: `current = "NAME"` and `[contexts.NAME]` tables.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Contexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) contexts: BTreeMap<String, Address>,
}

/// Where a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Address {
    /// On this machine.
    Socket {
        /// Its control socket.
        socket: PathBuf,
    },
    /// On another machine.
    Web {
        /// Its HTTP address.
        url: String,
        /// The file that has the token. It is read at every connection and copied nowhere.
        token_file: PathBuf,
        /// Certificates of authorities that are trusted in addition to the system's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca_file: Option<PathBuf>,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { socket } => socket.display().fmt(f),
            Self::Web { url, .. } => f.write_str(url),
        }
    }
}

impl Address {
    /// The daemon on another machine, with the token; `None`: it is on this one.
    pub(crate) fn remote(&self) -> Result<Option<Remote>, Fault> {
        let Self::Web {
            url,
            token_file,
            ca_file,
        } = self
        else {
            return Ok(None);
        };
        let token = ClearToken::read(&read(token_file, "the token")?);
        if token.expose().is_empty() {
            let message = format!("the token file {} is empty", token_file.display());
            return Err(
                Fault::invalid("no_token", message).hint("put into it what `agentctl token create` printed")
            );
        }
        let authorities = ca_file
            .as_deref()
            .map(|file| read(file, "the certificates"))
            .transpose()?;
        Remote::new(url, token, authorities.as_deref().map(str::as_bytes)).map(Some)
    }
}

fn read(path: &Path, what: &str) -> Result<String, Fault> {
    let failed = |why: String| {
        let message = format!("cannot read {what} from {}: {why}", path.display());
        Fault::invalid("unreadable_file", message)
            .hint("`agentctl context ls -o wide` shows the files of each context")
    };
    match std::fs::metadata(path) {
        Ok(found) if found.len() > MAX_FILE => return Err(failed("it is too large".to_owned())),
        Ok(_) => {}
        Err(error) => return Err(failed(error.to_string())),
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

impl Contexts {
    fn file(environment: &Environment) -> Option<PathBuf> {
        let home = environment.config_home()?;
        Some(home.join("agentctl").join("config.toml"))
    }

    /// Reads the file; a missing one is empty.
    pub(crate) fn load(environment: &Environment) -> Result<Self, Failure> {
        let Some(path) = Self::file(environment) else {
            return Ok(Self::default());
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                Failure::invalid(
                    format!("{}: {}", path.display(), without_types(error.to_string().trim_end(), "a table")),
                    "it must contain `current = \"NAME\"` and tables such as `[contexts.NAME]` with `socket = \"PATH\"`, or \
                     with `url = \"https://HOST:7433\"` and `token_file = \"PATH\"`",
                )
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Failure::file(&path, &error)),
        }
    }

    /// Replaces the file; only the user can read it.
    pub(crate) fn save(&self, environment: &Environment) -> Result<(), Failure> {
        let path = Self::file(environment).ok_or_else(|| {
            Failure::invalid(
                "HOME is not set, so there is no place for contexts",
                "set HOME or XDG_CONFIG_HOME",
            )
        })?;
        let text = toml::to_string(self).map_err(|error| {
            Failure::invalid(
                format!("cannot write the contexts: {error}"),
                "give them other names",
            )
        })?;
        let write = || {
            let dir = path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            let draft = dir.join(format!(".config.toml.{}", std::process::id()));
            let _ = std::fs::remove_file(&draft);
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)
        };
        write().map_err(|error| Failure::unwritable(&path, &error))
    }

    /// The named context, or the current one; `None` if neither is set.
    pub(crate) fn address(&self, asked: Option<&str>) -> Result<Option<Address>, Failure> {
        let Some(name) = asked.or(self.current.as_deref()) else {
            return Ok(None);
        };
        self.known(name).map(|address| Some(address.clone()))
    }

    /// The context of this name.
    pub(crate) fn known(&self, name: &str) -> Result<&Address, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "to add one: agentctl context add NAME https://HOST:7433 --token-file FILE".to_owned()
            } else {
                format!("known contexts: {}", known.join(", "))
            };
            let fault = Fault::not_found("unknown_context", format!("unknown context {name:?}"));
            fault.hint(hint).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn socket(path: &str) -> Address {
        Address::Socket { socket: path.into() }
    }

    #[test]
    fn the_requested_or_current_context_is_used() {
        let file = "current = \"a\"\n[contexts.a]\nsocket = \"/a\"\n[contexts.b]\nsocket = \"/b\"\n";
        let contexts: Contexts = toml::from_str(file).unwrap();
        assert_eq!(contexts.address(None).unwrap(), Some(socket("/a")));
        assert_eq!(contexts.address(Some("b")).unwrap(), Some(socket("/b")));
        let fault = contexts.address(Some("c")).unwrap_err().fault();
        assert_eq!(
            (fault.class.exit_code(), fault.hint.unwrap().as_str()),
            (3, "known contexts: a, b")
        );
        assert_eq!(Contexts::default().address(None).unwrap(), None);
        for bad in [
            "sockets = 1",
            "[contexts.a]\nsocket = \"/a\"\nurl = \"https://h\"",
            "[contexts.a]\nurl = \"https://h\"",
        ] {
            assert!(toml::from_str::<Contexts>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn i8_contexts_are_private_and_contain_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("config");
        let variables = [("XDG_CONFIG_HOME".into(), home.clone().into_os_string())];
        let environment = Environment::new(variables, None);
        let token_file = dir.path().join("token");
        std::fs::write(&token_file, "agentd_clear\n").unwrap();
        let prod = Address::Web {
            url: "https://host:7433".to_owned(),
            token_file: token_file.clone(),
            ca_file: None,
        };
        let mut contexts = Contexts::load(&environment).unwrap();
        contexts.contexts.insert("prod".to_owned(), prod.clone());
        contexts.contexts.insert("lab".to_owned(), socket("/lab"));
        contexts.current = Some("prod".to_owned());
        contexts.save(&environment).unwrap();
        contexts.save(&environment).unwrap();
        assert_eq!(Contexts::load(&environment).unwrap(), contexts);
        let file = home.join("agentctl/config.toml");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!std::fs::read_to_string(&file).unwrap().contains("agentd_clear"));
        assert!(prod.remote().unwrap().is_some() && socket("/lab").remote().unwrap().is_none());
        std::fs::write(&token_file, " \n").unwrap();
        assert_eq!(prod.remote().unwrap_err().code, "no_token");
        std::fs::remove_file(&token_file).unwrap();
        assert_eq!(prod.remote().unwrap_err().code, "unreadable_file");
    }
}
