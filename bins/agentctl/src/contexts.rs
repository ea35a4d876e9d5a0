//! Named daemons: `agentctl/config.toml` in the user's configuration directory.

use crate::environment::Environment;
use crate::failure::Failure;
use agentd_protocol::Fault;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file: `current = "NAME"` and `[contexts.NAME]` tables.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Contexts {
    current: Option<String>,
    contexts: BTreeMap<String, Context>,
}

/// One daemon.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    /// Its control socket.
    socket: PathBuf,
}

impl Contexts {
    /// Reads the file; a missing one is empty.
    pub(crate) fn load(environment: &Environment) -> Result<Self, Failure> {
        let Some(path) = environment
            .config_home()
            .map(|home| home.join("agentctl").join("config.toml"))
        else {
            return Ok(Self::default());
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                Failure::invalid(
                    format!("{}: {}", path.display(), error.to_string().trim_end()),
                    "it must contain `current = \"NAME\"` and tables such as `[contexts.NAME]` with `socket = \"PATH\"`",
                )
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Failure::file(&path, &error)),
        }
    }

    /// The socket of the named context, or of the current one; `None` if neither is set.
    pub(crate) fn socket(&self, asked: Option<&str>) -> Result<Option<PathBuf>, Failure> {
        let Some(name) = asked.or(self.current.as_deref()) else {
            return Ok(None);
        };
        match self.contexts.get(name) {
            Some(context) => Ok(Some(context.socket.clone())),
            None => {
                let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
                let hint = if known.is_empty() {
                    "add `[contexts.NAME]` with `socket = \"PATH\"` to ~/.config/agentctl/config.toml"
                        .to_owned()
                } else {
                    format!("known contexts: {}", known.join(", "))
                };
                Err(
                    Fault::not_found("unknown_context", format!("unknown context {name:?}"))
                        .hint(hint)
                        .into(),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_asked_for_or_current() {
        let file = "current = \"a\"\n[contexts.a]\nsocket = \"/a\"\n[contexts.b]\nsocket = \"/b\"\n";
        let contexts: Contexts = toml::from_str(file).unwrap();
        assert_eq!(contexts.socket(None).unwrap(), Some("/a".into()));
        assert_eq!(contexts.socket(Some("b")).unwrap(), Some("/b".into()));
        let fault = contexts.socket(Some("c")).unwrap_err().fault();
        assert_eq!(
            (fault.class.exit_code(), fault.hint.unwrap().as_str()),
            (3, "known contexts: a, b")
        );
        assert_eq!(Contexts::default().socket(None).unwrap(), None);
        assert!(toml::from_str::<Contexts>("sockets = 1").is_err());
    }
}
