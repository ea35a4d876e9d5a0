//! Measures the map of a source tree: its time cold and warm, its cost, and whether it shows the requested definitions.

use crate::measure::Figures;
use agentd_grammars::Taggers;
use agentd_repo_map::{Cache, Focus, Language, MAX_FILE_BYTES, SourceMap, Stamp, TagFinder as _};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of symbols to look for.
const QUESTIONS: usize = 50;
/// The definition must be among this many results.
const TOP: usize = 5;

/// `dir`, or the sources of all crates on this machine.
pub(crate) fn tree(dir: Option<PathBuf>, cargo_home: Option<PathBuf>) -> Result<PathBuf> {
    let dir = match dir {
        Some(dir) => dir,
        None => cargo_home
            .context("no home directory; give a directory")?
            .join("registry/src"),
    };
    Ok(dir.canonicalize()?)
}

/// Maps a tree.
pub(crate) fn run(dir: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let sources = sources(dir);
    ensure!(!sources.is_empty(), "no source file below {}", dir.display());
    let bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let began = Instant::now();
    let cold = map(Cache::default(), &sources);
    let (scanned, kept) = (
        began.elapsed(),
        cold.cache()
            .bytes(true)?
            .context("the map is too large for the cache")?,
    );
    let began = Instant::now();
    let ranked = cold.places(&Focus::default(), usize::MAX);
    let ranking = began.elapsed();
    let began = Instant::now();
    let warm = map(Cache::read(&kept)?, &sources);
    let again = began.elapsed();
    ensure!(
        warm.cache().parsed() == 0,
        "nothing changed, but something was parsed"
    );
    let asked = questions(&ranked);
    let hits = asked
        .iter()
        .filter(|(name, paths)| answered(&warm, name, paths))
        .count();
    let seconds = scanned.as_secs_f64().max(f64::EPSILON);
    for (name, value) in [
        ("files", json!(sources.len())),
        ("megabytes", json!(bytes / 1_000_000)),
        ("definitions", json!(ranked.len())),
        ("failed", json!(cold.failed())),
        ("cold_s", json!((seconds * 10.0).round() / 10.0)),
        ("cold_mb_per_s", json!((bytes as f64 / 1e6 / seconds).round())),
        ("rank_ms", json!(ranking.as_millis())),
        ("warm_ms", json!(again.as_millis())),
        ("kept_mb", json!(kept.len() / 1_000_000)),
        ("peak_mb", json!(peak_mb())),
        ("questions", json!(asked.len())),
        ("definition_in_top_5", json!(hits)),
    ] {
        figures.insert(format!("repo_map.{name}"), value);
    }
    Ok(figures)
}

struct Source {
    path: PathBuf,
    name: String,
    bytes: u64,
}

fn sources(dir: &Path) -> Vec<Source> {
    let walk = ignore::WalkBuilder::new(dir)
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .build();
    walk.filter_map(|entry| {
        let path = entry.ok()?.into_path();
        let name = path.strip_prefix(dir).ok()?.to_str()?.to_owned();
        let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let fits = usize::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_FILE_BYTES);
        (fits && Language::of(&name).is_some()).then_some(Source { path, name, bytes })
    })
    .collect()
}

fn map(cache: Cache, sources: &[Source]) -> SourceMap {
    let mut map = SourceMap::new(cache);
    let mut taggers = Taggers::default();
    for source in sources {
        map.add(
            &source.name,
            Stamp(source.bytes),
            || std::fs::read(&source.path).ok(),
            |language, source| taggers.tags(language, source, &|| false),
        );
    }
    map
}

/// Compound names with one or two definitions, sampled evenly, like those that users ask for.
fn questions(places: &[agentd_repo_map::RankedDefinition]) -> Vec<(String, Vec<String>)> {
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for place in places {
        names.entry(&place.name).or_default().push(place.path.clone());
    }
    let telling = |name: &str| name.len() >= 10 && name.contains('_') && !name.starts_with('_');
    let asked: Vec<(&str, Vec<String>)> = names
        .into_iter()
        .filter(|(name, paths)| telling(name) && paths.len() <= 2)
        .collect();
    let step = (asked.len() / QUESTIONS).max(1);
    asked
        .into_iter()
        .step_by(step)
        .take(QUESTIONS)
        .map(|(name, paths)| (name.to_owned(), paths))
        .collect()
}

fn answered(map: &SourceMap, name: &str, paths: &[String]) -> bool {
    let focus = Focus {
        names: [name.to_owned()].into(),
        ..Focus::default()
    };
    map.places(&focus, TOP)
        .iter()
        .any(|place| place.name == name && paths.contains(&place.path))
}

/// The peak memory of this process, in megabytes.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1_000
}
