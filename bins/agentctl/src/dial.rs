//! Chooses the daemon and connects to it.

use crate::autostart;
use crate::cli::Global;
use crate::contexts::{Address, Contexts};
use crate::environment::Environment;
use crate::failure::Failure;
use agentd_client::{Client, ClientError, ConnectOptions};
use agentd_protocol::Fault;
use std::time::Duration;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// How the socket was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The user's own local daemon; it may be started if it is not running.
    Local,
    /// The user's own local daemon, but `AGENTCTL_AUTOSTART=0`.
    LocalNoStart,
    /// Named by a flag, a variable or a context: not started by this program.
    Named,
}

/// The daemon's address.
#[derive(Debug, Clone)]
pub(crate) struct Dial {
    pub(crate) address: Address,
    pub(crate) chosen: Chosen,
}

impl Dial {
    /// The daemon: `--socket`, else `--context`, else `AGENTD_SOCKET`, else a current context, else the default.
    pub(crate) fn choose(global: &Global, environment: &Environment) -> Result<Self, Failure> {
        let named = |address| Self {
            address,
            chosen: Chosen::Named,
        };
        if let Some(socket) = global.socket.clone() {
            return Ok(named(Address::Socket { socket }));
        }
        let context = global.context.as_deref();
        if let (None, Some(socket)) = (context, environment.path("AGENTD_SOCKET")) {
            return Ok(named(Address::Socket { socket }));
        }
        let context = context.or_else(|| environment.get("AGENTCTL_CONTEXT"));
        if let Some(address) = Contexts::load(environment)?.address(context)? {
            return Ok(named(address));
        }
        let socket = environment.default_socket().ok_or_else(|| {
            Fault::invalid(
                "no_socket",
                "neither XDG_RUNTIME_DIR nor HOME is set, so there is no default socket",
            )
            .hint("specify the daemon's socket with --socket PATH")
        })?;
        let off = environment.get("AGENTCTL_AUTOSTART") == Some("0");
        Ok(Self {
            address: Address::Socket { socket },
            chosen: if off { Chosen::LocalNoStart } else { Chosen::Local },
        })
    }

    /// Connects. If the daemon is not running, the fault says how to get one.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.try_connect().await.map_err(|error| self.explain(error))
    }

    /// Connects; starts a local daemon that is not running.
    pub(crate) async fn connect_or_start(
        &self,
        environment: &Environment,
        mut say: impl FnMut(&str),
    ) -> Result<Client, Failure> {
        match (self.try_connect().await, &self.address) {
            (Err(ClientError::Unreachable { .. }), Address::Socket { socket })
                if self.chosen == Chosen::Local =>
            {
                autostart::start(socket, environment, &mut say).await
            }
            (outcome, _) => outcome.map_err(|error| self.explain(error)),
        }
    }

    pub(crate) async fn try_connect(&self) -> Result<Client, ClientError> {
        connect(&self.address, CONNECT_DEADLINE).await
    }

    fn explain(&self, error: ClientError) -> Failure {
        if !matches!(error, ClientError::Unreachable { .. }) {
            return error.into();
        }
        let hint = match self.chosen {
            Chosen::Named if matches!(self.address, Address::Web { .. }) => {
                "check the address (`agentctl context ls`) and whether agentd listens there ([http] in its configuration)"
            }
            Chosen::Named => "check the socket's path and whether its daemon is running: `agentctl doctor`",
            Chosen::LocalNoStart => {
                "start it with `agentd`; AGENTCTL_AUTOSTART=0 prevents agentctl from starting it"
            }
            Chosen::Local => "start it with `agentd`, or let `agentctl run \"TASK\"` start it",
        };
        Fault::unavailable("daemon_unreachable", error.to_string())
            .hint(hint)
            .into()
    }
}

/// Connects to a daemon within a deadline.
pub(crate) async fn connect(address: &Address, deadline: Duration) -> Result<Client, ClientError> {
    let options = ConnectOptions {
        client: concat!("agentctl/", env!("CARGO_PKG_VERSION")).to_owned(),
        deadline,
    };
    match address {
        Address::Socket { socket } => Client::connect(socket, &options).await,
        Address::Web { .. } => match address.remote().map_err(ClientError::Refused)? {
            Some(remote) => Client::connect_remote(&remote, &options).await,
            None => Err(ClientError::Lost(
                "it is not the address of another machine".to_owned(),
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn choose(socket: Option<&str>, variables: &[(&str, &str)]) -> (PathBuf, Chosen) {
        let global = Global {
            socket: socket.map(PathBuf::from),
            ..Global::default()
        };
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let dial = Dial::choose(&global, &Environment::new(variables, None)).unwrap();
        (dial.address.to_string().into(), dial.chosen)
    }

    #[test]
    fn autostart_applies_only_to_the_default_socket() {
        let home = ("HOME", "/nowhere/ana");
        let local: PathBuf = "/nowhere/ana/.local/share/agentd/agentd.sock".into();
        assert_eq!(
            choose(Some("/s"), &[home, ("AGENTD_SOCKET", "/e")]),
            ("/s".into(), Chosen::Named)
        );
        assert_eq!(
            choose(None, &[home, ("AGENTD_SOCKET", "/e")]),
            ("/e".into(), Chosen::Named)
        );
        assert_eq!(choose(None, &[home]), (local.clone(), Chosen::Local));
        assert_eq!(
            choose(None, &[home, ("AGENTCTL_AUTOSTART", "0")]),
            (local, Chosen::LocalNoStart)
        );
    }

    #[test]
    fn a_context_names_a_socket() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentctl").join("config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "[contexts.lab]\nsocket = \"/lab.sock\"\n").unwrap();
        let home = dir.path().to_str().unwrap();
        let chosen = choose(
            None,
            &[
                ("XDG_CONFIG_HOME", home),
                ("HOME", home),
                ("AGENTCTL_CONTEXT", "lab"),
            ],
        );
        assert_eq!(chosen, ("/lab.sock".into(), Chosen::Named));
    }
}
