//! The broker with real processes: names in the working directory that commands may not write, and modes, times and
//! owners outside of it. Each attack works without walls (the control) and fails behind them, at each level that this
//! machine has. What it costs and why: docs/decisions/path-broker.md; the attacks as a table: docs/security/walls.md.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(agentd_sandbox::WARDEN_ARG) => agentd_sandbox::warden_main(),
        filter => cases::run(filter.unwrap_or_default()),
    }
}

#[cfg(test)]
mod cases;
