//! Compares the steps of a running fleet during the indexing of a source tree with those before and after it.

use crate::daemon::Bench;
use crate::map_beside::{Fleet, at};
use crate::measure::{Figures, attach, create_in};
use crate::search::peak_mb;
use agentd_index::{ask, index_file};
use agentd_tools::SearchQuery;
use anyhow::{Result, ensure};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Rounds before the indexing, and again after it.
const CALM: u32 = 5;
/// The maximum number of rounds during the indexing.
const MOST: u32 = 60;

/// The daemon's settings: it indexes a directory as soon as a tool runs in it.
pub(crate) const CONFIG: &str = "[index]\nenabled = \"on\"\n";

/// Measures the steps in both cases, and the daemon's peak memory.
pub(crate) async fn run(bench: &Bench, dir: &Path) -> Result<Figures> {
    let mut fleet = Fleet::new(bench).await?;
    let pid = bench.pid.to_string();
    let (mut calm, mut beside, mut n) = (Vec::new(), Vec::new(), 1);
    for _ in 0..CALM {
        calm.extend(fleet.round(bench, n).await?);
        n += 1;
    }
    let before = peak_mb(&pid);
    let began = Instant::now();
    // One tool call in the tree triggers the indexing.
    let session = create_in(bench, dir, Some("plan:begin steps=1 command=true;")).await?;
    let _viewer = attach(bench, session).await?;
    let mut rounds = 0;
    while !complete(bench, dir) && rounds < MOST {
        let times = fleet.round(bench, n).await?;
        n += 1;
        rounds += 1;
        if !complete(bench, dir) {
            beside.extend(times);
        }
    }
    let took = began.elapsed();
    let peak = peak_mb(&pid);
    for _ in 0..CALM {
        calm.extend(fleet.round(bench, n).await?);
        n += 1;
    }
    ensure!(
        !beside.is_empty(),
        "the tree is too small: indexing ended before the first round was over"
    );
    let mut figures = Figures::new();
    for (name, times) in [("calm", &mut calm), ("beside", &mut beside)] {
        times.sort_unstable();
        figures.insert(format!("search.4_step_ms_p50_{name}"), json!(at(times, 50)));
        figures.insert(format!("search.4_step_ms_p99_{name}"), json!(at(times, 99)));
        figures.insert(format!("search.4_steps_{name}"), json!(times.len()));
    }
    figures.insert("search.5_complete".into(), json!(complete(bench, dir)));
    figures.insert("search.5_background_s".into(), json!(took.as_secs()));
    figures.insert("search.5_daemon_peak_mb_before".into(), json!(before));
    figures.insert("search.5_daemon_peak_mb".into(), json!(peak));
    Ok(figures)
}

/// Whether the daemon has indexed the whole tree.
fn complete(bench: &Bench, dir: &Path) -> bool {
    let query = SearchQuery {
        text: String::new(),
        limit: 1,
        below: "".into(),
    };
    let file = index_file(&bench.data().join("index"), dir);
    ask((&file, dir), &query, None, 1, |_| {}).is_ok_and(|found| found.complete)
}
