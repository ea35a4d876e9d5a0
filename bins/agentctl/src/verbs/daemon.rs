//! `daemon` and `version`: status, reload, drain and stop of the daemon, and the versions.

use crate::cli::DaemonVerb;
use crate::clock::now;
use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{Paint, age, one_line};
use agentd_client::Client;
use agentd_protocol::{LogParams, LogTail, NodeStatus, PROTOCOL_VERSIONS, Reloaded, Timestamp};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long a stopping daemon may take to exit before this program reports that it has not.
const GONE_DEADLINE: Duration = Duration::from_secs(10);
/// How long a draining daemon may take, which may wait for running calls.
const DRAINED_DEADLINE: Duration = Duration::from_secs(60);
/// Characters of a log line that are shown.
const LOG_LINE: usize = 4_000;
/// The most keys of a list that a person is shown.
const KEYS_SHOWN: usize = 12;
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn daemon(ctx: &mut Ctx, verb: DaemonVerb) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    match verb {
        DaemonVerb::Status => {
            let status = client.status().await?;
            let name = status.node.clone();
            ctx.out
                .object(&status, &name, |paint| status_text(&status, paint, now()))?;
        }
        DaemonVerb::Log { lines } => {
            let tail = client.log(&LogParams { lines: Some(lines) }).await?;
            ctx.out.object(&tail, "", |_| log_text(&tail))?;
        }
        DaemonVerb::Reload => {
            let reloaded = client.reload().await?;
            ctx.out.object(&reloaded, &reloaded.changed.join("\n"), |_| {
                reload_text(&reloaded)
            })?;
        }
        DaemonVerb::Stop => {
            let process = process(ctx, &client).await?;
            client.stop().await?;
            gone(ctx, &client, process, (GONE_DEADLINE, "stopped")).await?;
        }
        DaemonVerb::Drain => {
            let process = process(ctx, &client).await?;
            client.drain().await?;
            ctx.out
                .status("draining: running calls may finish, new work is refused");
            gone(ctx, &client, process, (DRAINED_DEADLINE, "drained and stopped")).await?;
        }
    }
    Ok(Exit::OK)
}

/// Log lines quote untrusted text, so their control characters are made visible.
fn log_text(tail: &LogTail) -> String {
    let lines = tail.lines.iter();
    lines.map(|line| one_line(line, LOG_LINE) + "\n").collect()
}

fn reload_text(done: &Reloaded) -> String {
    let line = |what: &str, keys: &[String]| match keys {
        [] => String::new(),
        keys => format!("{what}: {}\n", one_line(&few(keys), 2_000)),
    };
    let tried = match done.tried {
        0 => String::new(),
        1 => "retrying 1 session that waited for a credential\n".to_owned(),
        several => format!("retrying {several} sessions that waited for a credential\n"),
    };
    let changed = match done.changed.as_slice() {
        [] => "reloaded; no setting changed that takes effect without a restart\n".to_owned(),
        keys => line("reloaded", keys),
    };
    let kept = line(
        "removed models, kept until the turns that use them end",
        &done.kept,
    );
    format!("{changed}{}{kept}{tried}", line("needs a restart", &done.restart))
}

/// A few keys, and how many more there are.
fn few(keys: &[String]) -> String {
    let (shown, more) = keys.split_at(keys.len().min(KEYS_SHOWN));
    let shown = shown.join(", ");
    match more.len() {
        0 => shown,
        more => format!("{shown} and {more} more (-o json lists all)"),
    }
}

/// The directory of the daemon's process in `/proc`, if the daemon runs on this machine.
async fn process(ctx: &Ctx, client: &Client) -> Result<Option<PathBuf>, Failure> {
    let pid = client.status().await?.pid;
    let here = matches!(ctx.dial()?.address, Address::Socket { .. });
    let directory = PathBuf::from(format!("/proc/{pid}"));
    Ok(Some(directory).filter(|directory| here && directory.exists()))
}

/// Waits until the daemon has closed the connection, and on this machine until its process has ended: then another daemon
/// can use the data directory.
async fn gone(
    ctx: &mut Ctx,
    client: &Client,
    process: Option<PathBuf>,
    (within, word): (Duration, &str),
) -> Result<(), Failure> {
    let begun = Instant::now();
    let ended = |process: &PathBuf| !process.join("exe").exists();
    while client.lost().is_none() || !process.as_ref().is_none_or(ended) {
        if begun.elapsed() > within {
            ctx.out.status(&format!(
                "the daemon is still stopping after {} s",
                within.as_secs()
            ));
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    ctx.out.status(word);
    Ok(())
}

fn status_text(status: &NodeStatus, paint: Paint, now: Timestamp) -> String {
    let rows = [
        ("node", status.node.clone()),
        ("version", status.version.clone()),
        (
            "process",
            format!("{}, up {}", status.pid, age(status.started_at, now)),
        ),
        (
            "state",
            if status.draining { "draining" } else { "running" }.to_owned(),
        ),
        ("socket", status.socket.clone()),
        ("http", status.http.clone()),
        ("store", status.store.clone()),
        ("data", status.data_dir.clone()),
        ("model", status.model.clone()),
        (
            "sessions",
            format!("{} stored, {} in memory", status.sessions, status.hot),
        ),
        ("clients", status.connections.to_string()),
        ("restarts", status.restarts.to_string()),
    ];
    rows.iter()
        .map(|(key, value)| format!("{} {}\n", paint.dim(&format!("{key:<9}")), one_line(value, 300)))
        .collect()
}

/// The versions of client and daemon.
#[derive(Debug, Serialize)]
struct Versions {
    client: Side,
    daemon: Option<Side>,
}

/// The versions of one side.
#[derive(Debug, Serialize)]
struct Side {
    version: String,
    protocol: String,
}

pub(crate) async fn version(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let ours = Side {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: format!("{}-{}", PROTOCOL_VERSIONS.0, PROTOCOL_VERSIONS.1),
    };
    let theirs = match ctx.connect().await {
        Ok(client) => Some(Side {
            version: client.status().await?.version,
            protocol: client.welcome().protocol.to_string(),
        }),
        // `version` also works without a daemon.
        Err(Failure::Fault(fault)) if fault.code == "daemon_unreachable" => None,
        Err(failure) => return Err(failure),
    };
    let versions = Versions {
        client: ours,
        daemon: theirs,
    };
    ctx.out.object(&versions, env!("CARGO_PKG_VERSION"), |_| {
        let side =
            |name: &str, side: &Side| format!("{name} {} (protocol {})\n", side.version, side.protocol);
        let daemon = versions.daemon.as_ref();
        let daemon = daemon.map_or_else(|| "agentd   not running\n".to_owned(), |it| side("agentd  ", it));
        format!("{}{daemon}", side("agentctl", &versions.client))
    })?;
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_keys_is_cut_and_what_stays_is_said() {
        let keys = |count: usize| (0..count).map(|n| format!("k{n}")).collect::<Vec<_>>();
        assert_eq!(few(&keys(12)).matches('k').count(), 12);
        assert!(few(&keys(112)).ends_with("k11 and 100 more (-o json lists all)"));
        let done = Reloaded {
            files: Vec::new(),
            changed: vec!["model.default".to_owned()],
            restart: vec!["providers.mine".to_owned()],
            kept: vec!["local".to_owned()],
            tried: 0,
        };
        assert_eq!(
            reload_text(&done),
            "reloaded: model.default\nneeds a restart: providers.mine\n\
             removed models, kept until the turns that use them end: local\n"
        );
    }
}
