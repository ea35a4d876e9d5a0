//! The arguments that a program may run: by default all of them; programs that treat them as data are known by
//! name (`consumers.txt`).

use crate::danger::{interprets, is_dangerous};
use crate::nested::{SHELLS, WRAPPERS, base};
use crate::scripts_of::{runs_nothing, takes_script};
use crate::tree::evaluates;
use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<HashMap<&'static str, Vec<&'static str>>> =
    LazyLock::new(|| read(include_str!("consumers.txt")));

/// Wrappers with one operand before the command.
const WITH_OPERAND: [&str; 9] = [
    "timeout", "chroot", "taskset", "flock", "chrt", "ssh", "su", "runuser", "script",
];
/// The options of find and fd that begin a command.
const EXECUTES: [&str; 8] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];
/// Options before a sub-command whose value is the next word, and that runs nothing.
const PLACES: [&str; 5] = ["-C", "--git-dir", "--work-tree", "--prefix", "--manifest-path"];

/// Arguments that a program may run or interpret as code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runnable<'a> {
    pub(crate) program: &'a str,
    pub(crate) words: Vec<&'a str>,
    /// It runs nothing, but it may open files.
    pub(crate) inert: bool,
}

/// The arguments of a command that something may run. The text that a shell gets is left out: it is parsed.
pub(crate) fn runnable(argv: &[String]) -> Vec<Runnable<'_>> {
    let mut found = Vec::new();
    let mut rest = argv;
    while let Some((program, args)) = rest.split_first() {
        let program = base(program);
        let (mut words, inner) = of_program(program, args);
        let inert = inner.is_none() && runs_nothing(program, args);
        if inert {
            words = args.iter().map(String::as_str).collect();
        }
        if !words.is_empty() {
            found.push(Runnable {
                program,
                words,
                inert,
            });
        }
        match inner {
            Some(at) => rest = args.get(at..).unwrap_or_default(),
            None => break,
        }
    }
    found
}

/// The arguments that a program expands like a shell: those of a find that runs something, and the paths of git.
pub(crate) fn globs(argv: &[String]) -> &[String] {
    let Some((program, args)) = argv.split_first() else {
        return &[];
    };
    let from = match base(program) {
        "find" | "fd" | "fdfind" => args
            .iter()
            .any(|arg| EXECUTES.contains(&arg.as_str()))
            .then_some(0),
        "git" => args.iter().position(|arg| arg == "--").map(|at| at + 1),
        _ => None,
    };
    from.and_then(|from| args.get(from..)).unwrap_or_default()
}

/// Whether a command may interpret what it reads from its input as code. Shells do; their input is searched as a command.
pub(crate) fn reads_code(argv: &[String]) -> bool {
    let mut rest = argv;
    while let Some((program, args)) = rest.split_first() {
        let program = base(program);
        if let (_, Some(at)) = of_program(program, args) {
            rest = args.get(at..).unwrap_or_default();
            continue;
        }
        let from_input = args.iter().any(|arg| arg == "-" || arg == "/dev/stdin");
        let scripted = interprets(program) || takes_script(program);
        return if SHELLS.contains(&program) {
            false
        } else if is_data(program, args) {
            dangerous(program, args).contains(&"-")
        } else if scripted {
            from_input || !args.iter().any(|arg| gives_script(arg))
        } else {
            true
        };
    }
    false
}

fn gives_script(arg: &str) -> bool {
    !arg.starts_with('-')
        || ["-c", "-e", "-m", "-r"]
            .iter()
            .any(|option| arg.starts_with(option))
}

/// The words that the program may run, and where the command begins that it starts.
fn of_program<'a>(program: &str, args: &'a [String]) -> (Vec<&'a str>, Option<usize>) {
    if WRAPPERS.contains(&program) || program == "eval" {
        return wrapped(program, args);
    }
    if SHELLS.contains(&program) {
        return (Vec::new(), None);
    }
    if matches!(program, "find" | "fd" | "fdfind") {
        let at = args.iter().position(|arg| EXECUTES.contains(&arg.as_str()));
        return (Vec::new(), at.map(|at| at + 1));
    }
    if is_data(program, args) {
        return (dangerous(program, args), None);
    }
    if runs_nothing(program, args) {
        return (Vec::new(), None);
    }
    (args.iter().map(String::as_str).collect(), None)
}

/// The command that a wrapper starts, if its place is certain: only options, their values and the wrapper's operand
/// precede it. Otherwise the wrapper may run any argument.
fn wrapped<'a>(program: &str, args: &'a [String]) -> (Vec<&'a str>, Option<usize>) {
    let parsed = |word: &&str| !is_parsed(word);
    let Some(at) = args.iter().position(|arg| is_known(base(arg))) else {
        return (args.iter().map(String::as_str).filter(parsed).collect(), None);
    };
    let before = args.get(..at).unwrap_or_default();
    let option = |arg: &&String| arg.starts_with('-') || arg.contains('=');
    let (options, operands): (Vec<_>, Vec<_>) = before.iter().partition(option);
    if operands.len() > options.len() + usize::from(WITH_OPERAND.contains(&program)) {
        return (args.iter().map(String::as_str).filter(parsed).collect(), None);
    }
    (
        before.iter().map(String::as_str).filter(parsed).collect(),
        Some(at),
    )
}

/// Whether a word is a command line of a known program, which is judged as one.
pub(crate) fn is_parsed(word: &str) -> bool {
    let mut parts = word.split_whitespace();
    let first = parts.next().unwrap_or_default();
    parts.next().is_some() && is_known(base(first))
}

fn is_known(name: &str) -> bool {
    TABLE.contains_key(name)
        || SHELLS.contains(&name)
        || WRAPPERS.contains(&name)
        || takes_script(name)
        || interprets(name)
        || matches!(name, "find" | "fd" | "fdfind")
}

fn is_data(program: &str, args: &[String]) -> bool {
    TABLE.get(program).is_some_and(|commands| {
        let command = sub_command(args).and_then(|at| args.get(at));
        commands.is_empty() || command.is_some_and(|command| commands.contains(&command.as_str()))
    })
}

/// The index of a program's sub-command.
fn sub_command(args: &[String]) -> Option<usize> {
    let mut before = "";
    args.iter().position(|arg| {
        let option = arg.starts_with(['-', '+']) || before == "-c" || PLACES.contains(&before);
        before = arg;
        !option
    })
}

/// The options that run something, their values, and operands that can run something wherever they are.
fn dangerous<'a>(program: &str, args: &'a [String]) -> Vec<&'a str> {
    let has_commands = TABLE.get(program).is_some_and(|commands| !commands.is_empty());
    let start = if has_commands { sub_command(args) } else { None };
    let command = start.and_then(|at| args.get(at)).map_or("", String::as_str);
    // The letters of tar's first word are options without a dash.
    let letters = args
        .first()
        .is_some_and(|arg| !arg.starts_with('-') && arg.contains(['I', 'F']));
    if letters && program.ends_with("tar") {
        return args.iter().map(String::as_str).collect();
    }
    let mut words = Vec::new();
    let (mut before, mut taken) = ("", false);
    for (at, arg) in args.iter().enumerate() {
        let global = start.is_some_and(|start| at < start);
        let place = PLACES.contains(&arg.as_str()) || PLACES.contains(&before);
        let option = arg.starts_with(['-', '+', '@']) && is_dangerous(program, command, arg);
        if taken || option || (global && !place) || always(arg) {
            words.push(arg.as_str());
            words.extend(as_option(arg));
        }
        taken = option && !arg.contains('=');
        before = arg;
    }
    words
}

/// An array subscript that is evaluated; a transport of git that is a command; an address that is an option of ssh.
fn always(arg: &str) -> bool {
    evaluates(arg) || arg.contains("ext::") || as_option(arg).is_some()
}

/// The option of ssh that an address is: `ssh://-oProxyCommand=x/path`.
fn as_option(arg: &str) -> Option<&str> {
    let (_, host) = arg.split_once("://-")?;
    host.split('/').next()
}

fn read(text: &'static str) -> HashMap<&'static str, Vec<&'static str>> {
    let mut table: HashMap<_, Vec<_>> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (programs, commands) = line.split_once(" : ").unwrap_or((line, ""));
        for program in programs.split_whitespace() {
            table
                .entry(program)
                .or_default()
                .extend(commands.split_whitespace());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(command: &str, expected: &[(&str, &str)]) {
        let argv = argv(command);
        let found: Vec<_> = runnable(&argv)
            .into_iter()
            .map(|found| (found.program, found.words.join(" ")))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(program, words)| (*program, words.as_str()))
            .collect();
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn a_program_may_run_its_arguments_unless_it_is_known() {
        check("frobnicate a b", &[("frobnicate", "a b")]);
        check("grep a b", &[]);
        check("rg --pre a b", &[("rg", "--pre a")]);
        check("git -c a=b log c", &[("git", "-c a=b")]);
        check("git -C a log b", &[]);
        check("git lg a", &[("git", "lg a")]);
        check("cargo test a", &[]);
        check("cargo run a", &[("cargo", "run a")]);
        check("sudo -u a grep b", &[("sudo", "-u a")]);
        check(
            "timeout 5 frobnicate grep a",
            &[("timeout", "5 frobnicate grep a")],
        );
        check("find . -exec frobnicate a ;", &[("frobnicate", "a ;")]);
        check("bash -c a", &[]);
        check("tar cIf a b", &[("tar", "cIf a b")]);
    }

    #[test]
    fn i7_no_program_that_runs_others_is_known_as_harmless() {
        for name in TABLE.keys() {
            let runs =
                WRAPPERS.contains(name) || SHELLS.contains(name) || interprets(name) || takes_script(name);
            assert!(!runs, "{name}");
        }
    }

    #[test]
    fn input_is_code_unless_the_program_has_a_script_or_takes_data() {
        for command in [
            "python3",
            "python3 -",
            "sqlite3 db",
            "frobnicate",
            "sudo sqlite3 db",
            "tar -cf x -T -",
            "awk -f -",
        ] {
            assert!(reads_code(&argv(command)), "{command}");
        }
        for command in [
            "grep x",
            "python3 x.py",
            "awk {print}",
            "cat",
            "git commit -F -",
            "sort -u",
        ] {
            assert!(!reads_code(&argv(command)), "{command}");
        }
    }
}
