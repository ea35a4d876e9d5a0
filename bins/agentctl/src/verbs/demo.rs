//! `demo`: runs `agentd --demo` in this terminal.

use crate::autostart::GET_AGENTD;
use crate::cli::DemoArgs;
use crate::ctx::Ctx;
use crate::dial::Chosen;
use crate::exit::Exit;
use crate::failure::Failure;
use agentd_protocol::Fault;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

pub(crate) async fn demo(ctx: &mut Ctx, args: &DemoArgs) -> Result<Exit, Failure> {
    let dial = ctx.dial()?;
    if dial.chosen != Chosen::Local {
        // A person who names a daemon wants that one, and this program does not start it.
        dial.connect().await?;
    }
    let program = ctx.environment.find_program("agentd").ok_or_else(|| {
        Failure::Fault(Fault::unavailable("no_agentd", "`agentd` was not found").hint(GET_AGENTD))
    })?;
    ctx.out.status(&format!(
        "starting {} --demo {} in this terminal, with a temporary directory and its own socket; Ctrl-C stops it",
        program.display(),
        args.sessions
    ));
    Err(become_demo(&program, args))
}

/// Replaces this process with the daemon; returns only if that fails.
#[expect(
    clippy::disallowed_methods,
    reason = "the demo is the daemon itself, in this terminal"
)]
fn become_demo(program: &Path, args: &DemoArgs) -> Failure {
    let error = Command::new(program)
        .arg("--demo")
        .arg(args.sessions.to_string())
        .args(args.fast.then_some("--fast"))
        .exec();
    let message = format!("cannot start {}: {error}", program.display());
    Failure::Fault(Fault::unavailable("no_agentd", message).hint(GET_AGENTD))
}
