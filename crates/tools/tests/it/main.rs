//! Tools with real commands. The program starts itself as the process warden, so it has its own `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(agentd_sandbox::WARDEN_ARG) {
        agentd_sandbox::warden_main()
    } else {
        agentd_process_tests::main(&[bash::group(), jobs::group(), parsers::group()])
    }
}

#[cfg(test)]
mod bash;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod parsers;
