//! `demo`: `agentd --demo` in this terminal.

use crate::autostart::GET_AGENTD;
use crate::cli::DemoArgs;
use crate::ctx::Ctx;
use crate::dial::Chosen;
use crate::exit::Exit;
use crate::failure::Failure;
use agentd_protocol::Fault;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) async fn demo(ctx: &mut Ctx, args: &DemoArgs) -> Result<Exit, Failure> {
    let dial = ctx.dial()?;
    let runs = match dial.connect().await {
        Ok(_) => true,
        // Only the user's own local daemon is ours to start.
        Err(failure) if dial.chosen != Chosen::Local => return Err(failure),
        Err(_) => false,
    };
    let program = ctx.environment.find_program("agentd").ok_or_else(|| {
        Failure::Fault(Fault::unavailable("no_agentd", "`agentd` is not found").hint(GET_AGENTD))
    })?;
    let apart = if runs { Some(own_place()?) } else { None };
    ctx.out.talk(&format!(
        "running {} --demo {} in this terminal",
        program.display(),
        args.sessions
    ));
    if let Some(place) = &apart {
        let socket = place.join("agentd.sock");
        ctx.out.talk(&format!(
            "a daemon already runs, so the demo has its own in {}; reach it with --socket {}",
            place.display(),
            socket.display()
        ));
    }
    Err(become_demo(
        &program,
        args.sessions,
        &dial.socket,
        apart.as_deref(),
    ))
}

/// A directory for a demo beside a daemon that runs.
fn own_place() -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt as _;
    let place = std::env::temp_dir().join(format!("agentd-demo-{}", std::process::id()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&place)
        .map_err(|error| Failure::file(&place, &error))?;
    Ok(place)
}

/// Replaces this process by the daemon; comes back only when that fails.
#[expect(
    clippy::disallowed_methods,
    reason = "the demo is the daemon itself, in this terminal"
)]
fn become_demo(program: &Path, sessions: u16, socket: &Path, apart: Option<&Path>) -> Failure {
    let mut command = Command::new(program);
    command.arg("--demo").arg(sessions.to_string());
    match apart {
        Some(place) => command
            .arg("--data-dir")
            .arg(place)
            .arg("--socket")
            .arg(place.join("agentd.sock")),
        None => command.arg("--socket").arg(socket),
    };
    let error = command.exec();
    let message = format!("cannot start {}: {error}", program.display());
    Failure::Fault(Fault::unavailable("no_agentd", message).hint(GET_AGENTD))
}
