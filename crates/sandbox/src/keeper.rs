//! The task that keeps a warden process: starts it, waits for its end, and cleans up behind it.

use crate::error::SandboxError;
use crate::processes::{kill_marked, signal};
use crate::slot::WardenSpec;
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use std::hash::{BuildHasher as _, RandomState};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a warden that was told to end may take.
const END_WITHIN: Duration = Duration::from_secs(15);
/// The variable that marks everything under a warden, so that it is found when the warden itself is killed.
const MARKER: &str = "AGENTD_UNDER";

/// Starts the process; the receiver turns true when it and all below it are gone.
#[expect(clippy::disallowed_methods, reason = "this is where wardens are started")]
pub(crate) async fn start(
    spec: &WardenSpec,
    socket: OwnedFd,
    closed: watch::Receiver<bool>,
) -> Result<watch::Receiver<bool>, SandboxError> {
    let marker = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let mut command = Command::new(&spec.exe);
    command
        .arg0("agentd-warden")
        .arg(crate::resident::WARDEN_ARG)
        .env_clear()
        .envs(spec.environment.iter())
        .env(MARKER, &marker)
        .current_dir(&spec.workdir)
        .stdin(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A missing directory and a missing program give the same error number; say which it is.
    if !tokio::fs::metadata(&spec.workdir)
        .await
        .is_ok_and(|found| found.is_dir())
    {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(SandboxError::Workdir {
            path: spec.workdir.clone(),
            source,
        });
    }
    let child = command.spawn().map_err(|source| SandboxError::WardenStart {
        exe: spec.exe.clone(),
        source,
    })?;
    // The command holds the warden's end of the socket; as long as that is open here, its end would not be seen.
    drop(command);
    let (gone_tx, gone) = watch::channel(false);
    tokio::spawn(async move {
        keep(child, closed, format!("{MARKER}={marker}")).await;
        gone_tx.send_replace(true);
    });
    Ok(gone)
}

async fn keep(mut child: Child, mut closed: watch::Receiver<bool>, marker: String) {
    let told = async { drop(closed.wait_for(|closed| *closed).await) };
    let ended = tokio::select! {
        ended = child.wait() => ended.ok(),
        () = told => {
            // A tool may have stopped its warden; it must go on to be able to end.
            if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
                signal(pid, Signal::CONT);
            }
            timeout(END_WITHIN, child.wait()).await.ok().and_then(Result::ok)
        }
    };
    if ended.is_some_and(|status| ExitStatus::success(&status)) {
        return;
    }
    let _ = child.start_kill();
    let _ = timeout(END_WITHIN, child.wait()).await;
    // It did not end by its own will, so it did not clean up.
    let _ = tokio::task::spawn_blocking(move || kill_marked(&marker)).await;
}
