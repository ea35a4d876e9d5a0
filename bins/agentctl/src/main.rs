//! `agentctl`: the command that controls `agentd`.
//!
//! Parsing (`cli`) is separate from execution (`verbs`); `render`, which is pure, formats what is shown. stdout carries
//! data, stderr carries messages. No session output reaches a terminal without passing `render::clean`.
//! Invariant I2 on the client side: `follow` continues after the last `seq` it has seen, even over a lost connection.
//!
//! Flow: arguments -> `Cli` -> `verbs::perform` -> `agentd_client` -> `Output` -> exit code.

mod autostart;
mod cli;
mod clock;
mod complete;
mod contexts;
mod ctx;
mod dial;
mod environment;
mod exit;
mod failure;
mod follow;
mod fullscreen;
mod images;
mod interactive;
mod output;
mod recorded;
mod render;
mod tool_program;
mod values;
mod verbs;

use crate::cli::{Cli, Format};
use crate::ctx::Ctx;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Terminal};
use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let environment = Environment::new(std::env::vars_os(), std::env::current_exe().ok());
    if environment.get("COMPLETE").is_some() {
        complete::remember(&environment, std::env::args_os());
    }
    match CompleteEnv::with_factory(Cli::command).try_complete(std::env::args_os(), None) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return refused(&error, &environment, &[]).into(),
    }
    let mut arguments = cli::understood(std::env::args_os());
    if arguments.len() == 1 && Terminal::detect(&environment, cli::Color::Auto).draws() {
        arguments.push("top".into());
    }
    match cli::parse(&arguments) {
        Ok(cli) => run(cli, environment).into(),
        Err(error) => refused(&error, &environment, &arguments).into(),
    }
}

/// Help and version are data; any other parser result is a usage error.
fn refused(error: &clap::Error, environment: &Environment, arguments: &[OsString]) -> Exit {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::OK;
    }
    if cli::wants_json(arguments) {
        let terminal = Terminal::detect(environment, cli::Color::Never);
        let mut output = Output::new(Format::Json, false, terminal);
        return output.failure(&Failure::usage(error));
    }
    let _ = error.print();
    Exit::USAGE
}

fn run(cli: Cli, environment: Environment) -> Exit {
    let terminal = Terminal::detect(&environment, cli.global.color);
    let format = cli.global.output.unwrap_or(Format::Table);
    let mut output = Output::new(format, cli.global.quiet, terminal);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.failure(&Failure::Output(error)),
    };
    let mut ctx = Ctx::new(cli.global, environment, output);
    let exit = runtime.block_on(async {
        let done = verbs::perform(cli.verb, &mut ctx).await;
        let done = done.and_then(|exit| ctx.out.unpage().map(|()| exit));
        done.unwrap_or_else(|failure| ctx.out.failure(&failure))
    });
    // A blocking read of stdin cannot be cancelled; it must not delay the exit.
    runtime.shutdown_background();
    exit
}
