//! The table of options, compared with what the help texts of programs say. The recording needs none of the programs;
//! `cargo xtask help-texts` compares it with those that are installed.

use crate::danger::knows;

/// The programs with their arguments, their versions, and the options that run something according to their help texts.
const RECORDED: &str = include_str!("help_texts.txt");

/// Options whose help only seems to say that they run something.
const HARMLESS: &[(&str, &str)] = &[
    ("gcc", "--help"),
    ("gcc", "--version"),
    ("find", "-execdir"),
    ("tar", "--no-check-device"),
    ("sort", "--batch-size"),
    ("rg", "--no-pre"),
    // An alias of `--color always --heading --line-number`; the text mentions a program that reads the output.
    ("rg", "-p"),
    ("rg", "--pretty"),
    ("git", "--no-ext-diff"),
];

/// The programs and options that the table lacks.
fn unknown(recorded: &str) -> Vec<String> {
    let rows = recorded.lines().filter(|line| !line.starts_with('#'));
    let mut found = Vec::new();
    for row in rows {
        let columns: Vec<&str> = row.split(" |").collect();
        let [command, version, options] = columns[..] else {
            panic!("{row:?} has not three columns");
        };
        assert!(!version.trim().is_empty(), "{row:?} has no version");
        let program = command.split(' ').next().unwrap();
        for option in options.split_whitespace() {
            let excused = HARMLESS.contains(&(program, option)) || option.starts_with("--no-");
            if !excused && !knows(program, option) {
                found.push(format!("{command}: {option}"));
            }
        }
    }
    found
}

#[test]
fn i7_the_table_knows_the_options_that_programs_say_run_something() {
    assert_eq!(unknown(RECORDED), [""; 0], "in no family of options.txt");
    for program in [
        "curl", "find", "gcc", "git", "man", "nm", "rg", "rsync", "sort", "split", "tar", "wget",
    ] {
        assert!(
            RECORDED.contains(&format!("\n{program} ")),
            "{program} is not recorded"
        );
    }
}

/// The comparison fails for an option that is missing from the table.
#[test]
fn an_option_that_runs_something_and_is_not_in_the_table_is_found() {
    let recorded = "# Words.\nsort --help | sort 9.1 | --compress-program --launch --no-launch\n";
    assert_eq!(unknown(recorded), ["sort --help: --launch"]);
}
