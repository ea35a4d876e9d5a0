//! Sessions with workspaces of their own on one repository, compared with plain git in the same run.

use crate::config::DaemonArgs;
use crate::daemon::Bench;
use crate::drive::{Watcher, send};
use crate::model_process::MannerArgs;
use crate::recorded;
use crate::report::{Report, Target, percentile};
use agentd_protocol::{
    ApplyParams, BranchParams, CreateParams, LifecycleParams, SessionId, WorkspaceChoice,
    WorkspaceListParams, WorkspaceRequest,
};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// Files in one directory.
const IN_DIRECTORY: usize = 100;
/// Bytes of a file.
const FILE_BYTES: usize = 1_500;
/// Sessions that are created at the same time in the last part.
const AT_ONCE: usize = 4;
/// Sessions with and without recordings.
const PAIRS: usize = 3;

/// The sizes.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkspacesArgs {
    /// Files of the large repository
    #[arg(long, default_value_t = 50_000)]
    files: usize,
    /// Sessions of each kind on it
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Steps of each session whose files are recorded
    #[arg(long, default_value_t = 20)]
    steps: u32,
    /// Files of the small repository
    #[arg(long, default_value_t = 2_000)]
    small_files: usize,
    /// Sessions on it
    #[arg(long, default_value_t = 200)]
    small_sessions: usize,
}

pub(crate) async fn run(bench: &Bench, args: &WorkspacesArgs, manner: MannerArgs) -> Result<Report> {
    let mut report = Report::default();
    let large = repository(bench, "large", args.files).await?;
    let before = fingerprint(&large)?;
    for (name, kind) in [
        ("clone", WorkspaceChoice::Clone),
        ("worktree", WorkspaceChoice::Worktree),
    ] {
        compared(bench, &mut report, (name, kind), &large, args.sessions).await?;
        if kind == WorkspaceChoice::Clone {
            let after = fingerprint(&large)?;
            let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
            ensure!(after == before, "the original has changed: {new:?}");
            report.put("clone.original_untouched", true);
        }
    }
    recorded(bench, &mut report, (&large, args.steps), manner).await?;
    let small = repository(bench, "small", args.small_files).await?;
    many(bench, &mut report, &small, args.small_sessions).await?;
    Ok(report)
}

/// Measures the cost of recording files.
async fn recorded(
    bench: &Bench,
    report: &mut Report,
    (large, steps): (&Path, u32),
    manner: MannerArgs,
) -> Result<()> {
    let without = DaemonArgs {
        more: recorded::OFF,
        ..bench.args.clone()
    };
    let without = Bench::start(&without, manner).await?;
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        for (bench, times) in [(&without, &mut off), (bench, &mut on)] {
            let (session, _) = create(bench, large, WorkspaceChoice::Clone).await?;
            times.push(recorded::step_ms(bench, session, steps).await?);
            let params = LifecycleParams {
                session: session.to_string(),
                force: true,
                ..LifecycleParams::default()
            };
            bench.client.close(&params).await?;
            bench.client.delete(&params).await?;
        }
    }
    recorded::steps(report, off, on);
    recorded::cost(report, large, &bench.data().join("recorded")).await
}

/// Alternates between plain git and a session.
async fn compared(
    bench: &Bench,
    report: &mut Report,
    (name, kind): (&str, WorkspaceChoice),
    repository: &Path,
    sessions: usize,
) -> Result<()> {
    let (mut plain, mut ours, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..sessions {
        let place = repository.with_file_name(format!("plain-{name}-{n}"));
        let target = place.to_str().context("a path in UTF-8")?;
        let branch = format!("plain-{n}");
        let source = repository.to_str().context("a path in UTF-8")?;
        let words = match kind {
            WorkspaceChoice::Worktree => vec!["worktree", "add", "-q", "-b", &branch, target],
            _ => vec!["clone", "--shared", "-q", source, target],
        };
        let began = Instant::now();
        git(repository, &words).await?;
        plain.push(began.elapsed().as_secs_f64() * 1_000.0);
        fs::remove_dir_all(&place)?;
        git(repository, &["worktree", "prune"]).await?;
        let (session, took) = create(bench, repository, kind).await?;
        ours.push(took);
        made.push(session);
    }
    let usage = bench.usage()?;
    report.number(format!("{name}.rss_mb"), usage.rss_mb);
    report.number(format!("{name}.disk_mb_each"), disk_each(bench, sessions).await?);
    let (mut p, mut o) = (plain.clone(), ours.clone());
    report.percentiles(&format!("{name}.plain_git_ms"), &mut p, None);
    report.percentiles(&format!("{name}.session_ms"), &mut o, None);
    let ratio = percentile(&o, 50) / percentile(&p, 50).max(f64::EPSILON);
    report.aim(format!("{name}.ratio_of_medians"), ratio, Target::AtMost(1.3));
    remove(bench, &made).await
}

/// Creates many sessions on a small repository: one after the other, then several at once.
async fn many(bench: &Bench, report: &mut Report, repository: &Path, sessions: usize) -> Result<()> {
    let mut one = Vec::new();
    let mut made = Vec::new();
    for n in 0..sessions / 2 {
        let kind = if n % 2 == 0 {
            WorkspaceChoice::Clone
        } else {
            WorkspaceChoice::Worktree
        };
        let (session, took) = create(bench, repository, kind).await?;
        one.push(took);
        made.push(session);
    }
    let rest = (sessions / 2..sessions).map(|n| {
        let kind = if n % 2 == 0 {
            WorkspaceChoice::Clone
        } else {
            WorkspaceChoice::Worktree
        };
        create(bench, repository, kind)
    });
    let rest: Vec<Result<(SessionId, f64)>> = stream::iter(rest).buffer_unordered(AT_ONCE).collect().await;
    let mut several = Vec::new();
    for done in rest {
        let (session, took) = done?;
        several.push(took);
        made.push(session);
    }
    report.percentiles("small.one_by_one_ms", &mut one, None);
    report.percentiles("small.four_at_once_ms", &mut several, None);
    report.aim("small.median_ms", percentile(&one, 50), Target::AtMost(1_000.0));
    report.number("small.disk_mb_each", disk_each(bench, sessions).await?);
    report.put("small.sessions", made.len());
    fetched(bench, report, repository, &made).await?;
    git(repository, &["fsck", "--no-dangling"]).await?;
    remove(bench, &made).await
}

/// Each session makes a file. All of this becomes branches, and is applied to the original.
async fn fetched(bench: &Bench, report: &mut Report, repository: &Path, made: &[SessionId]) -> Result<()> {
    let mut watcher = Watcher::start(bench).await?;
    for (n, session) in made.iter().enumerate() {
        let plan = format!("plan:work{n} steps=1 command=echo_done_>_result{n}.txt;");
        send(&bench.client, *session, &plan).await?;
    }
    watcher.until(made.len() as u64).await?;
    watcher.all_completed()?;
    let to = repository.to_string_lossy().into_owned();
    let work = made.iter().enumerate().map(|(n, session)| {
        let to = to.clone();
        async move {
            let began = Instant::now();
            let params = BranchParams {
                session: session.to_string(),
                name: format!("result{n}"),
                ..BranchParams::default()
            };
            bench.client.branch(&params).await?;
            let branched = began.elapsed();
            let params = ApplyParams {
                session: session.to_string(),
                to,
                ..ApplyParams::default()
            };
            bench.client.apply(&params).await?;
            let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
            anyhow::Ok((ms(branched), ms(began.elapsed() - branched)))
        }
    });
    let done: Vec<Result<(f64, f64)>> = stream::iter(work).buffer_unordered(AT_ONCE).collect().await;
    let done: Vec<(f64, f64)> = done.into_iter().collect::<Result<_>>()?;
    let (mut branch, mut apply): (Vec<f64>, Vec<f64>) = done.into_iter().unzip();
    report.percentiles("small.branch_ms", &mut branch, None);
    report.percentiles("small.apply_ms", &mut apply, None);
    for n in 0..made.len() {
        git(
            repository,
            &["rev-parse", "--verify", "-q", &format!("result{n}:result{n}.txt")],
        )
        .await?;
        ensure!(
            repository.join(format!("result{n}.txt")).is_file(),
            "result {n} was not applied"
        );
    }
    Ok(())
}

async fn create(bench: &Bench, repository: &Path, kind: WorkspaceChoice) -> Result<(SessionId, f64)> {
    let params = CreateParams {
        workdir: repository.to_string_lossy().into_owned(),
        workspace: Some(WorkspaceRequest {
            kind: Some(kind),
            ..WorkspaceRequest::default()
        }),
        ..CreateParams::default()
    };
    let began = Instant::now();
    let created = bench.client.create(&params).await?;
    Ok((created.session, began.elapsed().as_secs_f64() * 1_000.0))
}

async fn disk_each(bench: &Bench, sessions: usize) -> Result<f64> {
    let rows = bench
        .client
        .workspaces(&WorkspaceListParams { measure: true })
        .await?;
    ensure!(rows.len() == sessions, "{} workspaces of {sessions}", rows.len());
    ensure!(
        rows.iter().all(|row| row.unfetched.is_none()),
        "a new workspace has work"
    );
    let total: u64 = rows.iter().filter_map(|row| row.bytes).sum();
    Ok(total as f64 / 1e6 / sessions.max(1) as f64)
}

async fn remove(bench: &Bench, sessions: &[SessionId]) -> Result<()> {
    for session in sessions {
        let params = LifecycleParams {
            session: session.to_string(),
            ..LifecycleParams::default()
        };
        bench.client.delete(&params).await?;
    }
    let left = bench.client.workspaces(&WorkspaceListParams::default()).await?;
    ensure!(left.is_empty(), "{} workspaces are left", left.len());
    Ok(())
}

/// A repository with this many files and one commit.
async fn repository(bench: &Bench, name: &str, files: usize) -> Result<PathBuf> {
    let dir = PathBuf::from(bench.place(&format!("{name}-repository"))?);
    for n in 0..files {
        let place = dir.join(format!("d{}", n / IN_DIRECTORY));
        if n % IN_DIRECTORY == 0 {
            fs::create_dir_all(&place)?;
        }
        let line = format!("{n}: {}\n", n.wrapping_mul(2_654_435_761));
        let text = line.repeat(FILE_BYTES.div_ceil(line.len()));
        fs::write(place.join(format!("f{n}.txt")), text)?;
    }
    git(&dir, &["init", "-q", "-b", "main"]).await?;
    git(&dir, &["add", "."]).await?;
    git(&dir, &["commit", "-q", "-m", "all"]).await?;
    git(&dir, &["gc", "-q"]).await?;
    Ok(dir)
}

/// Names, sizes and times of everything in a directory. Git renews the times of objects that it would have written, also of
/// borrowed ones; their names tell their contents.
fn fingerprint(top: &Path) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (path, found) in below(top)? {
        let is_object = path.components().any(|part| part.as_os_str() == "objects");
        let time = (!is_object).then(|| found.modified()).transpose()?;
        lines.push(format!("{path:?} {} {time:?}", found.len()));
    }
    lines.sort();
    Ok(lines)
}

/// Everything in a directory.
pub(crate) fn below(top: &Path) -> Result<Vec<(PathBuf, fs::Metadata)>> {
    let (mut all, mut queue) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_dir() {
                queue.push(entry.path());
            }
            all.push((entry.path(), found));
        }
    }
    Ok(all)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the measurement compares with plain git"
)]
pub(crate) async fn git(dir: &Path, words: &[&str]) -> Result<()> {
    let identity = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.org",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
    ];
    let output = Command::new("git")
        .current_dir(dir)
        .args(identity)
        .args(words)
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "git {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
