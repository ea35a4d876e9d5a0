//! The engine of `--demo`: a small real repository with failing tests, and a script that repairs it.
//!
//! Only the model's output is scripted; the files, the commands and the approvals are real. Session 1 asks for something
//! that a person must approve; the first call of session 2 fails once. A larger demo also shows what else happens in a
//! fleet: sessions that wait, are limited or fail, and one with sub-agents. The prompt identifies the session.

mod projects;

pub use projects::files;

use crate::script::{Script, ScriptedCall, ScriptedConversation, ScriptedFailure, ScriptedTurn};
use agentd_protocol::{FailureClass, Usage};
use projects::{Project, project};
use serde_json::json;

/// The name of the demo's model.
pub const MODEL: &str = "demo";

/// The model of the sessions whose provider limits their rate. It has a provider of its own: a limit applies to all of its
/// sessions.
pub const LIMITED: &str = "demo-limited";

/// The sessions that show the main job.
const MAIN: u32 = 3;

/// The session that has sub-agents.
const LEAD: u32 = 7;

/// Its sub-agents.
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
    /// The delay before each streamed piece of session `n`, in milliseconds. In a large demo, sessions work at different
    /// speeds, and slowly enough that many are at work at the same time.
    const fn ms(self, n: u32, large: bool) -> u64 {
        match (self, large) {
            (Self::Watched, false) => 120,
            (Self::Watched, true) => 400 + 150 * (n % 5) as u64,
            (Self::Fast, _) => 10,
        }
    }

    /// How long session `n` of a large demo waits before it begins, in milliseconds.
    #[must_use]
    pub const fn begins_ms(self, n: u32) -> u64 {
        match self {
            Self::Watched => 300 * n as u64,
            Self::Fast => 0,
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

/// An extra that a session shows in addition to the main job.
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
        (LEAD, _) => Part::Lead,
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

impl Demo {
    /// Whether it shows more than the main job.
    #[must_use]
    pub const fn is_large(self) -> bool {
        self.sessions > MAIN
    }
}

/// The prompt of session `n`.
#[must_use]
pub fn prompt(n: u32) -> String {
    let file = project(n).file;
    format!(
        "The test of {file} fails. Find the bug, fix it and show that `{}` is green. {}",
        test_of(file),
        mark(n)
    )
}

fn mark(n: u32) -> String {
    format!("(demo {n})")
}

/// Permission rules for the demo's sessions: the test may run without approval. Edits need the mode `accept-edits`.
#[must_use]
pub fn rules(n: u32) -> Vec<String> {
    vec![format!("allow Bash({})", test_of(project(n).file))]
}

fn test_of(file: &str) -> String {
    format!("sh test.sh {file}")
}

/// The script of a demo.
#[must_use]
pub fn script(demo: Demo) -> Script {
    let large = demo.is_large();
    let helpers = if large { HELPERS } else { 0 };
    let paced = |n: u32, mut conversation: ScriptedConversation| {
        for turn in &mut conversation.turns {
            turn.delay_ms = demo.pace.ms(n, large);
        }
        conversation
    };
    let sessions = (1..=demo.sessions).map(|n| paced(n, conversation(n, demo.pace)));
    // Sub-agents are as slow as the slowest session, so that a person sees them.
    let helpers = (1..=helpers).map(|n| paced(4, helper(n)));
    Script {
        turns: Vec::new(),
        after: None,
        conversations: sessions.chain(helpers).collect(),
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
        turn("Now I run the test, to see it fail.", vec![test_call(file)]),
        turn(
            &format!("The test says:\n\n{{{{last_result}}}}\n\n{cause} I change that one line."),
            vec![call(
                "Edit",
                json!({ "file_path": file, "old_string": wrong, "new_string": right }),
            )],
        ),
        turn("I run the test again.", vec![test_call(file)]),
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
        1 => project(LEAD).file,
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
            turn(
                "I look at what the test says, too.",
                vec![test_call(project(LEAD).file)],
            ),
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

fn test_call(file: &str) -> ScriptedCall {
    call(
        "Bash",
        json!({ "command": test_of(file), "description": "Run the test" }),
    )
}

fn call(name: &str, input: serde_json::Value) -> ScriptedCall {
    ScriptedCall {
        name: name.to_owned(),
        input,
    }
}

#[cfg(test)]
mod tests;
