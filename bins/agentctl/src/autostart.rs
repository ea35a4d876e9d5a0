//! Starts the user's own daemon in the background.

use crate::contexts::Address;
use crate::dial::connect;
use crate::environment::Environment;
use crate::failure::Failure;
use agentd_client::Client;
use agentd_protocol::Fault;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::time::Instant;

const READY_DEADLINE: Duration = Duration::from_secs(20);
const KNOCK_EVERY: Duration = Duration::from_millis(50);
/// If `agentd` exits at once, another instance may be starting up; keep trying to connect for this long.
const GRACE: Duration = Duration::from_secs(2);

/// How to get `agentd`, for people who have only `agentctl`.
pub(crate) const GET_AGENTD: &str =
    "put `agentd` next to `agentctl` or on PATH; in the source tree, run `cargo build -p agentd`";

/// Starts `agentd` in a process group of its own and waits until it answers.
pub(crate) async fn start(
    socket: &Path,
    environment: &Environment,
    say: &mut impl FnMut(&str),
) -> Result<Client, Failure> {
    let program = environment.find_program("agentd").ok_or_else(|| {
        Fault::unavailable(
            "no_agentd",
            format!(
                "no daemon answers on {}, and `agentd` was not found",
                socket.display()
            ),
        )
        .hint(GET_AGENTD)
    })?;
    let log = log_file(environment)?;
    let address = Address::Socket {
        socket: socket.to_owned(),
    };
    let mut child = background(&program, socket, &log)?;
    let (begun, mut ended) = (Instant::now(), None);
    loop {
        if let Ok(client) = connect(&address, Duration::from_secs(2)).await {
            say(&format!(
                "started {} in the background (socket {})",
                program.display(),
                socket.display()
            ));
            say("stop it with `agentctl daemon stop`");
            return Ok(client);
        }
        if ended.is_none() {
            ended = child
                .try_wait()
                .ok()
                .flatten()
                .map(|status| (status, Instant::now()));
        }
        match ended {
            Some((status, at)) if at.elapsed() > GRACE => {
                return Err(gave_up(&format!("agentd exited immediately ({status})"), &log));
            }
            _ if begun.elapsed() > READY_DEADLINE => {
                let what = format!("agentd did not answer within {} s", READY_DEADLINE.as_secs());
                return Err(gave_up(&what, &log));
            }
            _ => tokio::time::sleep(KNOCK_EVERY).await,
        }
    }
}

fn gave_up(what: &str, log: &Path) -> Failure {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    let said: Vec<&str> = last.into_iter().rev().collect();
    let message = if said.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {}", said.join("; "))
    };
    let hint = format!(
        "see its output in {}, or run `agentd` in a terminal",
        log.display()
    );
    Failure::Fault(Fault::unavailable("agentd_failed", message).hint(hint))
}

/// The log file for the output of a daemon that has no terminal.
fn log_file(environment: &Environment) -> Result<PathBuf, Failure> {
    let dir = environment.data_dir().ok_or_else(|| {
        Failure::invalid(
            "HOME is not set, so agentd has no place for its data",
            "set HOME or XDG_DATA_HOME",
        )
    })?;
    let logs = dir.join("logs");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&logs)
        .map_err(|error| Failure::file(&logs, &error))?;
    Ok(logs.join("start.log"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the daemon is started here, and nothing else is"
)]
fn background(program: &Path, socket: &Path, log: &Path) -> Result<std::process::Child, Failure> {
    let file = |append: bool| -> Result<File, Failure> {
        OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(!append)
            .append(append)
            .mode(0o600)
            .open(log)
            .map_err(|error| Failure::file(log, &error))
    };
    drop(file(false)?);
    Command::new(program)
        .arg("--socket")
        .arg(socket)
        .stdin(Stdio::null())
        .stdout(file(true)?)
        .stderr(file(true)?)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(|error| {
            let message = format!("cannot start {}: {error}", program.display());
            Failure::Fault(Fault::unavailable("no_agentd", message).hint(GET_AGENTD))
        })
}
