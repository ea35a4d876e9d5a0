//! A program whose cases end in every way.

use agentd_process_tests::{Case, Group, cases};
use std::process::ExitCode;
use std::time::Duration;

/// Is set for the program under test and the processes that it starts.
pub(crate) const ASKED: &str = "AGENTD_TEST_PROGRAM";

#[expect(clippy::disallowed_methods, reason = "the test says which program this is")]
pub(crate) fn asked_for() -> bool {
    std::env::var(ASKED).is_ok()
}

pub(crate) fn main() -> ExitCode {
    let good: &[Case] = &cases![passes, passes_too];
    let bad: &[Case] = &cases![passes, panics, aborts, hangs, passes_too];
    agentd_process_tests::main(&[
        Group::new("good", Duration::from_secs(60), good),
        Group::new("bad", Duration::from_millis(200), bad),
    ])
}

async fn passes() {}

async fn passes_too() {}

async fn panics() {
    panic!("on purpose");
}

async fn aborts() {
    std::process::abort();
}

async fn hangs() {
    std::future::pending::<()>().await;
}
