//! Recording a large directory in which few files change: its CPU time next to that of plain git, the disk it takes, and
//! what steps notice of it.

use crate::daemon::Bench;
use crate::drive::{Watcher, send};
use crate::report::{Report, Target, percentile};
use crate::tree::cpu_ms;
use crate::workspaces::{below, git};
use agentd_checkpoint::{Keeper, Limits};
use agentd_protocol::SessionId;
use anyhow::Result;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Files that change between two recordings, of the first directory.
const CHANGED: usize = 20;
/// Recordings of each kind.
const ROUNDS: usize = 20;
/// Milliseconds of a model call in it: real ones take longer.
const CALL_MS: u32 = 500;

/// The daemon's configuration without recordings, to compare with.
pub(crate) const OFF: &str = "[workspace]\ncheckpoint = \"off\"\n";

fn changed() -> impl Iterator<Item = PathBuf> {
    (0..CHANGED).map(|n| Path::new("d0").join(format!("f{n}.txt")))
}

/// Alternates between git's own way and a recording. Changes the repository.
pub(crate) async fn cost(report: &mut Report, repository: &Path, kept: &Path) -> Result<()> {
    let keeper = Keeper::new(kept, Limits::default());
    let archive = keeper.archive(repository);
    let began = Instant::now();
    archive.take()?;
    report.number("record.first_ms", began.elapsed().as_secs_f64() * 1_000.0);
    git(repository, &["add", "-A"]).await?;
    let before = bytes(kept)?;
    let (mut plain, mut ours, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for path in changed() {
            let mut file = OpenOptions::new().append(true).open(repository.join(path))?;
            writeln!(file, "round {round}")?;
        }
        for by_us in [round % 2 == 1, round % 2 == 0] {
            let (began, before) = (Instant::now(), cpu_ms(std::process::id()));
            if by_us {
                archive.take()?;
                took.push(began.elapsed().as_secs_f64() * 1_000.0);
            } else {
                git(repository, &["add", "-A"]).await?;
                git(repository, &["write-tree"]).await?;
            }
            let spent = if by_us { &mut ours } else { &mut plain };
            spent.push(cpu_ms(std::process::id()) - before);
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    report.number("record.git_cpu_ms", mean(&plain));
    report.number("record.cpu_ms", mean(&ours));
    let ratio = mean(&ours) / mean(&plain).max(f64::EPSILON);
    report.aim("record.cpu_ratio", ratio, Target::AtMost(1.3));
    report.percentiles("record.ms", &mut took, None);
    let grown = bytes(kept)?.saturating_sub(before) as f64 / ROUNDS as f64;
    report.number("record.disk_kb", grown / 1_000.0);
    let files: u64 = changed()
        .map(|path| fs::metadata(repository.join(path)).map_or(0, |about| about.len()))
        .sum();
    report.number("record.changed_kb", files as f64 / 1_000.0);
    Ok(())
}

/// Milliseconds of a step that changes files, beyond its model call.
pub(crate) async fn step_ms(bench: &Bench, session: SessionId, steps: u32) -> Result<f64> {
    let files: Vec<String> = changed().map(|path| path.display().to_string()).collect();
    let command = format!("echo_{{n}}_|_tee_-a_{}", files.join("_"));
    let mut watcher = Watcher::start(bench).await?;
    // Before the first effect of all, every file is read.
    send(&bench.client, session, "plan:first steps=1 command=true;").await?;
    watcher.until(1).await?;
    let began = Instant::now();
    let plan = format!("plan:recorded steps={steps} first={CALL_MS} command={command};");
    send(&bench.client, session, &plan).await?;
    watcher.until(2).await?;
    watcher.all_completed()?;
    let ms = began.elapsed().as_secs_f64() * 1_000.0 - f64::from((steps + 1) * CALL_MS);
    Ok(ms / f64::from(steps))
}

/// Compares steps without and with recordings.
pub(crate) fn steps(report: &mut Report, mut off: Vec<f64>, mut on: Vec<f64>) {
    off.sort_by(f64::total_cmp);
    on.sort_by(f64::total_cmp);
    let (off, on) = (percentile(&off, 50), percentile(&on, 50));
    report.number("record.step_ms_off", off);
    report.number("record.step_ms", on);
}

fn bytes(dir: &Path) -> Result<u64> {
    let all = below(dir)?.into_iter().filter(|(_, found)| found.is_file());
    Ok(all.map(|(_, found)| found.len()).sum())
}
