//! The daemon. `main` reads the process environment once, then calls `agentd-node`.

mod args;
mod demo;
mod migrate;
mod serve;
mod tools;

use agentd_node::Surroundings;
use agentd_settings::Sources;
use args::Args;
use clap::Parser as _;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Wrong usage or configuration.
const EXIT_USAGE: u8 = 2;
/// An internal failure.
const EXIT_INTERNAL: u8 = 70;

/// glibc's allocator takes a sixth of a step's CPU time and keeps the memory of a burst. Settings: `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // The daemon starts itself again as the warden that runs commands. This must happen before any thread starts.
    let is = |arg: &str| std::env::args_os().nth(1).is_some_and(|first| first == arg);
    if is(agentd_sandbox::WARDEN_ARG) {
        return agentd_sandbox::warden_main();
    }
    if is(agentd_policy::TOOLS_ARG) {
        return tools::answer();
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE);
            // If even the usage message cannot be printed, nothing can be done.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    // A variable that is not UTF-8 can contain neither a key nor a setting of ours.
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let environment: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    let sources = sources(&args, &environment);
    let loaded = match agentd_settings::load(&sources) {
        Ok(loaded) => loaded,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    if let Err(error) = agentd_node::check_rules(&loaded, &environment) {
        return fail(error.exit_code(), &error.to_string());
    }
    if args.check_config
        && let Err(error) = agentd_node::check_files(&loaded)
    {
        return fail(error.exit_code(), &error.to_string());
    }
    if args.print_config || args.check_config {
        let text = if args.print_config {
            loaded.shown().text(true)
        } else {
            "the configuration is valid".to_owned()
        };
        // A closed pipe is not worth an error message.
        let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
        return ExitCode::SUCCESS;
    }
    if let Some(faults) = environment.get("AGENTD_FAULTS")
        && let Err(error) = agentd_fault_points::arm(faults)
    {
        return fail(EXIT_USAGE, &format!("AGENTD_FAULTS: {error}"));
    }
    // Commands run as the same user, but must not read our memory or environment.
    if let Err(error) = agentd_sandbox::conceal() {
        return fail(
            EXIT_INTERNAL,
            &format!("cannot protect the process from others: {error}"),
        );
    }
    serve::run(&args, loaded, (environment, sources))
}

fn sources(args: &Args, environment: &BTreeMap<String, String>) -> Sources {
    let home = environment.get("XDG_CONFIG_HOME").cloned();
    let home = home.or_else(|| environment.get("HOME").map(|home| format!("{home}/.config")));
    let mut sources = Sources::standard(home.as_deref().map(Path::new), args.config.clone());
    sources.environment = environment
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let http = args
        .http
        .iter()
        .map(|address| ("http.listen".to_owned(), address.clone()));
    sources.flags = http.collect();
    sources
}

/// The environment variables that determine paths.
fn surroundings(environment: &BTreeMap<String, String>) -> Surroundings {
    let path = |name: &str| {
        environment
            .get(name)
            .filter(|value| !value.is_empty())
            .map(Into::into)
    };
    Surroundings {
        home: path("HOME"),
        data_home: path("XDG_DATA_HOME"),
        runtime_dir: path("XDG_RUNTIME_DIR"),
    }
}

/// Prints an error to stderr.
fn fail(code: u8, what: &str) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    for line in what.lines() {
        // If stderr is closed, there is nowhere to report that.
        let _ = writeln!(stderr, "error: {line}");
    }
    ExitCode::from(code)
}
