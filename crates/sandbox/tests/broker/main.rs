//! The broker with real processes: protected names in the working directory, and modes, times and owners outside of it.
//! Each attack succeeds without a sandbox (the control) and fails inside it, at each level of this machine. The costs and
//! reasons: docs/decisions/path-broker.md; the attacks as a table: docs/security/walls.md.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(agentd_sandbox::WARDEN_ARG) => agentd_sandbox::warden_main(),
        filter => cases::run(filter.unwrap_or_default()),
    }
}

#[cfg(test)]
mod cases;
