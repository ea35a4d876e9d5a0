//! Parses the arguments, and refuses values that would be taken and then have no effect.

use crate::cli::typed::verb;
use crate::cli::{Cli, Format, ScopeArg, Verb};
use agentd_protocol::Selector;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;

/// Texts for the agent, whose verbs refuse an empty one with an example.
const TEXTS: [&str; 2] = ["prompt", "text"];

/// What `set` changes.
pub(crate) const KEYS: [&str; 5] = ["name", "model", "mode", "budget", "labels"];

/// The command line.
pub(crate) fn parse<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Result<Cli, Error> {
    let mut command = Cli::command();
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let matches = command
        .try_get_matches_from_mut(&arguments)
        .map_err(|error| better_tip(error, verb(&arguments).1))?;
    not_empty(&mut command, &matches)?;
    if let Some(message) = contradiction(&matches) {
        return Err(command.error(ErrorKind::ArgumentConflict, message));
    }
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    match without_effect(&cli) {
        Some(message) => Err(command.error(ErrorKind::ArgumentConflict, message)),
        None => Ok(cli),
    }
}

/// The verbs that take a text, in which an option after `--` makes sense.
const WITH_TEXT: [&str; 4] = ["run", "send", "answer", "deny"];

/// Replaces clap's tip to write an unknown option behind `--`, where it would be taken for an id.
fn better_tip(mut error: Error, verb: &str) -> Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option.clone(),
        _ => return error,
    };
    let key = unknown
        .trim_start_matches('-')
        .split('=')
        .next()
        .unwrap_or_default();
    if verb == "set" && KEYS.contains(&key) {
        let tip = format!("write '{key}=VALUE' without dashes: agentctl set ID {key}=VALUE");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if !WITH_TEXT.contains(&verb) {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Refuses empty values: mostly a variable of a script that was not set, so that `--deny "$RULE"` would deny nothing.
fn not_empty(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let empty = |id: &str| {
        let mut values = matches.get_raw(id).into_iter().flatten();
        values.any(|value| value.is_empty())
    };
    let named = command.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        !TEXTS.contains(&id) && given(id) && empty(id)
    });
    let found = named.map(ToString::to_string);
    if let Some(found) = found {
        let message = format!("the value of '{found}' is empty; omit the argument, or give it a value");
        return Err(command.error(ErrorKind::InvalidValue, message));
    }
    let Some((name, below)) = matches.subcommand() else {
        return Ok(());
    };
    match command.find_subcommand_mut(name) {
        Some(command) => not_empty(command, below),
        None => Ok(()),
    }
}

/// Arguments of which one would be ignored.
fn without_effect(cli: &Cli) -> Option<String> {
    let format = cli
        .global
        .output
        .filter(|format| !matches!(format, Format::Json | Format::Jsonl));
    match &cli.verb {
        Verb::Run(run) if run.json && format.is_some() => Some(
            "--json prints the stored events as JSON lines, so it cannot be used with another --output"
                .to_owned(),
        ),
        Verb::Export(_) if format.is_some() => {
            Some("export prints what is stored, so it takes no other --output than json".to_owned())
        }
        Verb::Deny(deny) if deny.scope != ScopeArg::Once => {
            Some("--scope says how far an approval reaches, so `deny` does not take it".to_owned())
        }
        Verb::Run(run) => twice(&run.labels).or_else(|| twice(&run.requires)),
        Verb::Import(import) => twice(&import.labels),
        Verb::Token(token) => match &token.verb {
            crate::cli::TokenVerb::Create(create) => twice(&create.labels),
            _ => None,
        },
        _ => None,
    }
}

/// Conditions on labels that no session can meet: the answer would always be empty.
fn contradiction(matches: &ArgMatches) -> Option<String> {
    let given = matches.try_get_many::<Selector>("labels").ok().flatten();
    let all = given.into_iter().flatten().cloned().reduce(Selector::and);
    let found = all.as_ref().and_then(Selector::contradiction);
    let message = found.map(|key| {
        format!("the conditions on the label {key} contradict each other: no session matches all of them")
    });
    message.or_else(|| contradiction(matches.subcommand()?.1))
}

/// A label with two values: a session has one of each key, so that one of them would be lost.
fn twice(labels: &[(String, String)]) -> Option<String> {
    let mut keys = std::collections::BTreeSet::new();
    let (key, _) = labels.iter().find(|(key, _)| !keys.insert(key))?;
    Some(format!("the label {key} is given twice; a label has one value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn refused(words: &[&str]) -> String {
        let words = ["agentctl"].iter().chain(words);
        parse(words).unwrap_err().to_string()
    }

    #[test]
    fn conditions_that_no_session_can_meet_are_refused_by_every_verb_that_takes_them() {
        let mut verbs = 0;
        each(&Cli::command(), &[], &mut |command, path| {
            let labels = command
                .get_arguments()
                .find(|argument| argument.get_id() == "labels");
            let selects = labels.is_some_and(|labels| {
                labels
                    .get_value_names()
                    .is_some_and(|names| names.iter().any(|name| name == "SELECTOR"))
            });
            if !selects {
                return;
            }
            verbs += 1;
            // Where the labels go with it, instead of names.
            let all = command.get_arguments().any(|argument| argument.get_id() == "all");
            let words = |second: &'static str| -> Vec<String> {
                let labels = ["-l", "team=a", "-l", second].map(str::to_owned);
                let all = all.then(|| "--all".to_owned());
                path.iter().cloned().chain(labels).chain(all).collect()
            };
            let said = |second| match parse(["agentctl".to_owned()].into_iter().chain(words(second))) {
                Err(error) => error.to_string(),
                Ok(_) => String::new(),
            };
            let refused = said("team=b");
            assert!(
                refused.contains("the label team contradict"),
                "{path:?}: {refused}"
            );
            assert!(!said("urgent").contains("contradict"), "{path:?}");
        });
        assert!(verbs >= 6, "{verbs}");
    }

    /// The path of each verb, with the arguments that it requires and those that take a value.
    fn each(command: &Command, path: &[String], check: &mut impl FnMut(&Command, &[String])) {
        if command.get_subcommands().next().is_none() {
            check(command, path);
        }
        for sub in command.get_subcommands() {
            let path = [path, &[sub.get_name().to_owned()]].concat();
            each(sub, &path, check);
        }
    }

    #[test]
    fn an_empty_value_of_any_option_of_any_verb_is_refused() {
        let mut command = Cli::command();
        command.build();
        let mut checked = 0;
        each(&command, &[], &mut |verb, path| {
            let takes = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_positional();
            for arg in verb.get_arguments().filter(takes) {
                let Some(long) = arg.get_long() else { continue };
                // One of these has what else the verb requires.
                let told = [
                    "",
                    "x",
                    "x x",
                    "--all",
                    "--all --rules x",
                    "x --scope read",
                    "x --wait",
                    "x --each x",
                    "x --at 1",
                    "--rules x",
                    "bash",
                    "--tool x",
                ]
                .map(|rest| {
                    let line = format!("agentctl {} --{long}= {rest}", path.join(" "));
                    parse(line.split_whitespace()).unwrap_err().to_string()
                });
                // Values of a type, such as numbers, are refused by clap itself.
                let named = |error: &String| {
                    error.contains("is empty")
                        || error.contains("invalid value ''")
                        || error.contains("a value is required for")
                };
                assert!(told.iter().any(named), "{path:?} --{long}: {told:#?}");
                checked += 1;
            }
        });
        assert!(checked > 100, "{checked}");
    }

    #[test]
    fn an_empty_rule_label_or_name_is_named() {
        for (words, named) in [
            (vec!["run", "go", "--deny", ""], "--deny <RULE>"),
            (vec!["run", "go", "--allow="], "--allow <RULE>"),
            (vec!["run", "go", "--tools", "Read,,Bash"], "--tools <LIST>"),
            (vec!["kill", "--all", "-l", ""], "--label <SELECTOR>"),
            (vec!["usage", "--by", ""], "--by <WHAT>"),
            (vec!["show", ""], "<ID>"),
        ] {
            let error = refused(&words);
            assert!(error.contains(named) && error.contains("is empty"), "{error}");
        }
        assert!(parse(["agentctl", "run", "go", "--deny", "Bash"]).is_ok());
        assert!(
            parse(["agentctl", "run", ""]).is_ok(),
            "the verb says how to write a prompt"
        );
    }

    #[test]
    fn the_tip_for_an_unknown_option_says_how_to_write_it() {
        let tip = refused(&["set", "4f2a", "--model", "x"]);
        assert!(tip.contains("agentctl set ID model=VALUE"), "{tip}");
        for words in [
            ["set", "4f2a", "--color=blue"],
            ["set", "4f2a", "--colour"],
            ["kill", "4f2a", "--now"],
        ] {
            let told = refused(&words);
            assert!(!told.contains("-- --"), "{told}");
        }
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for (line, said) in [
            ("run go --json -o yaml", "another --output"),
            ("export x -o table", "takes no other --output"),
            ("deny x --scope session", "does not take it"),
            ("run go -l team=a -l team=b", "the label team is given twice"),
            (
                "run go --requires gpu=a --requires gpu=b",
                "the label gpu is given twice",
            ),
            ("import f -l team=a -l team=a", "the label team is given twice"),
            (
                "token create ci --scope read -l a=b -l a=c",
                "the label a is given twice",
            ),
            ("run go --timeout 0s", "must be longer than 0"),
            ("send x go --wait --timeout 0s", "must be longer than 0"),
            ("token create ci --scope read --ttl 0s", "must be longer than 0"),
            ("daemon log -n 2001", "2001 is not in 1..=2000"),
        ] {
            let error = refused(&line.split(' ').collect::<Vec<_>>());
            assert!(error.contains(said), "{line}: {error}");
        }
        for line in [
            "run go --json -o jsonl",
            "export x -o json",
            "approve x --scope session",
            "wait x --timeout 0s",
        ] {
            assert!(parse(format!("agentctl {line}").split(' ')).is_ok(), "{line}");
        }
    }
}
