//! The verdict on recorded outputs of cargo.

use super::judge::{Again, First, Suspect, again, closing, first, passes};
use super::repetition;
use super::report::{Report, report};

const PASS: &str = include_str!("recorded/pass.txt");
/// A test of a library and one of a program fail.
const ONE: &str = include_str!("recorded/one.txt");
/// The test `same` fails in two executables.
const SAME: &str = include_str!("recorded/same.txt");
const DOC: &str = include_str!("recorded/doc.txt");
/// A test aborts its process.
const ABORT: &str = include_str!("recorded/abort.txt");
/// A test ends its process with 0, so the tests after it are lost, and cargo does not notice.
const EXIT_0: &str = include_str!("recorded/exit0.txt");
const EXIT_3: &str = include_str!("recorded/exit3.txt");
const COMPILE_ERROR: &str = include_str!("recorded/compile_error.txt");
/// Repetitions.
const AGAIN_PASS: &str = include_str!("recorded/again_pass.txt");
const AGAIN_FAIL: &str = include_str!("recorded/again_fail.txt");
const AGAIN_SAME: &str = include_str!("recorded/again_same.txt");
const AGAIN_DOC: &str = include_str!("recorded/again_doc.txt");

fn read(text: &str) -> Report {
    report(text).unwrap()
}

/// Judges a run that failed.
fn failed(text: &str) -> First {
    first(&read(text), false)
}

fn repeated(first: &First, texts: &[&str]) -> Vec<(Suspect, Again)> {
    let pairs = first.suspects.iter().zip(texts);
    pairs
        .map(|(suspect, text)| (suspect.clone(), again(&read(text), suspect)))
        .collect()
}

/// The part of an output about the library's executable only.
fn one_failure() -> String {
    let end = ONE.find("     Running unittests src/main.rs").unwrap();
    format!(
        "{}error: 1 target failed:\n    `-p agentd-a --lib`\n",
        ONE.get(..end).unwrap()
    )
}

#[test]
fn all_pass() {
    let report = read(PASS);
    let passed: Vec<usize> = report.executables.iter().map(|e| e.passed).collect();
    assert_eq!(passed, [3, 3, 1, 0, 1, 1, 1, 0]);
    let first = first(&report, true);
    assert!(passes(&first, &[]), "{first:?}");
    assert!(closing(&[]).is_empty());
}

#[test]
fn a_failed_test_is_named_with_its_target_and_its_message() {
    let first = failed(ONE);
    assert_eq!(first.problems, [""; 0]);
    let [lib, main] = first.suspects.as_slice() else {
        panic!("{first:?}")
    };
    let bad = Suspect {
        name: "tests::deep::bad".into(),
        path: "target/debug/deps/agentd_a-5060d2ceb57e4a3b".into(),
        target: "-p agentd-a --lib".into(),
        message: "thread 'tests::deep::bad' panicked at a/src/lib.rs:6:77:\nthe journal\nis\nnot empty"
            .into(),
    };
    assert_eq!(*lib, bad);
    assert_eq!(main.name, "in_main");
    assert_eq!(main.options(), ["--bin", "agentd-c"]);
}

#[test]
fn the_repetition_selects_the_same_features_and_one_test() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let command = words("cargo test --workspace --locked --no-fail-fast -- --test-threads=2");
    let suspects = [failed(ONE).suspects, failed(DOC).suspects].concat();
    let commands: Vec<String> = suspects
        .iter()
        .map(|s| repetition(&command, s).join(" "))
        .collect();
    let start = "cargo test --workspace --locked --no-fail-fast";
    let end = "--show-output --test-threads=2";
    assert_eq!(
        commands,
        [
            format!("{start} --lib -- tests::deep::bad --exact {end}"),
            format!("{start} --bin agentd-c -- in_main --exact {end}"),
            format!("{start} --doc -- a/src/lib.rs {end}"),
        ]
    );
}

#[test]
fn a_test_that_passes_alone_is_flaky_and_does_not_fail_the_run() {
    let first = failed(&one_failure());
    let repeated = repeated(&first, &[AGAIN_PASS]);
    assert!(passes(&first, &repeated), "{repeated:?}");
    assert_eq!(
        closing(&repeated),
        ["flaky: tests::deep::bad (-p agentd-a --lib)\n    \
          thread 'tests::deep::bad' panicked at a/src/lib.rs:6:77:\n    the journal\n    is\n    not empty"]
    );
}

#[test]
fn a_test_that_fails_twice_fails_the_run() {
    let first = failed(&one_failure());
    let repeated = repeated(&first, &[AGAIN_FAIL]);
    assert!(!passes(&first, &repeated));
    assert!(
        closing(&repeated)[0].starts_with("failed twice: tests::deep::bad"),
        "{repeated:?}"
    );
}

#[test]
fn a_repetition_counts_only_if_the_test_ran_in_its_own_executable() {
    let first = failed(&one_failure());
    for text in [AGAIN_SAME, AGAIN_DOC, ABORT, COMPILE_ERROR, ""] {
        let repeated = repeated(&first, &[text]);
        assert!(!passes(&first, &repeated), "{repeated:?}");
    }
    let none = AGAIN_PASS.replace("1 passed", "0 passed");
    assert!(!passes(&first, &repeated(&first, &[&none])));
    assert!(!passes(&first, &[]), "it was not repeated");
}

#[test]
fn two_executables_with_a_test_of_the_same_name_are_two_tests() {
    let first = failed(SAME);
    assert_eq!(first.problems, [""; 0]);
    let targets: Vec<&str> = first.suspects.iter().map(|s| s.target.as_str()).collect();
    assert_eq!(targets, ["-p agentd-a --test it", "-p agentd-b --test it"]);
    // Both run again; now only the second one fails.
    let repeated = repeated(&first, &[AGAIN_SAME, AGAIN_SAME]);
    assert_eq!(repeated[0].1, Again::Passed);
    assert!(matches!(&repeated[1].1, Again::Failed(message) if message.contains("b is wrong")));
    assert!(!passes(&first, &repeated));
}

#[test]
fn a_doc_test_is_a_test() {
    let first = failed(DOC);
    assert_eq!(first.problems, [""; 0]);
    assert_eq!(first.suspects[0].name, "a/src/lib.rs - f (line 2)");
    assert!(passes(&first, &repeated(&first, &[AGAIN_DOC])));
    assert!(!passes(&first, &repeated(&first, &[DOC])));
    let other = AGAIN_DOC.replace("(line 2)", "(line 9)");
    assert!(!passes(&first, &repeated(&first, &[&other])));
}

#[test]
fn four_flaky_tests_are_too_many() {
    let mut first = failed(&one_failure());
    let suspect = first.suspects.remove(0);
    for (count, accepted) in [(3, true), (4, false)] {
        first.suspects = vec![suspect.clone(); count];
        let repeated = repeated(&first, &[AGAIN_PASS; 4]);
        assert_eq!(passes(&first, &repeated), accepted, "{count}");
    }
}

#[test]
fn an_executable_that_dies_fails_the_run() {
    for text in [ABORT, EXIT_3] {
        let first = failed(text);
        assert_eq!(first.suspects, []);
        let [problem] = first.problems.as_slice() else {
            panic!("{first:?}")
        };
        assert!(problem.contains("deps/it-f6ad79b6ad805bd9 ended without a test result"));
        assert!(problem.contains("process didn't exit successfully"), "{problem}");
        assert!(!passes(&first, &[]));
    }
}

#[test]
fn a_missing_result_fails_a_run_that_cargo_takes_for_a_success() {
    let first = first(&read(EXIT_0), true);
    assert!(first.problems[0].contains("without a test result"), "{first:?}");
    assert!(!passes(&first, &[]));
}

#[test]
fn what_makes_no_sense_fails_the_run() {
    let mut texts = vec![COMPILE_ERROR.to_owned(), String::new()];
    // Nothing failed, and cargo says so; the number of failed tests differs from their names; a failed executable has no
    // failed test; cargo counts another number; the output ends early.
    texts.push(PASS.to_owned());
    texts.push(one_failure().replace("1 failed;", "2 failed;"));
    texts.push(
        one_failure()
            .replace("1 failed;", "0 failed;")
            .replace("    tests::deep::bad\n", ""),
    );
    texts.push(one_failure().replace("error: 1 target", "error: 2 targets"));
    texts.push(one_failure().replace("error: 1 target failed:", ""));
    for text in texts {
        let first = failed(&text);
        let repeated = repeated(&first, &[AGAIN_PASS]);
        assert!(!first.problems.is_empty(), "{text}");
        assert!(!passes(&first, &repeated), "{text}");
    }
    assert!(!first(&read(ONE), true).problems.is_empty(), "cargo succeeded");
    assert!(!first(&read(""), true).problems.is_empty(), "no test ran");
}

#[test]
fn words_of_another_program_before_the_result_do_not_hide_it() {
    let text = PASS.replacen("test result: ok. 3", "listening on 7433 test result: ok. 3", 1);
    assert!(passes(&first(&read(&text), true), &[]));
}
