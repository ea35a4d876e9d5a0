//! Shell completion: sessions, approvals and models from the running daemon, and the program's own fixed words.

use crate::cli::{Cli, Global, understood, verb};
use crate::contexts::Address;
use crate::dial::{Dial, connect};
use crate::environment::Environment;
use crate::render::one_line;
use crate::verbs::help::TOPICS;
use crate::verbs::lifecycle::Order;
use agentd_client::Client;
use agentd_protocol::{
    ApprovalKind, ApprovalListParams, EVENT_KINDS, ListParams, OpenApproval, RunState, Summary,
};
use clap::CommandFactory as _;
use clap_complete::CompletionCandidate;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;
use std::time::Duration;

/// Keeps the shell responsive when the daemon is gone.
const DEADLINE: Duration = Duration::from_millis(400);
/// No shell shows more candidates than this.
const MOST: u32 = 200;

/// Completers are plain functions without parameters for context, so `remember` leaves it here.
static TYPED: OnceLock<Typed> = OnceLock::new();

/// The daemon's address, and the verb that precedes the word being completed.
struct Typed {
    address: Address,
    verb: String,
}

/// Records the daemon and the verb of the command line being completed.
pub(crate) fn remember(environment: &Environment, args: impl Iterator<Item = OsString>) {
    // The shell's script calls `agentctl -- agentctl VERB ...`.
    let line = understood(args.skip_while(|arg| arg != "--").skip(1));
    let Ok(dial) = Dial::choose(&global(&line, environment), environment) else {
        return;
    };
    let verb = verb(&line).1.to_owned();
    let _ = TYPED.set(Typed {
        address: dial.address,
        verb,
    });
}

/// The flags that choose a daemon. They may be anywhere in the line, and the line may not parse yet.
fn global(line: &[OsString], environment: &Environment) -> Global {
    let words: Vec<&str> = line.iter().filter_map(|word| word.to_str()).collect();
    let value = |flag: &str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let rest = word.strip_prefix(flag)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None if rest.is_empty() => words.get(at + 1).copied(),
                None => None,
            }
        })
    };
    let socket = value("--socket").map(|path| match (path.strip_prefix("~/"), environment.path("HOME")) {
        // No shell has expanded the `~`.
        (Some(below), Some(home)) => home.join(below),
        _ => path.into(),
    });
    Global {
        socket,
        context: value("--context").map(str::to_owned),
        ..Global::default()
    }
}

/// The sessions that the verb applies to, and the open approvals if the verb takes them.
pub(crate) fn sessions(current: &OsStr) -> Vec<CompletionCandidate> {
    let verb = TYPED.get().map_or("", |typed| typed.verb.as_str());
    let params = ListParams {
        limit: MOST,
        all: fits_closed(verb),
        ..ListParams::default()
    };
    let asked = ask(async |client| {
        let rows = client.list(&params).await.ok()?;
        let open = if takes_approvals(verb) {
            client.approvals(&ApprovalListParams::default()).await.ok()?
        } else {
            Vec::new()
        };
        Some((rows, open))
    });
    let (rows, open) = asked.unwrap_or_default();
    let rows = rows.iter().filter(|row| fits(verb, row)).map(|row| {
        let about = format!("{} ({})", one_line(&row.name, 40), row.status.state);
        (row.session.short(), about)
    });
    let open = open.iter().filter(|open| answers(verb, open));
    let open = open.map(|open| (open.approval.short(), one_line(&open.title, 60)));
    candidates(current, open.chain(rows))
}

/// The names of the configured models.
pub(crate) fn models(current: &OsStr) -> Vec<CompletionCandidate> {
    let models = ask(async |client| client.models().await.ok()).unwrap_or_default();
    let named = models.into_iter().map(|model| (model.name, model.model));
    candidates(current, named)
}

/// The states of sessions.
pub(crate) fn states(current: &OsStr) -> Vec<CompletionCandidate> {
    let families = ["running", "waiting"].map(str::to_owned);
    let states = RunState::all().map(|state| state.to_string());
    of_list(current, families.into_iter().chain(states))
}

/// The types of events, and their families.
pub(crate) fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let families = EVENT_KINDS.iter().filter_map(|kind| kind.split('.').next());
    let all: BTreeSet<&str> = families.chain(EVENT_KINDS.iter().copied()).collect();
    of_list(current, all.into_iter().map(str::to_owned))
}

/// The topics of `help`.
pub(crate) fn topics(current: &OsStr) -> Vec<CompletionCandidate> {
    let topics = TOPICS
        .iter()
        .map(|(name, _)| ((*name).to_owned(), "a topic".to_owned()));
    let program = Cli::command();
    let verbs = program.get_subcommands().map(|verb| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        (verb.get_name().to_owned(), about)
    });
    candidates(current, topics.chain(verbs))
}

fn candidates(current: &OsStr, words: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    words
        .filter(|(word, _)| word.starts_with(&*typed))
        .map(|(word, about)| CompletionCandidate::new(word).help(Some(about.into())))
        .collect()
}

/// Completes the last value of a comma-separated list.
fn of_list(current: &OsStr, words: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let done = typed
        .rfind(',')
        .map_or("", |at| typed.get(..=at).unwrap_or_default());
    candidates(
        current,
        words.map(|word| (format!("{done}{word}"), String::new())),
    )
}

fn takes_approvals(verb: &str) -> bool {
    matches!(verb, "approve" | "deny" | "answer" | "approvals")
}

/// Whether the verb can answer this approval: `answer` takes text, which a tool call does not.
fn answers(verb: &str, open: &OpenApproval) -> bool {
    match verb {
        "answer" => open.kind != ApprovalKind::Tool,
        _ => true,
    }
}

/// Whether the verb also applies to closed sessions.
fn fits_closed(verb: &str) -> bool {
    matches!(
        verb,
        "show" | "inspect" | "describe" | "logs" | "export" | "diff" | "fork" | "rm"
    )
}

/// Whether the verb applies to the session.
fn fits(verb: &str, row: &Summary) -> bool {
    match verb {
        "approve" | "deny" => row.open_approvals.len() == 1,
        "answer" => matches!(row.open_approvals.as_slice(), [open] if answers(verb, open)),
        "approvals" => !row.open_approvals.is_empty(),
        "cancel" => Order::cancel(None, false).fits(row),
        "kill" => Order::cancel(None, true).fits(row),
        "pause" => Order::Pause(None).fits(row),
        "resume" => Order::Resume(None).fits(row),
        _ => true,
    }
}

/// Asks the daemon; `None` if it does not answer within the deadline.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Option<T>) -> Option<T> {
    let typed = TYPED.get()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let asked = async { question(connect(&typed.address, DEADLINE).await.ok()?).await };
        tokio::time::timeout(DEADLINE, asked).await.ok().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn completion_uses_the_daemon_that_the_line_selects() {
        let environment = Environment::new([("HOME".into(), "/home/ana".into())], None);
        let of = |line: &str| {
            let line = understood(line.split(' ').map(OsString::from));
            let global = global(&line, &environment);
            (global.socket, global.context)
        };
        let socket = |path: &str| (Some(PathBuf::from(path)), None);
        assert_eq!(of("agentctl --socket /a attach x"), socket("/a"));
        assert_eq!(of("agentctl attach --socket=/a x"), socket("/a"));
        assert_eq!(of("agentctl attach --socket ~/a"), socket("/home/ana/a"));
        assert_eq!(
            of("agentctl --context lab attach x"),
            (None, Some("lab".to_owned()))
        );
        assert_eq!(
            of("agentctl show x --context y"),
            (None, None),
            "that is the window"
        );
        assert_eq!(of("agentctl ps --socket"), (None, None));
    }
}
