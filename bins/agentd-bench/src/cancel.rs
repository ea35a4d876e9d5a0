//! Measures how long a cancel takes while the daemon is busy with other sessions.

use crate::checks;
use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::fleet::{FleetArgs, attach, reach};
use crate::open_loop;
use crate::report::{Report, Target};
use agentd_client::Push;
use agentd_protocol::{CancelTurnParams, EndReason, Event, EventBody, SessionId};
use anyhow::{Context as _, Result, ensure};
use std::time::Instant;

/// The maximum number of cancelled turns, half of them in a model call and half in a command.
const MOST: u32 = 10_000;

pub(crate) async fn run(bench: &Bench, args: &FleetArgs) -> Result<Report> {
    let mut report = Report::default();
    let mut watch = Watcher::start(bench).await?;
    let reached = reach(bench, &mut watch, args, &mut report).await?;
    let (mut model, mut command, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    let cancelling = async {
        for n in 0..MOST {
            let in_command = n % 2 == 1;
            let (session, ms) = one(bench, n, in_command).await?;
            ids.push(session);
            if in_command {
                command.push(ms);
            } else {
                model.push(ms);
            }
        }
        anyhow::Ok(())
    };
    let rate = reached.steps_per_second * 0.6;
    // The cancels stop with the load.
    tokio::select! {
        load = open_loop::run(bench, &mut watch, args, rate, &mut report) => { load?; }
        cancelled = cancelling => cancelled?,
    }
    report.put("cancelled", model.len() + command.len());
    report.percentiles("cancel_ms.in_model_call", &mut model, Some(Target::AtMost(100.0)));
    report.percentiles("cancel_ms.in_command", &mut command, Some(Target::AtMost(100.0)));
    checks::logs(&bench.client, &ids, &mut report).await?;
    Ok(report)
}

/// Cancels one turn. Returns the milliseconds from the request until its end was seen.
async fn one(bench: &Bench, n: u32, in_command: bool) -> Result<(SessionId, f64)> {
    let words = if in_command {
        "steps=1 command=sleep_600"
    } else {
        "steps=0 hang=0"
    };
    let name = format!("c{n}");
    let wanted = Wanted {
        workdir: bench.workdir.clone(),
        prompt: Some(format!("plan:{name} {words};")),
        name,
    };
    let created = create_all(&bench.client, [wanted]).await?;
    let session = *created.keys().next().context("one was created")?;
    let mut viewer = attach(bench, session).await?;
    let mut asked = None;
    loop {
        let push = viewer.next().await.context("the viewer ended early")?;
        let running = match push {
            Push::Delta(agentd_protocol::Delta::Text(_)) => !in_command,
            Push::Synced(synced) => !in_command && synced.partial.is_some(),
            Push::Event(stored) => {
                let event: Event = serde_json::from_slice(&stored.json)?;
                if let EventBody::TurnFinished(end) = &event.body {
                    ensure!(
                        end.reason == EndReason::Cancelled,
                        "{session}: ended with {:?}",
                        end.reason
                    );
                    let asked: Instant = asked.context("the turn ended by itself")?;
                    return Ok((session, asked.elapsed().as_secs_f64() * 1_000.0));
                }
                in_command && matches!(event.body, EventBody::ToolStarted(_))
            }
            _ => false,
        };
        if running && asked.is_none() {
            asked = Some(Instant::now());
            let params = CancelTurnParams {
                session: session.to_string(),
                ..CancelTurnParams::default()
            };
            bench.client.cancel_turn(&params).await?;
        }
    }
}
