//! `cargo xtask cluster N`: a PostgreSQL server and N nodes in one directory, to play with. Ctrl-C ends all of them.

use agentd_process_tests::Postgres;
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of nodes
    #[arg(default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    nodes: u16,
}

/// Runs until the nodes have ended: Ctrl-C reaches them, too.
pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let Some(server) = Postgres::start(&[]) else {
        bail!("PostgreSQL is not installed: apt-get install postgresql");
    };
    let url = server.create("agentd").url;
    let dir = root.join("target/cluster");
    // The database is new, so what belongs to an earlier one is of no use.
    let _ = std::fs::remove_dir_all(&dir);
    let mut nodes = Vec::new();
    for number in 1..=args.nodes {
        nodes.push(node(root, &dir, &url, number)?);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "database: {url}")?;
    for number in 1..=args.nodes {
        let socket = dir.join(format!("node{number}/agentd.sock"));
        writeln!(out, "node{number}: agentctl --socket {} nodes", socket.display())?;
    }
    for mut node in nodes {
        node.wait()?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::disallowed_methods, reason = "a development task starts programs")]
fn node(root: &Path, dir: &Path, url: &str, number: u16) -> Result<Child> {
    let data = dir.join(format!("node{number}"));
    let mut command = Command::new(root.join("target/debug/agentd"));
    command
        .arg("--data-dir")
        .arg(&data)
        .arg("--socket")
        .arg(data.join("agentd.sock"))
        .env("AGENTD_STORE__URL", url)
        .env("AGENTD_NODE__NAME", format!("node{number}"))
        // All are on this machine, so each has every directory.
        .env("AGENTD_NODE__SHARED_PATHS", "[\"/\"]");
    command.spawn().context("cannot start target/debug/agentd")
}
