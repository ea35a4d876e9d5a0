//! The command line of the daemon.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs many LLM agents at once. Control it with `agentctl`.
#[derive(Debug, Clone, Parser)]
#[command(name = "agentd", version, about)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Read this configuration file over the system's and the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Keep the store and the logs here [default: the user's data directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Listen on this control socket [default: in the runtime directory, else in the data directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Serve HTTP on this address: not in this version, so only `off`
    #[arg(long, value_name = "ADDR|off")]
    pub(crate) http: Option<String>,
    /// Log what this filter selects, to the console and to the file: `info`, `debug`, `info,agentd_store=debug`
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Say more on the console (twice: much more)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Show the main job with N agents on the scripted model, in a temporary directory, then stay up
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) demo: Option<u32>,
    /// With --demo: go at once, as where there is no terminal, instead of so that a person can follow
    #[arg(long, requires = "demo")]
    pub(crate) fast: bool,
    /// Go on with a database that has lost a part of what it acknowledged; the audit file says so
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Check the configuration and the files that it names, and exit
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Print the configuration with where each value comes from, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// What it does instead of serving.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// Make a data directory of a backup, while no daemon uses it (`agentctl backup FILE` makes one)
    Restore {
        /// The backup
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Set what is in the data directory aside, and say where it is
        #[arg(long)]
        replace: bool,
    },
}
