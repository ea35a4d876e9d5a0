//! Which arguments parse, and which conflict.

use super::*;
use agentd_protocol::Budget;
use clap::CommandFactory as _;
use clap::error::ErrorKind;

fn parse(line: &str) -> Result<Cli, ErrorKind> {
    given::parse(line.split_whitespace()).map_err(|error| error.kind())
}

#[test]
fn the_command_line_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn every_flag_and_verb_is_explained() {
    fn check(command: &clap::Command, path: &str) {
        assert!(command.get_about().is_some(), "{path} has no explanation");
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{path} {} has no explanation",
                argument.get_id()
            );
        }
        for sub in command.get_subcommands() {
            check(sub, &format!("{path} {}", sub.get_name()));
        }
    }
    check(&Cli::command(), "agentctl");
}

#[test]
fn run_takes_its_flags() {
    let cli = parse("agentctl run go -C /w --mode accept-edits -l a=b -l c=d --max-turns -1 --budget usd=2 --tools Read,Bash --timeout 5m -o json").unwrap();
    assert_eq!(cli.global.output, Some(Format::Json));
    let Verb::Run(run) = cli.verb else {
        panic!("not run")
    };
    assert_eq!(run.prompt.as_deref(), Some("go"));
    assert_eq!(run.mode, Some(ModeArg::AcceptEdits));
    assert_eq!(
        run.labels,
        vec![("a".into(), "b".into()), ("c".into(), "d".into())]
    );
    assert_eq!(run.max_turns, Some(-1));
    assert_eq!(
        run.budget,
        Some(Budget {
            usd: 2.0,
            ..Budget::default()
        })
    );
    assert_eq!(run.tools, Some(vec!["Read".into(), "Bash".into()]));
    assert_eq!(run.timeout, Some(std::time::Duration::from_secs(300)));
}

#[test]
fn contradicting_flags_are_refused() {
    let conflicts = [
        "agentctl run go --input-file -",
        "agentctl run go -d --json",
        "agentctl run go -d --timeout 5s",
        "agentctl run go --session x --name y",
        "agentctl run go --session x -C /",
        "agentctl run go --session x --budget usd=1",
        "agentctl send x hi --steer --queue",
        "agentctl send x hi --queue --collect",
        "agentctl send x hi --input-file f",
        "agentctl rm x --all",
        "agentctl cancel x -l a=b",
        "agentctl deny x -l a=b",
        "agentctl approve x --all",
        "agentctl ps --socket /s --context c",
    ];
    for line in conflicts {
        assert_eq!(parse(line).unwrap_err(), ErrorKind::ArgumentConflict, "{line}");
    }
    let missing = [
        "agentctl cancel",
        "agentctl approve",
        "agentctl wait",
        "agentctl show",
        "agentctl cancel -l a=b",
        "agentctl send x hi --timeout 5s",
    ];
    for line in missing {
        assert_eq!(
            parse(line).unwrap_err(),
            ErrorKind::MissingRequiredArgument,
            "{line}"
        );
    }
    let wrong = [
        "agentctl run go --budget eur=2",
        "agentctl ps -l team!",
        "agentctl run go --timeout soon",
    ];
    for line in wrong {
        assert_eq!(parse(line).unwrap_err(), ErrorKind::ValueValidation, "{line}");
    }
}

#[test]
fn verbs_have_their_other_names() {
    assert!(matches!(parse("agentctl ls").unwrap().verb, Verb::Ps(_)));
    assert!(matches!(parse("agentctl inspect x").unwrap().verb, Verb::Show(_)));
    assert!(matches!(
        parse("agentctl describe x").unwrap().verb,
        Verb::Show(_)
    ));
    assert!(matches!(
        parse("agentctl logs x -o text").unwrap().global.output,
        Some(Format::Table)
    ));
}

#[test]
fn a_usage_error_honours_the_json_flag() {
    let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
    for line in [
        "agentctl -o json nope",
        "agentctl nope --output jsonl",
        "agentctl -ojson x",
        "agentctl x --output=json",
    ] {
        assert!(wants_json(&words(line)), "{line}");
    }
    assert!(!wants_json(&words("agentctl run json -o yaml")));
}

#[test]
fn help_has_no_hard_line_breaks_and_examples_fit_80_columns() {
    let mut program = Cli::command();
    program.build();
    let verbs: Vec<_> = program.get_subcommands().cloned().collect();
    for verb in verbs
        .iter()
        .flat_map(|verb| verb.get_subcommands().chain([verb]))
        .chain([&program])
    {
        let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        for pair in lines.windows(2) {
            let broken = prose(pair[0]) && prose(pair[1]) && pair[0].len() > 60 && pair[1] != "Examples:";
            assert!(!broken, "{}: {pair:?}", verb.get_name());
        }
        for line in lines.iter().filter(|line| !prose(line)) {
            assert!(line.len() <= 80, "{}: {line}", verb.get_name());
        }
    }
}
