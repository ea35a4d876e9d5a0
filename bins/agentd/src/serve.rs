//! Runs a node from a configuration: starts it, announces it, waits for its end.

use crate::args::{Args, Verb};
use crate::{EXIT_INTERNAL, demo, fail, migrate, surroundings};
use agentd_file_work::Limits as FileLimits;
use agentd_node::{Ended, Node, NodeArgs, NodeError, Paths, Restored};
use agentd_settings::{Loaded, Settings, Sources};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Threads for blocking work, started on demand. All file work together takes fewer ([`FileLimits::all`]), so CPU work
/// and name lookups always find a free one.
const BLOCKING_THREADS: usize = 1_152;
/// How long an idle thread is kept.
const BLOCKING_KEPT: Duration = Duration::from_secs(2);

pub(crate) fn run(
    args: &Args,
    loaded: Loaded,
    (environment, sources): (BTreeMap<String, String>, Sources),
) -> ExitCode {
    // The demo has its own data directory, so it always works, also next to a daemon with real work.
    let temporary = match (&args.demo, &args.data_dir) {
        (Some(_), None) => match tempfile::Builder::new().prefix("agentd-demo-").tempdir() {
            Ok(dir) => Some(dir),
            Err(error) => {
                return fail(
                    1,
                    &format!("cannot create a temporary directory for the demo: {error}"),
                );
            }
        },
        _ => None,
    };
    let settings = &loaded.settings.node;
    let data_dir = args.data_dir.clone().or_else(|| configured(&settings.data_dir));
    let data_dir = temporary
        .as_ref()
        .map(|dir| dir.path().to_path_buf())
        .or(data_dir);
    let socket = args.socket.clone().or_else(|| configured(&settings.socket));
    let paths = match Paths::choose(
        &surroundings(&environment),
        data_dir.as_deref(),
        socket.as_deref(),
    ) {
        Ok(paths) => paths,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Some(verb) = &args.verb {
        return perform(verb, args, &loaded.settings, &environment, &paths);
    }
    if let Err(error) = paths.create().and_then(|()| {
        agentd_node::start_logging(&paths, &loaded.settings.log, args.log.as_deref(), args.verbose)
    }) {
        return fail(error.exit_code(), &error.to_string());
    }
    agentd_provider::set_answers_bytes(loaded.settings.limits.answers_bytes);
    let limits = FileLimits::default();
    agentd_file_work::set_limits(FileLimits {
        requester: loaded.settings.limits.session_files as usize,
        system: loaded.settings.limits.filesystem_files as usize,
        ..limits
    });
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(EXIT_INTERNAL, &format!("cannot start the async runtime: {error}")),
    };
    let outcome = runtime.block_on(serve(args, loaded, (environment, sources), paths));
    // Unfinished blocking work, such as a tool's file access, must not delay the exit.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match outcome {
        Ok(Ended::Stopped) => ExitCode::SUCCESS,
        Ok(Ended::Failed(why)) => fail(EXIT_INTERNAL, &why),
        Err(error) => fail(error.exit_code(), &error.to_string()),
    }
}

/// What the daemon's program does instead of serving.
fn perform(
    verb: &Verb,
    args: &Args,
    settings: &Settings,
    environment: &BTreeMap<String, String>,
    paths: &Paths,
) -> ExitCode {
    match verb {
        Verb::Restore { file, replace } => {
            let done = agentd_node::restore(settings, file, &paths.data_dir, *replace);
            restored(done, paths)
        }
        Verb::Migrate { .. } => migrate::run(verb, &settings.store, environment, args.data_dir.clone()),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_KEPT)
        .thread_name("agentd")
        .build()
}

/// Prints the result of a restore.
fn restored(done: Result<Restored, NodeError>, paths: &Paths) -> ExitCode {
    let done = match done {
        Ok(done) => done,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    let mut text = format!(
        "restored {} sessions as of {} (agentd {}) to {}\n",
        done.of.sessions,
        done.of.at,
        done.of.version,
        paths.data_dir.display()
    );
    if let Some(former) = done.replaced {
        text.push_str(&format!("the previous content is in {}\n", former.display()));
    }
    for problem in done.problems {
        text.push_str(&format!("already damaged when the backup was made: {problem}\n"));
    }
    // A closed pipe is not worth an error message.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn configured(path: &str) -> Option<PathBuf> {
    (!path.is_empty()).then(|| PathBuf::from(path))
}

async fn serve(
    args: &Args,
    loaded: Loaded,
    (environment, sources): (BTreeMap<String, String>, Sources),
    paths: Paths,
) -> Result<Ended, NodeError> {
    let socket = paths.socket.clone();
    let demo = args.demo.map(|sessions| demo::paced(sessions, args.fast));
    let temporary = demo.is_some() && args.data_dir.is_none();
    let notify = environment.get("NOTIFY_SOCKET").cloned();
    let path = environment.get("PATH").cloned().unwrap_or_default();
    let drain_timeout = loaded.settings.node.drain_timeout;
    let strays = match agentd_sandbox::Strays::adopt(tell_strays) {
        Ok(strays) => Some(strays),
        Err(error) => {
            tracing::warn!(%error, "cannot adopt orphaned processes; at the sandbox level none, they go to init");
            None
        }
    };
    let node = Node::start(NodeArgs {
        loaded,
        environment,
        paths,
        demo,
        accept_loss: args.accept_loss,
        sources,
    })
    .await?;
    let ctl = agentctl(node.socket(), node.default_socket(), &path);
    announce(&node, notify.as_deref(), demo.is_none().then_some(&ctl));
    let showing = demo.map(|demo| tokio::spawn(demo::show(demo, socket, ctl)));
    let ended = node.until_ended(|| tell_signal(drain_timeout, temporary)).await;
    if let Some(showing) = showing {
        showing.abort();
    }
    if let Some(strays) = strays {
        tell_strays(strays.end().await);
    }
    say("agentd stopped");
    Ok(ended)
}

/// Logs stray processes. There are none unless a tool killed its warden.
fn tell_strays(count: usize) {
    if count > 0 {
        tracing::warn!(count, "killed stray processes of a tool whose warden was killed");
    }
}

/// Tells the user what the node waits for after a signal.
fn tell_signal(drain_timeout: Duration, temporary: bool) {
    let after = if temporary {
        "The demo's sessions and files will be deleted"
    } else {
        "Open turns continue at the next start"
    };
    say(&format!(
        "stopping: waiting up to {} s for running calls; a second Ctrl-C (or SIGTERM) stops at once. {after}",
        drain_timeout.as_secs()
    ));
}

fn say(line: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints to stderr that the daemon is ready, its model and why, and what to type next (a demo prints that at its end).
fn announce(node: &Node, notify: Option<&str>, ctl: Option<&String>) {
    let mut lines = vec![
        format!(
            "agentd ready on {} (pid {})",
            node.socket().display(),
            std::process::id()
        ),
        format!("  http:  {}", node.http_note()),
        format!("  model: {}", node.model_note()),
        format!("  data:  {}", node.data_dir().display()),
    ];
    if let Some(ctl) = ctl {
        lines.push(format!("  next:  {ctl} run \"what does this project do?\""));
        lines.push(format!("         {ctl} ps"));
        lines.push(format!("         {ctl} open   # the page, in a browser"));
        lines.push(format!("         {ctl} help"));
    }
    for line in lines {
        say(&line);
    }
    if notify.is_some()
        && let Err(error) = agentd_node::notify_ready()
    {
        tracing::warn!(%error, "could not notify the service manager");
    }
}

/// The `agentctl` command for this daemon. In a checkout, the program may not be built yet.
fn agentctl(socket: &Path, default_socket: bool, path: &str) -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    let beside = exe.with_file_name("agentctl");
    let on_path = std::env::split_paths(path).any(|dir| dir.join("agentctl") == beside);
    let in_checkout = exe
        .ancestors()
        .any(|dir| dir.file_name().is_some_and(|name| name == "target"));
    let program = if beside.exists() && !on_path {
        beside.display().to_string()
    } else if in_checkout && !on_path {
        "cargo run -qp agentctl --".to_owned()
    } else {
        "agentctl".to_owned()
    };
    if default_socket {
        program
    } else {
        format!("{program} --socket {}", socket.display())
    }
}
