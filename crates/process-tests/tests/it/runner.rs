//! The cases.

use crate::under_test::ASKED;
use agentd_process_tests::{Case, Group, cases};
use std::process::Command;
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_case_that_fails_fails_alone,
        chosen_cases_run_alone,
        cases_are_listed,
        i6_a_late_case_fails,
    ];
    Group::new("runner", Duration::from_secs(60), all)
}

/// The output of the program under test, and whether it succeeded.
#[expect(
    clippy::disallowed_methods,
    reason = "the test starts itself as the program under test"
)]
fn output(args: &[&str]) -> (String, bool) {
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program).args(args).env(ASKED, "1").output().unwrap();
    (String::from_utf8(done.stdout).unwrap(), done.status.success())
}

fn results(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.starts_with("test ")).collect()
}

async fn a_case_that_fails_fails_alone() {
    let (output, good) = output(&[]);
    assert!(!good, "{output}");
    let lines = results(&output);
    let (total, lines) = lines.split_last().unwrap();
    assert_eq!(
        lines,
        [
            "test good::passes ... ok",
            "test good::passes_too ... ok",
            "test bad::passes ... ok",
            "test bad::panics ... FAILED",
            "test bad::aborts ... FAILED",
            "test bad::hangs ... FAILED",
            "test bad::passes_too ... ok",
        ],
        "{output}"
    );
    assert!(
        total.starts_with("test result: FAILED. 4 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out;"),
        "{output}"
    );
    assert!(output.contains("\nrunning 7 tests\n"), "{output}");
    assert!(
        output.contains("\nfailures:\n    bad::panics\n    bad::aborts\n    bad::hangs\n"),
        "{output}"
    );
    assert!(
        output.contains("bad::aborts: the process ended: signal: 6"),
        "{output}"
    );
}

async fn i6_a_late_case_fails() {
    let (output, good) = output(&["--exact", "bad::hangs"]);
    assert!(!good, "{output}");
    assert!(output.contains("bad::hangs did not end within 200ms"), "{output}");
}

async fn chosen_cases_run_alone() {
    let (output, good) = output(&["passes_too", "--test-threads", "2"]);
    assert!(good, "{output}");
    let lines = results(&output);
    assert_eq!(
        lines.split_last().unwrap().1,
        ["test good::passes_too ... ok", "test bad::passes_too ... ok"]
    );
    assert!(
        output.contains("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out;"),
        "{output}"
    );
}

async fn cases_are_listed() {
    let (output, good) = output(&["--list", "good"]);
    assert!(good, "{output}");
    assert_eq!(
        output,
        "good::passes: test\ngood::passes_too: test\n\n2 tests, 0 benchmarks\n"
    );
}
