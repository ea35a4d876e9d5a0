//! The engine of `--demo`: small real projects with a failing test, and a script that repairs them.
//!
//! Only the model's output is scripted; the files, the commands and the approvals are real. Session 1 asks for something
//! that a person must approve; the first call of session 2 fails once. A larger demo also shows what else happens in a
//! fleet: sessions that wait, are limited or fail, and one with sub-agents. The prompt identifies the session.

use crate::script::{Script, ScriptedCall, ScriptedConversation, ScriptedFailure, ScriptedTurn};
use agentd_protocol::{FailureClass, Usage};
use serde_json::json;

/// The name of the demo's model.
pub const MODEL: &str = "demo";

/// The model of the sessions whose provider limits their rate. It has a provider of its own: a limit applies to all of its
/// sessions.
pub const LIMITED: &str = "demo-limited";

/// The sessions that show the main job.
pub const MAIN: u32 = 3;

/// The sub-agents of the session that has some.
const HELPERS: u32 = 3;

/// The speed of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A person is watching.
    Watched,
    /// Unattended.
    Fast,
}

impl Pace {
    /// The delay before each streamed piece, in milliseconds.
    const fn ms(self) -> u64 {
        match self {
            Self::Watched => 120,
            Self::Fast => 10,
        }
    }

    /// How long the provider limits the rate, in milliseconds.
    const fn limit_ms(self) -> u64 {
        match self {
            Self::Watched => 15_000,
            Self::Fast => 100,
        }
    }
}

/// What a session shows besides the main job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Nothing.
    Plain,
    /// A request that a person must approve.
    Approval,
    /// A provider without capacity, once.
    Overloaded,
    /// A provider that limits the rate.
    Limited,
    /// A call that fails for good.
    Failing,
    /// Sub-agents.
    Lead,
}

const fn part(n: u32) -> Part {
    match (n, n % 8) {
        (1, _) | (MAIN.., 6) => Part::Approval,
        (2, _) => Part::Overloaded,
        (7, _) => Part::Lead,
        (MAIN.., 4) => Part::Limited,
        (MAIN.., 5) => Part::Failing,
        _ => Part::Plain,
    }
}

/// The model of session `n`.
#[must_use]
pub const fn model(n: u32) -> &'static str {
    match part(n) {
        Part::Limited => LIMITED,
        Part::Plain | Part::Approval | Part::Overloaded | Part::Failing | Part::Lead => MODEL,
    }
}

/// The label `team` of session `n`.
#[must_use]
pub const fn team(n: u32) -> &'static str {
    match n % 3 {
        1 => "web",
        2 => "core",
        _ => "operations",
    }
}

/// A demo: the number of sessions, and the speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demo {
    /// The number of sessions.
    pub sessions: u32,
    /// Its speed.
    pub pace: Pace,
}

/// A project: one script with one bug.
struct Project {
    file: &'static str,
    before: &'static str,
    wrong: &'static str,
    right: &'static str,
    after: &'static str,
    arguments: &'static str,
    want: &'static str,
    cause: &'static str,
}

const PROJECTS: [Project; 3] = [
    Project {
        file: "greet.sh",
        before: "#!/bin/sh\n# Greets somebody by name.\nname=${1:-world}\n",
        wrong: "printf 'Helo, %s\\n' \"$name\"",
        right: "printf 'Hello, %s!\\n' \"$name\"",
        after: "\n",
        arguments: "ada",
        want: "Hello, ada!",
        cause: "The greeting is misspelled and lacks its exclamation mark.",
    },
    Project {
        file: "sum.sh",
        before: "#!/bin/sh\n# Adds up its arguments.\n",
        wrong: "total=1",
        right: "total=0",
        after: "\nfor number in \"$@\"; do\n    total=$((total + number))\ndone\necho \"$total\"\n",
        arguments: "1 2 3",
        want: "6",
        cause: "The sum starts at one instead of zero.",
    },
    Project {
        file: "slug.sh",
        before: "#!/bin/sh\n# Turns a title into a file name.\n",
        wrong: "printf '%s\\n' \"$1\" | tr 'A-Z' 'a-z'",
        right: "printf '%s\\n' \"$1\" | tr 'A-Z ' 'a-z-'",
        after: "\n",
        arguments: "'Agents At Work'",
        want: "agents-at-work",
        cause: "Spaces are never turned into dashes.",
    },
];

fn project(n: u32) -> &'static Project {
    let [greet, sum, slug] = &PROJECTS;
    match n % 3 {
        1 => greet,
        2 => sum,
        _ => slug,
    }
}

/// The files of session `n` (from 1): relative path and content. The test fails until the bug is fixed.
#[must_use]
pub fn project_files(n: u32) -> Vec<(String, String)> {
    let Project {
        file,
        before,
        wrong,
        after,
        arguments,
        want,
        ..
    } = project(n);
    let test = format!(
        "#!/bin/sh\n# The test of this project; it needs nothing but sh.\n\
         got=$(sh {file} {arguments})\nwant='{want}'\n\
         if [ \"$got\" = \"$want\" ]; then\n    echo \"ok: {file} printed '$got'\"\n\
         else\n    echo \"FAILED: {file} printed '$got' instead of '$want'\"\n    exit 1\nfi\n"
    );
    let readme = format!("# Demo project {n}\n\nOne script, `{file}`, and its test: `sh test.sh`.\n");
    vec![
        ((*file).to_owned(), format!("{before}{wrong}{after}")),
        ("test.sh".to_owned(), test),
        ("README.md".to_owned(), readme),
    ]
}

/// The prompt of session `n`.
#[must_use]
pub fn prompt(n: u32) -> String {
    format!(
        "The test of this project fails. Find the bug in {}, fix it and show that `sh test.sh` is green. {}",
        project(n).file,
        mark(n)
    )
}

fn mark(n: u32) -> String {
    format!("(demo {n})")
}

/// Permission rules for the demo's sessions: the test may run without approval. Edits need the mode `accept-edits`.
#[must_use]
pub fn rules() -> Vec<String> {
    vec!["allow Bash(sh test.sh)".to_owned()]
}

/// The script of a demo.
#[must_use]
pub fn script(demo: Demo) -> Script {
    let helpers = if demo.sessions > MAIN { HELPERS } else { 0 };
    let sessions = (1..=demo.sessions).map(|n| conversation(n, demo.pace));
    let paced = |mut conversation: ScriptedConversation| {
        for turn in &mut conversation.turns {
            turn.delay_ms = demo.pace.ms();
        }
        conversation
    };
    Script {
        turns: Vec::new(),
        after: None,
        conversations: sessions.chain((1..=helpers).map(helper)).map(paced).collect(),
    }
}

fn conversation(n: u32, pace: Pace) -> ScriptedConversation {
    let Project {
        file,
        wrong,
        right,
        cause,
        ..
    } = project(n);
    let mut turns = vec![
        turn(
            "I start with the script and its test.",
            vec![
                call("Read", json!({ "file_path": file })),
                call("Read", json!({ "file_path": "test.sh" })),
            ],
        ),
        turn("Now I run the test, to see it fail.", vec![test_call()]),
        turn(
            &format!("The test says:\n\n{{{{last_result}}}}\n\n{cause} I change that one line."),
            vec![call(
                "Edit",
                json!({ "file_path": file, "old_string": wrong, "new_string": right }),
            )],
        ),
        turn("I run the test again.", vec![test_call()]),
    ];
    if part(n) == Part::Approval {
        turns.push(turn(
            "The test is green. The script should be executable, too; that needs your approval.",
            vec![call(
                "Bash",
                json!({ "command": format!("chmod +x {file}"), "description": "Make the script executable" }),
            )],
        ));
    }
    let last = format!("Done. {cause} I fixed it in `{file}`. The last command said:\n\n{{{{last_result}}}}");
    turns.push(turn(&last, Vec::new()));
    if part(n) == Part::Lead {
        turns.insert(
            0,
            turn(
                "I have the files checked while I look for the bug.",
                (1..=HELPERS).map(task).collect(),
            ),
        );
    }
    if let Some((number, fail)) = failure(n, pace)
        && let Some(turn) = turns.get_mut(number)
    {
        turn.fail = Some(fail);
    }
    let after =
        "The script of the demo ends here. To continue, configure a real model: see `agentctl models`."
            .to_owned();
    ScriptedConversation {
        when: mark(n),
        after: Some(after),
        turns,
    }
}

/// The turn of session `n` whose call fails, from 0, and how.
fn failure(n: u32, pace: Pace) -> Option<(usize, ScriptedFailure)> {
    let fails = |class, message: &str, retry_after_ms, attempts| ScriptedFailure {
        class,
        message: format!("the scripted provider {message} (this failure is part of the demo)"),
        retry_after_ms,
        attempts,
    };
    match part(n) {
        Part::Overloaded => Some((0, fails(FailureClass::Overloaded, "has no capacity", None, 1))),
        Part::Limited => {
            let limit = Some(pace.limit_ms());
            Some((1, fails(FailureClass::RateLimited, "limits the rate", limit, 1)))
        }
        Part::Failing => Some((
            2,
            fails(
                FailureClass::InvalidRequest,
                "refuses the request",
                None,
                u32::MAX,
            ),
        )),
        Part::Plain | Part::Approval | Part::Lead => None,
    }
}

fn helper_mark(number: u32) -> String {
    format!("(demo helper {number})")
}

fn helper_file(number: u32) -> &'static str {
    match number {
        1 => project(7).file,
        2 => "test.sh",
        _ => "README.md",
    }
}

/// The call that starts a sub-agent.
fn task(number: u32) -> ScriptedCall {
    let file = helper_file(number);
    let prompt = format!(
        "Read {file} and say whether it is in order. Change nothing. {}",
        helper_mark(number)
    );
    call(
        "Task",
        json!({ "description": format!("Check {file}"), "prompt": prompt }),
    )
}

/// A sub-agent of the session that has some.
fn helper(number: u32) -> ScriptedConversation {
    let file = helper_file(number);
    ScriptedConversation {
        when: helper_mark(number),
        after: None,
        turns: vec![
            turn(
                &format!("I read {file}."),
                vec![call("Read", json!({ "file_path": file }))],
            ),
            turn("I look at what the test says, too.", vec![test_call()]),
            turn(
                &format!("`{file}` is readable and complete. The test fails for now."),
                Vec::new(),
            ),
        ],
    }
}

fn turn(text: &str, calls: Vec<ScriptedCall>) -> ScriptedTurn {
    let output = (text.len() / 4) as u64;
    ScriptedTurn {
        text: text.to_owned(),
        calls,
        usage: Some(Usage {
            input: 800,
            output,
            ..Usage::default()
        }),
        ..ScriptedTurn::default()
    }
}

fn test_call() -> ScriptedCall {
    call(
        "Bash",
        json!({ "command": "sh test.sh", "description": "Run the test" }),
    )
}

fn call(name: &str, input: serde_json::Value) -> ScriptedCall {
    ScriptedCall {
        name: name.to_owned(),
        input,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sessions_bug_is_in_its_file_once_and_its_mend_is_not() {
        for n in 1..=6 {
            let files = project_files(n);
            let Project {
                file, wrong, right, ..
            } = project(n);
            let (_, content) = files.iter().find(|(name, _)| name == file).unwrap();
            assert_eq!(
                (content.matches(wrong).count(), content.contains(right)),
                (1, false),
                "session {n}"
            );
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test of shell scripts needs a shell")]
    fn run_test(dir: &std::path::Path) -> (bool, String) {
        let output = std::process::Command::new("sh")
            .arg("test.sh")
            .current_dir(dir)
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    #[test]
    fn each_projects_test_fails_until_the_scripted_edit_is_made() {
        for n in 1..=3 {
            let dir = std::env::temp_dir().join(format!("agentd-demo-{}-{n}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).unwrap();
            for (name, content) in project_files(n) {
                std::fs::write(dir.join(name), content).unwrap();
            }
            let Project {
                file,
                before,
                right,
                after,
                want,
                ..
            } = project(n);
            let (green, said) = run_test(&dir);
            assert!(!green && said.starts_with("FAILED: "), "session {n}: {said}");
            std::fs::write(dir.join(file), format!("{before}{right}{after}")).unwrap();
            assert_eq!(
                run_test(&dir),
                (true, format!("ok: {file} printed '{want}'\n")),
                "session {n}"
            );
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn a_large_demo_has_every_part_and_a_small_one_the_main_job_only() {
        let count = |wanted| (1..=50).filter(|n| part(*n) == wanted).count();
        let rare = [Part::Approval, Part::Limited, Part::Failing, Part::Lead].map(count);
        assert_eq!(rare, [7, 6, 6, 1]);
        assert_eq!(
            (1..=3).map(part).collect::<Vec<_>>(),
            [Part::Approval, Part::Overloaded, Part::Plain]
        );
        for n in 1..=50 {
            assert_eq!(model(n) == LIMITED, part(n) == Part::Limited, "{n}");
        }
    }

    #[test]
    fn each_prompt_finds_its_own_conversation() {
        let script = script(Demo {
            sessions: 50,
            pace: Pace::Fast,
        });
        for n in 1..=50 {
            let prompt = prompt(n);
            let matching: Vec<&str> = script
                .conversations
                .iter()
                .filter(|conversation| prompt.contains(&conversation.when))
                .map(|conversation| conversation.when.as_str())
                .collect();
            assert_eq!(matching, [mark(n)]);
        }
    }
}
