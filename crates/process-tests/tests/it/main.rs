//! The runner with cases that pass, panic, abort, hang and fail at the end of their process. The program starts itself as
//! the program under test, so it has its own `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if under_test::asked_for() {
        under_test::main()
    } else {
        agentd_process_tests::main(&[runner::group()])
    }
}

#[cfg(test)]
mod runner;
#[cfg(test)]
mod under_test;
