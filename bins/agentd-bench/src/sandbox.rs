//! Compares the cost of `bash -c true` at each level of the sandbox with a plain spawn in the same run.

use crate::measure::Figures;
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{
    CommandSpec, Confinement, Environment, Finding, Findings, ProbeSpec, Warden, WardenSpec, probe, readable,
};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Measures `runs` commands at each level, alternating, so that other load affects all levels equally.
pub(crate) async fn run(runs: u32) -> Result<Figures> {
    let dir = tempfile::tempdir()?;
    let environment = Environment::allowed(std::env::vars_os(), &[]);
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment.clone(),
        read: Vec::new(),
        data_dir: dir.path().to_owned(),
    };
    let found = probe(&spec).await?;
    let workdir = dir.path().join("work");
    std::fs::create_dir(&workdir)?;
    let mut wardens = Vec::new();
    let mut first = Vec::new();
    let mut figures = Figures::new();
    for (name, level) in levels(&found, &mut figures) {
        let begun = Instant::now();
        let warden = start(level, dir.path(), &workdir, &environment).await?;
        command(&warden, &workdir).await?;
        first.push((name, begun.elapsed()));
        wardens.push((name, warden, Vec::new()));
    }
    let mut plain = Vec::new();
    for _ in 0..runs {
        plain.push(timed(plainly(&workdir, &environment)).await?);
        for (_, warden, times) in &mut wardens {
            times.push(timed(command(warden, &workdir)).await?);
        }
    }
    let plain = median(&mut plain);
    figures.insert("plain_us".to_owned(), micros(plain));
    for (name, time) in first {
        figures.insert(format!("{name}_first_us"), micros(time));
    }
    for (name, warden, mut times) in wardens {
        let time = median(&mut times);
        figures.insert(format!("{name}_us"), micros(time));
        let ratio = time.as_secs_f64() / plain.as_secs_f64();
        figures.insert(
            format!("{name}_to_plain"),
            serde_json::json!((ratio * 100.0).round() / 100.0),
        );
        warden.close(Duration::from_secs(5)).await;
    }
    Ok(figures)
}

fn levels(found: &Findings, figures: &mut Figures) -> Vec<(&'static str, SandboxLevel)> {
    let mut levels = vec![("none", SandboxLevel::None)];
    for (name, level, finding) in [
        ("confined", SandboxLevel::Confined, &found.confined),
        ("isolated", SandboxLevel::Isolated, &found.isolated),
    ] {
        match finding {
            Finding::Works => levels.push((name, level)),
            Finding::Missing(why) => {
                figures.insert(format!("{name}_missing"), why.message.clone().into());
            }
        }
    }
    levels
}

async fn start(level: SandboxLevel, dir: &Path, workdir: &Path, environment: &Environment) -> Result<Warden> {
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: workdir.to_owned(),
        environment: environment.clone(),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    if level == SandboxLevel::None {
        return Ok(Warden::spawn(&spec).await?);
    }
    let walls = Confinement::new(level, dir.join("temp"), readable(environment, &[]));
    Ok(Warden::spawn_confined(&spec, &walls).await?.0)
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<Duration> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

fn argv() -> [&'static str; 3] {
    ["bash", "-c", "true"]
}

async fn command(warden: &Warden, workdir: &Path) -> Result<()> {
    let spec = CommandSpec {
        argv: argv().map(str::to_owned).to_vec(),
        cwd: workdir.to_owned(),
        env: Vec::new(),
    };
    let exit = warden.run(spec).await?.exit().await?;
    ensure!(exit.code == Some(0), "bash -c true ended with {exit:?}");
    Ok(())
}

/// Starts a command as a program without a sandbox would: with a pipe, and the same environment variables.
#[expect(clippy::disallowed_methods, reason = "what the sandbox is compared with")]
async fn plainly(workdir: &Path, environment: &Environment) -> Result<()> {
    let [program, args @ ..] = argv();
    let output = tokio::process::Command::new(program)
        .args(args)
        .env_clear()
        .envs(environment.iter())
        .current_dir(workdir)
        .stdin(Stdio::null())
        .output()
        .await
        .context("bash")?;
    ensure!(
        output.status.success(),
        "bash -c true ended with {:?}",
        output.status
    );
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> serde_json::Value {
    serde_json::json!(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
