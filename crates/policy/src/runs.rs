//! The files that a command runs, as far as its text names them: what a grant of the command is bound to.
//!
//! The line: a program with a path, every operand of a program that is not known to be inert, and the files that build
//! tools read unnamed. A program that finds its code by itself (`cargo`, `go test`) names no file.

use crate::nested::base;
use crate::scripts::{directories, quiet};
use crate::shell::analyse;

/// Build tools, with the files that say what they run.
const RECIPES: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["ninja"], &["build.ninja"]),
    (&["npm", "npx", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile"]),
    (&["ant"], &["build.xml"]),
    (&["mvn"], &["pom.xml"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts"]),
    (&["tox"], &["tox.ini"]),
    (&["nox"], &["noxfile.py"]),
];
/// Options whose value is the directory in which a program works.
const DIRECTORY: &[&str] = &[
    "-C",
    "-D",
    "-d",
    "--chdir",
    "--cwd",
    "--dir",
    "--directory",
    "--prefix",
    "--working-directory",
];
/// Built-ins that change the directory of what follows, or may.
const MOVES: &[&str] = &["cd", "chdir", "eval", "popd", "pushd", "source", "."];
/// The most names in one command. A command with more is bound to nothing, so it can be granted only everywhere.
const MAX_NAMES: usize = 128;

/// The names of the files that a command may run, relative to its directory unless they are absolute; many of them do
/// not exist. `None`: there are too many.
#[must_use]
pub fn runs(command: &str) -> Option<Vec<String>> {
    let found = analyse(command);
    let dirs = directories(&found);
    let mut names: Vec<String> = Vec::new();
    for argv in found.commands.iter().filter(|argv| !reads_only(argv)) {
        let own = named(argv);
        let elsewhere: Vec<String> = dirs.iter().cloned().chain(works_in(argv)).collect();
        for name in own {
            let relative = !name.starts_with(['/', '~']);
            let moved = elsewhere.iter().filter(|_| relative);
            names.extend(moved.map(|dir| format!("{dir}/{name}")));
            names.push(name);
        }
    }
    names.extend(found.reads.iter().cloned());
    names.sort_unstable();
    names.dedup();
    (names.len() <= MAX_NAMES).then_some(names)
}

/// Whether a part of a command runs in another directory than the session's. A grant for a directory then says nothing
/// about it. Within one plain command, the text itself is granted, and [`runs`] follows it.
#[must_use]
pub(crate) fn moves(command: &str, workdir: &str) -> bool {
    let found = analyse(command);
    let single = matches!(found.segments.as_deref(), Ok([_]));
    let stays = |argv: &[String]| matches!(argv, [program, dir] if program == "cd" && dir == workdir);
    let leaves = |argv: &Vec<String>| {
        let program = argv.first().map_or("", |program| base(program));
        MOVES.contains(&program) && !stays(argv)
    };
    !single && found.commands.iter().any(leaves)
}

/// Whether the command is known to run no file. `sed` runs the script that an option names.
fn reads_only(argv: &[String]) -> bool {
    let scripted = || {
        let mut options = argv.iter().skip(1).filter(|word| word.starts_with('-'));
        options.any(|word| word.contains('f'))
    };
    quiet(argv) && !(argv.first().is_some_and(|program| base(program) == "sed") && scripted())
}

/// The names in one command.
fn named(argv: &[String]) -> Vec<String> {
    let Some((program, words)) = argv.split_first() else {
        return Vec::new();
    };
    let mut names: Vec<String> = program
        .contains('/')
        .then(|| program.clone())
        .into_iter()
        .collect();
    names.extend(recipes(program).map(str::to_owned));
    for word in words {
        names.extend(operands(word).map(str::to_owned));
    }
    if base(program).starts_with("py") {
        for module in words.windows(2).filter_map(module) {
            names.push(format!("{module}.py"));
            names.push(format!("{module}/__main__.py"));
        }
    }
    names
}

fn recipes(program: &str) -> impl Iterator<Item = &'static str> {
    let program = base(program).to_owned();
    let known = RECIPES
        .iter()
        .filter(move |(names, _)| names.contains(&program.as_str()));
    known.flat_map(|(_, files)| *files).copied()
}

/// The parts of a word that may name a file: the word, the value of an option, the value attached to a short option.
fn operands(word: &str) -> impl Iterator<Item = &str> {
    let plain = (!word.starts_with('-')).then(|| word.trim_start_matches(['@', '<']));
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let attached = attached.and_then(|rest| rest.char_indices().nth(1).and_then(|(at, _)| rest.get(at..)));
    [plain, value, attached]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty() && !name.chars().all(|c| matches!(c, '.' | '/')))
}

fn module(words: &[String]) -> Option<String> {
    match words {
        [option, module] if option == "-m" => Some(module.replace('.', "/")),
        _ => None,
    }
}

/// The directories that options of the command name.
fn works_in(argv: &[String]) -> Vec<String> {
    let after = argv.windows(2).filter_map(|pair| match pair {
        [option, dir] if DIRECTORY.contains(&option.as_str()) => Some(dir.as_str()),
        _ => None,
    });
    let attached = argv.iter().filter_map(|word| {
        let long = word.split_once('=').filter(|(name, _)| DIRECTORY.contains(name));
        long.map(|(_, dir)| dir).or_else(|| word.strip_prefix("-C"))
    });
    let all = after.chain(attached).filter(|dir| !dir.is_empty());
    all.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(command: &str, expected: &[&str]) {
        let found = runs(command).unwrap();
        for path in expected {
            assert!(
                found.iter().any(|name| name == path),
                "{command}: {path} is not in {found:?}"
            );
        }
        assert_eq!(found.is_empty(), expected.is_empty(), "{command}: {found:?}");
    }

    #[test]
    fn i7_every_file_that_a_command_runs_is_named() {
        names("sh build.sh", &["build.sh"]);
        names("./x --fast", &["./x"]);
        names("sub/x", &["sub/x"]);
        names("bash -c 'sh build.sh'", &["build.sh"]);
        names("bash -c 'cd sub && sh build.sh'", &["sub/build.sh", "build.sh"]);
        names("env A=b sh build.sh", &["build.sh"]);
        names("env -C sub sh build.sh", &["sub/build.sh"]);
        names("timeout 5 ./x", &["./x"]);
        names("make", &["Makefile", "makefile", "GNUmakefile"]);
        names("make -f other.mk", &["other.mk"]);
        names("make -fother.mk", &["other.mk"]);
        names("make --file=other.mk", &["other.mk"]);
        names("make -C sub", &["sub/Makefile", "Makefile"]);
        names("make -Csub", &["sub/Makefile"]);
        names("npm run x", &["package.json"]);
        names("npm --prefix sub run x", &["sub/package.json"]);
        names("python3 -u tools/x.py", &["tools/x.py"]);
        names("python3 -m app.main", &["app/main.py", "app/main/__main__.py"]);
        names("sed -f script.sed in", &["script.sed"]);
        names("gdb -x cmds prog", &["cmds"]);
        names("frobnicate site.yml", &["site.yml"]);
        names("/opt/x.sh", &["/opt/x.sh"]);
    }

    #[test]
    fn what_runs_no_file_names_none() {
        for command in [
            "ls",
            "grep -n x app.log",
            "touch a",
            "sed -i s/a/b/ x",
            "rm -rf target",
            "git",
        ] {
            names(command, &[]);
        }
        assert!(
            !runs("cargo test --workspace")
                .unwrap()
                .iter()
                .any(|name| name.contains("Cargo"))
        );
    }

    #[test]
    fn i7_too_many_names_are_no_names() {
        let many = |count: usize| format!("x {}", (0..count).map(|n| format!("f{n} ")).collect::<String>());
        assert_eq!(runs(&many(MAX_NAMES)).map(|names| names.len()), Some(MAX_NAMES));
        assert_eq!(runs(&many(MAX_NAMES + 1)), None);
    }

    #[test]
    fn i7_a_part_that_works_elsewhere_moves() {
        for command in [
            "cd sub && sh build.sh",
            "cd /other; cargo test",
            "pushd sub && make",
            "builtin cd sub && make",
            "eval 'cd sub' && make",
            ". ./env && make",
            "cd /w && cd sub && make",
        ] {
            assert!(moves(command, "/w"), "{command}");
        }
        for command in [
            "sh build.sh",
            "cd /w && make",
            "make && make test",
            "bash -c 'cd sub && make'",
        ] {
            assert!(!moves(command, "/w"), "{command}");
        }
    }
}
