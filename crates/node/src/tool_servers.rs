//! The pool of tool servers, from the settings.

use crate::error::NodeError;
use agentd_mcp::{
    Bounds, Command, Limits, Pool, Scope, ServerSpec, ServerState, ServerStatus, Transport, Walls,
    WardenLaunch,
};
use agentd_protocol::ServerRow;
use agentd_settings::{McpConfig, McpSandbox, McpScope, McpServer};
use agentd_tool_executor::ExecutorArgs;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A pool of the configured servers; `None` if there are none.
pub(crate) fn pool(
    config: &McpConfig,
    environment: &BTreeMap<String, String>,
    executor: &ExecutorArgs,
) -> Result<Option<Pool>, NodeError> {
    if config.servers.is_empty() {
        return Ok(None);
    }
    let launch = WardenLaunch::new(
        executor.exe.clone(),
        executor.environment.clone(),
        executor.sandboxing.clone(),
    );
    let specs = config
        .servers
        .iter()
        .map(|(name, server)| spec(name, server, environment))
        .collect();
    let bounds = Bounds {
        servers: usize::try_from(config.max_running).unwrap_or(usize::MAX),
        patience: config.ready_within,
    };
    let unusable = |error: agentd_mcp::McpError| NodeError::Unsupported(error.to_string());
    let http = agentd_mcp::http_client().map_err(unusable)?;
    Pool::bounded(specs, Arc::new(launch), http, bounds)
        .map(Some)
        .map_err(unusable)
}

fn spec(name: &str, server: &McpServer, environment: &BTreeMap<String, String>) -> ServerSpec {
    let mut lacks = None;
    let mut value = |variable: &String| {
        let found = environment.get(variable).filter(|value| !value.is_empty());
        if let Some(value) = found {
            conceal(value);
        } else {
            lacks.get_or_insert_with(|| {
                format!("the environment variable {variable} is not set for the daemon")
            });
        }
        found.cloned().unwrap_or_default()
    };
    let transport = if server.url.is_empty() {
        let env = server.env.iter().map(|name| (name.clone(), value(name)));
        let env = env.collect();
        Transport::Stdio(Command {
            env,
            walls: match server.sandbox {
                McpSandbox::Commands => Walls::Node,
                McpSandbox::None => Walls::None,
            },
            read: server.read.iter().map(PathBuf::from).collect(),
            ..Command::new(server.command.clone())
        })
    } else {
        let headers = server.headers.iter();
        Transport::Http {
            url: server.url.clone(),
            headers: headers.map(|(name, from)| (name.clone(), value(from))).collect(),
        }
    };
    ServerSpec {
        scope: match server.scope {
            McpScope::Session => Scope::Workdir,
            McpScope::Shared => Scope::Shared,
        },
        effect: server.effect,
        effects: server.effects.clone(),
        only: (!server.allow.is_empty()).then(|| server.allow.iter().cloned().collect()),
        without: server.deny.iter().cloned().collect(),
        limits: Limits {
            start: server.start_timeout,
            call: server.call_timeout,
            idle: server.idle_timeout,
        },
        lacks,
        ..ServerSpec::new(name, transport)
    }
}

/// Hides a value that a server receives, usually a credential. Paths are not secret, and appear in too many texts.
fn conceal(value: &str) {
    if value.starts_with('/') {
        return;
    }
    agentd_text::register_secret(value);
    // In `Bearer x`, the secret is `x`.
    if let Some((_, credential)) = value.split_once(' ') {
        agentd_text::register_secret(credential);
    }
}

/// A server as shown to users.
pub(crate) fn row(status: ServerStatus) -> ServerRow {
    ServerRow {
        server: status.server,
        workdir: status.workdir.map(|path| path.display().to_string()),
        state: match status.state {
            ServerState::Stopped => "stopped",
            ServerState::Starting => "starting",
            ServerState::Running => "running",
            ServerState::Failed => "failed",
        }
        .to_owned(),
        busy: u64::try_from(status.busy).unwrap_or(u64::MAX),
        tools: u64::try_from(status.tools).unwrap_or(u64::MAX),
        restarts: status.restarts,
        last_error: status.last_error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: &McpServer) -> ServerSpec {
        let environment = BTreeMap::from([("TOKEN".to_owned(), "Bearer tool-server-canary".to_owned())]);
        spec("a", server, &environment)
    }

    #[test]
    fn i8_values_for_a_server_are_looked_up_and_never_shown() {
        let spec = of(&McpServer {
            url: "https://host/mcp".to_owned(),
            headers: BTreeMap::from([("Authorization".to_owned(), "TOKEN".to_owned())]),
            ..McpServer::default()
        });
        let expected = Transport::Http {
            url: "https://host/mcp".to_owned(),
            headers: BTreeMap::from([("Authorization".to_owned(), "Bearer tool-server-canary".to_owned())]),
        };
        assert_eq!((&spec.transport, &spec.lacks), (&expected, &None));
        assert!(!format!("{spec:?}").contains("canary"));
        let shown = agentd_text::redact_known("it said tool-server-canary");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_server_without_its_variable_is_not_used() {
        let spec = of(&McpServer {
            command: vec!["x".to_owned()],
            env: vec!["TOKEN".to_owned(), "OTHER".to_owned()],
            ..McpServer::default()
        });
        let lacks = "the environment variable OTHER is not set for the daemon";
        assert_eq!(spec.lacks.as_deref(), Some(lacks));
    }
}
