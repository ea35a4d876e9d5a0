//! Writes to protected paths: they need an approval whatever mode and rule would allow them, unless a rule names the path.

use crate::nested::base;
use crate::operands;
use crate::path::{absolute, expand_home, inside};
use crate::pattern::Pattern;
use crate::policy::Policy;
use crate::request::{Request, Subject};
use crate::rule::Rule;
use crate::shell::{Analysis, analyse};
use agentd_protected::{Guard, Reason};
use std::path::Path;

/// Subcommands of git that write its configuration or create repositories.
const GIT: [&str; 6] = ["clone", "config", "init", "remote", "submodule", "worktree"];
/// The maximum number of protected paths that are examined per call; all of them go into one question.
const MOST: usize = 64;

/// A protected path that a call writes.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The path as shown to people.
    path: String,
    guard: Guard,
    /// The call names the path; it is not just a path that the program is known to write.
    named: bool,
}

impl Guarded {
    /// Whether it needs an approval in mode yolo, too: git runs such files when a person uses git, and a shell or a desktop
    /// when a person logs in.
    pub(crate) fn in_every_mode(&self) -> bool {
        self.named && !matches!(self.guard.reason, Reason::Hidden | Reason::Instructions)
    }

    /// The reason for the question.
    pub(crate) fn why(&self) -> String {
        let (path, words) = (&self.path, self.guard.reason.words());
        format!("writing {path} may run code outside the sandbox: {words}")
    }

    /// Whether an allow rule names this path: its pattern has the protected component as a whole name, or it is the exact
    /// command. A wide pattern was written with ordinary files in mind.
    pub(crate) fn is_spelled_by(&self, rule: &Rule) -> bool {
        let spells = |text: &str| {
            let mut names = text.split(['/', '(', ')']);
            !self.guard.component.is_empty() && names.any(|name| name == self.guard.component)
        };
        match &rule.pattern {
            Pattern::Path(_) => spells(&rule.text),
            Pattern::Command(words) if self.named => {
                !words.is_prefix() || spells(&rule.text.replace(' ', "/"))
            }
            // The rule names the subcommand.
            Pattern::Command(words) => !words.is_prefix() || words.len() > 1,
            Pattern::Any | Pattern::Url(_) | Pattern::Version(_) => false,
        }
    }
}

/// The protected paths that a call writes.
pub(crate) fn guarded(
    policy: &Policy,
    request: &Request<'_>,
    path: Option<&str>,
    analysis: Option<&Analysis>,
) -> Vec<Guarded> {
    match (request.subject, path, analysis) {
        (Subject::Path { write: true, .. }, Some(path), _) => {
            one(policy, request.workdir, path).into_iter().collect()
        }
        (Subject::Command { .. }, _, Some(analysis)) => {
            let written =
                written(analysis).map(|word| absolute(request.workdir, &expand_home(policy.home(), word)));
            let paths = written.filter_map(|path| one(policy, request.workdir, &path));
            paths.chain(by_git(analysis)).take(MOST).collect()
        }
        _ => Vec::new(),
    }
}

/// The paths that a command's text names as written. If there are none, the paths named by git's configuration do not
/// affect the judgement, so a caller need not read it.
#[must_use]
pub fn written_paths(command: &str) -> Vec<String> {
    written(&analyse(command)).take(MOST).map(str::to_owned).collect()
}

/// An absolute path, if it is protected. Outside the working directory, it counts from the home directory or the root.
fn one(policy: &Policy, workdir: &str, path: &str) -> Option<Guarded> {
    let home = || policy.home().and_then(|home| inside(home, path));
    let relative = inside(workdir, path).or_else(home);
    let relative = relative.unwrap_or_else(|| path.trim_start_matches('/'));
    let protected = policy.protected();
    let place = protected.place_at(Path::new(workdir), Path::new(path));
    let guard = place
        .map(Guard::from)
        .or_else(|| protected.guard(Path::new(relative)))?;
    Some(Guarded {
        path: relative.chars().take(200).collect(),
        guard,
        named: true,
    })
}

/// The words of a command that name the files it writes. If it writes anything, the directories it changes to count, too.
/// What git itself writes is judged by its subcommand.
fn written(analysis: &Analysis) -> impl Iterator<Item = &str> {
    let of = |git: bool| {
        let commands = analysis
            .commands
            .iter()
            .filter(move |argv| is(argv, &["git"]) == git);
        commands
            .flat_map(|argv| operands::written(argv))
            .collect::<Vec<_>>()
    };
    let (by_git, by_others) = (of(true), of(false));
    let words = analysis.written();
    let words = words.filter(move |word| {
        let among = |paths: &[String]| paths.iter().any(|path| path == word);
        !among(&by_git) || among(&by_others)
    });
    let writes = analysis.written().next().is_some();
    let changes = analysis
        .commands
        .iter()
        .filter(move |argv| writes && is(argv, &["cd", "pushd"]));
    words.chain(changes.flat_map(|argv| argv.iter().skip(1)).map(String::as_str))
}

fn is(argv: &[String], names: &[&str]) -> bool {
    argv.first().is_some_and(|name| names.contains(&base(name)))
}

fn by_git(analysis: &Analysis) -> Option<Guarded> {
    let writes = |argv: &Vec<String>| {
        is(argv, &["git"]) && argv.iter().skip(1).any(|word| GIT.contains(&word.as_str()))
    };
    analysis.commands.iter().any(writes).then(|| Guarded {
        path: ".git".to_owned(),
        guard: Guard {
            reason: Reason::GitMetadata,
            component: ".git".to_owned(),
        },
        named: false,
    })
}
