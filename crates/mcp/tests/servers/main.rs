//! The pool with real server processes under real wardens. The program is its own warden, its own fake servers, and the
//! client of the conformance suite, so it has a `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(agentd_sandbox::WARDEN_ARG) => agentd_sandbox::warden_main(),
        Some("__server") => played::serve(&arguments.next().unwrap_or_default()),
        Some("__client") => npm::be_client(&arguments.next().unwrap_or_default()),
        _ => agentd_process_tests::main(&[cases::group()]),
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod npm;
#[cfg(test)]
mod played;
