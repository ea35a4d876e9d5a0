//! Runs the conformance suites and reports their results for people and scripts.

use agentd_conformance::{KEYS, Report};
use anyhow::{Context as _, Result};
use clap::Parser;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The directory of the suites, with one subdirectory each
    #[arg(long, value_name = "DIR", env = "AGENTD_FIXTURES")]
    fixtures: PathBuf,
    /// Also print the request keys that the comparison ignores, with the reasons
    #[arg(long)]
    verbose: bool,
    /// Instead of checking, print our decoding of each recorded answer, one JSON object per line
    #[arg(long)]
    dump: bool,
    /// Run only these suites; default: all suites found
    #[arg(value_name = "SUITE")]
    suites: Vec<String>,
}

/// Runs the suites: prints failures and reasons for skips first, then one line per suite.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.dump {
        for line in agentd_conformance::dump(&args.fixtures).context("cannot read the recordings")? {
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let reports = agentd_conformance::run(&args.fixtures, &args.suites).context("the suites cannot run")?;
    for report in &reports {
        findings(&mut out, report)?;
    }
    if args.verbose {
        keys(&mut out)?;
    }
    for report in &reports {
        writeln!(out, "{}", report.summary())?;
    }
    out.flush()?;
    let failed = reports.iter().any(|report| !report.failures.is_empty());
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn findings(out: &mut impl Write, report: &Report) -> Result<()> {
    for finding in &report.failures {
        writeln!(
            out,
            "FAILED {}: {}: {}",
            report.suite, finding.place, finding.difference
        )?;
    }
    for (reason, count) in &report.skips {
        writeln!(out, "skipped {}: {count} x {reason}", report.suite)?;
    }
    Ok(())
}

fn keys(out: &mut impl Write) -> Result<()> {
    for key in KEYS {
        writeln!(
            out,
            "not compared ({:?}, {:?}): {}: {}",
            key.dialect,
            key.side,
            key.paths.join(", "),
            key.reason
        )?;
    }
    Ok(())
}
