//! Starts sessions at a fixed rate, however long earlier ones take, and measures the daemon's overhead per step.

use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher};
use crate::fleet::{FleetArgs, steps_of};
use crate::report::{Report, Target};
use agentd_protocol::SessionId;
use anyhow::Result;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Runs this many steps per second for the requested time. Returns the sessions by name.
pub(crate) async fn run(
    bench: &Bench,
    watch: &mut Watcher,
    args: &FleetArgs,
    steps_per_second: f64,
    report: &mut Report,
) -> Result<HashMap<String, SessionId>> {
    let steps = steps_of(bench, args.steps);
    let every = Duration::from_secs_f64(f64::from(steps) / steps_per_second.max(1.0));
    let span = Duration::from_secs(u64::from(args.open_seconds));
    let sessions = u32::try_from(span.as_micros() / every.as_micros().max(1))?.max(1);
    let wanted = Wanted::fleet(bench, "o", sessions, args.steps)?;
    if let Some(model) = &bench.model {
        // Discard the gaps measured at full load.
        model.served().await?;
    }
    let ended = |watch: &Watcher, names: &HashMap<String, SessionId>| {
        watch.with(|seen| names.values().all(|session| seen.ends.contains_key(session)))
    };
    let mut running = JoinSet::new();
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let begun = Instant::now();
    for session in wanted {
        ticks.tick().await;
        let client = bench.client.clone();
        running.spawn(async move {
            let name = session.name.clone();
            anyhow::Ok((name, session.create(&client).await?))
        });
    }
    let mut names = HashMap::new();
    while let Some(done) = running.join_next().await {
        let (name, session) = done??;
        names.insert(name, session);
    }
    while !ended(watch, &names) {
        watch.until(watch.ended() + 1).await?;
    }
    let rate = f64::from(sessions * steps) / begun.elapsed().as_secs_f64();
    report.number("open_loop.asked_steps_per_second", steps_per_second);
    report.number("open_loop.steps_per_second", rate);
    Ok(names)
}

/// The time from the end of an answer to the next request, with and without the tool's time.
pub(crate) async fn overhead(
    bench: &Bench,
    watch: &Watcher,
    names: &HashMap<String, SessionId>,
    report: &mut Report,
) -> Result<()> {
    let Some(model) = &bench.model else {
        return Ok(());
    };
    let served = model.served().await?;
    let (mut gaps, mut own) = (Vec::new(), Vec::new());
    watch.with(|seen| {
        for ((key, step), micros) in &served.gaps {
            let tools = names.get(key).and_then(|session| seen.tools.get(session));
            let before = usize::try_from(*step).unwrap_or(usize::MAX).wrapping_sub(1);
            let Some(tool) = tools.and_then(|tools| tools.get(before)) else {
                continue;
            };
            let gap = Duration::from_micros(*micros);
            gaps.push(gap.as_secs_f64() * 1_000.0);
            let own_time = gap.saturating_sub(Duration::from_millis(*tool));
            own.push(own_time.as_secs_f64() * 1_000.0);
        }
    });
    report.put("open_loop.steps_measured", gaps.len());
    report.percentiles("between_model_calls_ms", &mut gaps, None);
    report.percentiles("overhead_per_step_ms", &mut own, Some(Target::AtMost(25.0)));
    Ok(())
}
