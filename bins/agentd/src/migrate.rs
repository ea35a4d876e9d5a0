//! `agentd migrate`: its progress and its result.

use crate::args::Verb;
use crate::fail;
use agentd_node::{Migrate, Migrated, Progress, Task};
use agentd_settings::{StoreConfig, mask_url};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the verb.
pub(crate) fn run(
    verb: &Verb,
    store: &StoreConfig,
    environment: &BTreeMap<String, String>,
    data_dir: Option<PathBuf>,
) -> ExitCode {
    let Verb::Migrate {
        from,
        to,
        node,
        dry_run,
        verify,
        json,
    } = verb
    else {
        return ExitCode::FAILURE;
    };
    let task = match (dry_run, verify) {
        (true, _) => Task::DryRun,
        (false, true) => Task::Verify,
        (false, false) => Task::Copy,
    };
    let migrate = Migrate {
        from: from.clone(),
        to: to.clone(),
        data_dir,
        node: node.clone(),
        task,
    };
    let on_terminal = std::io::stderr().is_terminal();
    let done = agentd_node::migrate(&migrate, store, environment, &mut |progress| {
        if on_terminal {
            line(&told(progress));
        }
        Ok(())
    });
    if on_terminal {
        line("");
    }
    let done = match done {
        Ok(done) => done,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    let (from, to) = (mask_url(from), mask_url(to));
    let text = if *json {
        let result = json!({
            "from": from, "to": to, "dry_run": dry_run, "cursor": done.cursor, "copied": done.copied, "sums": done.sums,
            "problems": done.problems,
        });
        format!("{result}\n")
    } else {
        words(&done, task, &from, &to)
    };
    // A closed pipe is not worth an error message.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Replaces the line of progress.
fn line(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\u{1b}[K{text}").and_then(|()| stderr.flush());
}

fn told(progress: Progress) -> String {
    let Progress { table, done, of } = progress;
    table.map_or_else(
        || "comparing both databases".to_owned(),
        |table| format!("copying {table}: {done} of {of}"),
    )
}

fn words(done: &Migrated, task: Task, from: &str, to: &str) -> String {
    let copied = |table| done.copied.get(table).copied().unwrap_or_default();
    let (sessions, events) = (copied("session"), copied("event"));
    let mut text = match task {
        Task::DryRun => format!("would copy {sessions} sessions and {events} events from {from} to {to}\n"),
        Task::Verify => format!("{from} and {to} have the same content\n"),
        Task::Copy => format!(
            "copied {sessions} sessions and {events} events from {from} to {to}, and compared both\n\
             set store.url to the new database before you start agentd; do not use the old one any more\n"
        ),
    };
    for (table, sum) in &done.sums {
        text.push_str(&format!(
            "  {table:<12} {:>9} rows  sha256 {}\n",
            sum.rows, sum.sha256
        ));
    }
    for problem in &done.problems {
        text.push_str(problem);
        text.push('\n');
    }
    text
}
