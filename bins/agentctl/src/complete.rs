//! Completion of session ids from the live daemon.

use crate::cli::Global;
use crate::dial::{Dial, connect};
use crate::environment::Environment;
use agentd_protocol::{ListParams, Summary};
use clap_complete::CompletionCandidate;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// A shell that waits for a completion must not notice a daemon that is gone.
const DEADLINE: Duration = Duration::from_millis(400);

/// Completers are plain functions, so the socket waits for them here.
static SOCKET: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the socket of the environment for the completers (flags are not known to them).
pub(crate) fn remember(environment: &Environment) {
    if let Ok(dial) = Dial::choose(&Global::default(), environment) {
        let _ = SOCKET.set(dial.socket);
    }
}

/// The short ids and names of sessions that are not closed.
pub(crate) fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    live_sessions()
        .into_iter()
        .filter(|row| row.session.short().starts_with(&*typed))
        .map(|row| {
            let about = format!(
                "{} ({})",
                crate::render::one_line(&row.name, 40),
                row.status.state
            );
            CompletionCandidate::new(row.session.short()).help(Some(about.into()))
        })
        .collect()
}

fn live_sessions() -> Vec<Summary> {
    let Some(socket) = SOCKET.get() else {
        return Vec::new();
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    runtime.block_on(async {
        let ask = async {
            let client = connect(socket, DEADLINE).await.ok()?;
            client
                .list(&ListParams {
                    limit: 200,
                    ..ListParams::default()
                })
                .await
                .ok()
        };
        tokio::time::timeout(DEADLINE, ask)
            .await
            .ok()
            .flatten()
            .unwrap_or_default()
    })
}
