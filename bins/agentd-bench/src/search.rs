//! Measures the search index of a source tree: its time, its cost, and whether it finds the requested definitions.

use crate::measure::Figures;
use agentd_grammars::{InProcess, Taggers};
use agentd_index::{Job, Limits, Pace, Progress, ReadRule, ask, bring_up_to_date};
use agentd_repo_map::{Language, MAX_FILE_BYTES, TagFinder as _};
use agentd_tools::{SearchHit, SearchQuery};
use anyhow::{Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The number of symbols to look for.
const QUESTIONS: usize = 50;
/// The definition must be among this many results.
const TOP: usize = 5;

/// The location of a definition.
type Definition = (String, u32);

/// Indexes a tree at full speed, then searches it.
pub(crate) fn run(dir: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let kept = tempfile::tempdir()?;
    let job = Job {
        workdir: dir.to_owned(),
        file: kept.path().join("index.db"),
        limits: Limits {
            share: 100,
            ..Limits::default()
        },
        rule: ReadRule::new(|_, _| true),
        parsers: Some(Arc::new(InProcess)),
        boot: "bench".to_owned(),
    };
    let before = peak_mb("self");
    let (progress, cold) = pass(&job)?;
    let peak = peak_mb("self");
    ensure!(
        progress.complete && progress.files > 0,
        "nothing was indexed: {progress:?}"
    );
    let (again, warm) = pass(&job)?;
    ensure!(
        again.written == 0,
        "nothing changed, but {} files were written",
        again.written
    );
    let seconds = cold.as_secs_f64().max(f64::EPSILON);
    for (name, value) in [
        ("0_files", json!(progress.files)),
        ("0_megabytes", json!(progress.bytes / 1_000_000)),
        ("1_index_s", json!(tenths(seconds))),
        ("1_mb_per_s", json!(tenths(progress.bytes as f64 / 1e6 / seconds))),
        ("1_unchanged_s", json!(tenths(warm.as_secs_f64()))),
        ("2_index_mb", json!(job.file.metadata()?.len() / 1_000_000)),
        ("2_peak_mb", json!(peak)),
        ("2_peak_mb_before", json!(before)),
    ] {
        figures.insert(format!("search.{name}"), value);
    }
    ask_all(&job, &mut figures)?;
    Ok(figures)
}

/// Asks each question in three forms.
fn ask_all(job: &Job, figures: &mut Figures) -> Result<()> {
    let asked = questions(&job.workdir)?;
    figures.insert("search.3_questions".into(), json!(asked.len()));
    for (form, text) in [
        ("name", (|name| name) as fn(String) -> String),
        ("sentence", |name| format!("where is {name} defined?")),
        ("words", |name| name.replace('_', " ")),
    ] {
        let mut times = Vec::new();
        let mut hits = 0;
        for (name, places) in &asked {
            let began = Instant::now();
            let found = answer(job, text(name.clone()))?;
            times.push(began.elapsed());
            hits += usize::from(
                found
                    .iter()
                    .any(|hit| places.iter().any(|place| is_at(hit, place))),
            );
        }
        times.sort_unstable();
        figures.insert(format!("search.3_{form}_in_top_5"), json!(hits));
        figures.insert(format!("search.3_{form}_ms_p50"), json!(at(&times, 50)));
        figures.insert(format!("search.3_{form}_ms_p99"), json!(at(&times, 99)));
    }
    Ok(())
}

fn pass(job: &Job) -> Result<(Progress, Duration)> {
    let (tell, heard) = watch::channel(Progress::default());
    let (mut pace, _leash) = Pace::new(job.limits.share);
    let began = Instant::now();
    bring_up_to_date(job, &mut pace, &tell, None)?;
    let took = began.elapsed();
    let progress = heard.borrow().clone();
    Ok((progress, took))
}

fn answer(job: &Job, text: String) -> Result<Vec<SearchHit>> {
    let query = SearchQuery {
        text,
        limit: TOP,
        below: "".into(),
    };
    let place = (job.file.as_path(), job.workdir.as_path());
    let mut found = ask(place, &query, None, job.limits.max_file_bytes, |_| {})?;
    found.hits.truncate(TOP);
    Ok(found.hits)
}

fn is_at(hit: &SearchHit, (path, line): &Definition) -> bool {
    hit.path == *path && (hit.start_line..=hit.end_line).contains(line)
}

/// Compound names with one or two definitions, sampled evenly, like those that users ask for.
fn questions(dir: &Path) -> Result<Vec<(String, Vec<Definition>)>> {
    let mut names: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    let mut taggers = Taggers::default();
    let walk = ignore::WalkBuilder::new(dir)
        .require_git(false)
        .parents(false)
        .git_global(false)
        .build();
    for entry in walk {
        let path = entry?.into_path();
        let Some(name) = path.strip_prefix(dir)?.to_str() else {
            continue;
        };
        let Some(language) = Language::of(name).filter(|_| path.is_file()) else {
            continue;
        };
        let content = std::fs::read(&path)?;
        if content.len() > MAX_FILE_BYTES || memchr::memchr(0, &content).is_some() {
            continue;
        }
        let tags = taggers.tags(language, &content, &|| false);
        for definition in tags.unwrap_or_default().definitions {
            let telling = definition.name.len() >= 10
                && definition.name.contains('_')
                && !definition.name.starts_with('_');
            if telling {
                let places = names.entry(definition.name).or_default();
                if places.len() <= 2 {
                    places.push((name.to_owned(), definition.line));
                }
            }
        }
    }
    names.retain(|_, places| places.len() <= 2);
    let step = (names.len() / QUESTIONS).max(1);
    Ok(names.into_iter().step_by(step).take(QUESTIONS).collect())
}

/// A percentile of sorted times, in milliseconds.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    tenths(sorted.get(place).copied().unwrap_or_default().as_secs_f64() * 1_000.0)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The peak memory of a process, in megabytes.
pub(crate) fn peak_mb(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024 / 1_000_000
}
