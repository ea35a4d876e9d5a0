//! `migrate`: runs `agentd migrate`, which contains the clients of both databases.

use crate::autostart::GET_AGENTD;
use crate::cli::{Format, MigrateArgs};
use crate::ctx::Ctx;
use crate::failure::Failure;
use agentd_protocol::Fault;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Replaces this process; returns only if that fails.
#[expect(
    clippy::disallowed_methods,
    reason = "the daemon's program copies its own stores, in this terminal"
)]
pub(crate) fn migrate(ctx: &Ctx, args: &MigrateArgs) -> Failure {
    let Some(program) = ctx.environment.find_program("agentd") else {
        return Failure::Fault(Fault::unavailable("no_agentd", "`agentd` was not found").hint(GET_AGENTD));
    };
    let mut command = Command::new(&program);
    command.args(["migrate", &args.from, &args.to]);
    command.args(args.dry_run.then_some("--dry-run"));
    command.args(args.verify.then_some("--verify"));
    if let Some(node) = &args.node {
        command.args(["--node", node]);
    }
    // JSON is valid YAML.
    let as_json = matches!(
        ctx.global.output,
        Some(Format::Json | Format::Jsonl | Format::Yaml)
    );
    command.args(as_json.then_some("--json"));
    for (flag, path) in [("--config", &args.config), ("--data-dir", &args.data_dir)] {
        if let Some(path) = path {
            command.arg(flag).arg(path);
        }
    }
    let error = command.exec();
    let message = format!("cannot start {}: {error}", program.display());
    Failure::Fault(Fault::unavailable("no_agentd", message).hint(GET_AGENTD))
}
