//! The command line of the daemon.

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs many LLM agents at once. Control it with `agentctl`.
#[derive(Debug, Clone, Parser)]
#[command(name = "agentd", version, about)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Also read this configuration file; it overrides the system's and the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the store and the logs [default: the user's data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Listen on this control socket [default: in the runtime directory, otherwise in the data directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Serve HTTP on this address [default: 127.0.0.1:7433, or a free port if that is taken]
    #[arg(long, value_name = "ADDR|off")]
    pub(crate) http: Option<String>,
    /// Log filter for the console and the log file: `info`, `debug`, `info,agentd_store=debug`
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Log more on the console (twice: much more)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Run a demo with N agents on the scripted model, in a temporary directory, then stay up
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) demo: Option<u32>,
    /// With --demo: run at full speed, as without a terminal, instead of a readable pace
    #[arg(long, requires = "demo")]
    pub(crate) fast: bool,
    /// Continue with a database that has lost acknowledged data; the audit file records this
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Check the configuration and the files it refers to, and exit
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Print the configuration with the origin of each value, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// The action instead of serving.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// Restore a data directory from a backup made with `agentctl backup FILE`; no daemon may be using it
    Restore {
        /// The backup file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Move the current content of the data directory aside, and print where it is
        #[arg(long)]
        replace: bool,
    },
    /// Copy a store between SQLite and PostgreSQL; no daemon may be using either (also: `agentctl migrate`)
    Migrate {
        /// The source: `sqlite:FILE` or `postgres://USER@HOST/DATABASE`
        #[arg(value_name = "FROM")]
        from: String,
        /// The destination, which must be empty
        #[arg(value_name = "TO")]
        to: String,
        /// The node (node.name) on the machine with the sessions' directories. Only this node continues sessions
        /// outside shared paths
        #[arg(long, value_name = "NAME", conflicts_with = "verify", value_parser = NonEmptyStringValueParser::new())]
        node: Option<String>,
        /// Say what would be copied
        #[arg(long, conflicts_with = "verify")]
        dry_run: bool,
        /// Copy nothing, and compare the two
        #[arg(long)]
        verify: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}
