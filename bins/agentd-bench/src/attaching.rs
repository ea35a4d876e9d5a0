//! Measures how soon a viewer of a very long session sees its end.

use crate::daemon::Bench;
use crate::drive::{Wanted, Watcher, create_all};
use crate::report::{Report, Target};
use agentd_client::Push;
use agentd_protocol::{AttachParams, ExportParams, ImportParams, SessionId};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;

/// Lines per page of an import.
const PAGE: usize = 1_000;

/// How long.
#[derive(Debug, Clone, Args)]
pub(crate) struct AttachArgs {
    /// Events in the session
    #[arg(long, default_value_t = 100_000)]
    events: u32,
    /// Events that the viewer requests
    #[arg(long, default_value_t = 50)]
    tail: u32,
    /// Number of attaches
    #[arg(long, default_value_t = 20)]
    rounds: u32,
}

pub(crate) async fn run(bench: &mut Bench, args: &AttachArgs) -> Result<Report> {
    let mut report = Report::default();
    let begun = Instant::now();
    let most = args.events as usize;
    let session = grow(bench, "true", |lines| lines.len() >= most).await?;
    report.number("import_seconds", begun.elapsed().as_secs_f64());
    let mut times = Vec::new();
    let first = tail(bench, session, args.tail).await?;
    report.aim("attach_ms.first", first, Target::AtMost(100.0));
    for _ in 0..args.rounds {
        times.push(tail(bench, session, args.tail).await?);
    }
    report.percentiles("attach_ms", &mut times, Some(Target::AtMost(100.0)));
    bench.kill().await?;
    bench.restart().await?;
    report.aim(
        "attach_ms.after_start",
        tail(bench, session, args.tail).await?,
        Target::AtMost(100.0),
    );
    report.number("rss_mb", bench.usage()?.rss_mb);
    Ok(report)
}

/// Milliseconds from the request until the viewer has caught up.
async fn tail(bench: &Bench, session: SessionId, tail: u32) -> Result<f64> {
    let begun = Instant::now();
    let params = AttachParams {
        session: session.to_string(),
        tail: Some(tail),
        deltas: true,
        ..AttachParams::default()
    };
    let mut viewer = bench.client.attach(&params).await?;
    let mut events = 0;
    loop {
        match viewer.next().await.context("the viewer ended early")? {
            Push::Event(_) => events += 1,
            Push::Synced(_) => break,
            _ => {}
        }
    }
    ensure!(
        events >= tail.min(10),
        "received only {events} events of the tail"
    );
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}

/// A session whose log is long enough: one real turn with this command, repeated with new ids.
pub(crate) async fn grow(
    bench: &Bench,
    command: &str,
    enough: impl Fn(&[String]) -> bool,
) -> Result<SessionId> {
    let mut watch = Watcher::start(bench).await?;
    let wanted = Wanted {
        name: "grow".to_owned(),
        workdir: bench.place("grow")?,
        prompt: Some(format!("plan:grow steps=10 command={command};")),
    };
    let created = create_all(&bench.client, [wanted]).await?;
    watch.until(1).await?;
    let session = *created.keys().next().context("one was created")?;
    let params = ExportParams {
        session: session.to_string(),
        after_seq: 0,
        limit: 0,
    };
    let lines: Vec<Value> = bench
        .client
        .export(&params)
        .await?
        .lines
        .iter()
        .map(|line| serde_json::from_str(line))
        .collect::<Result<_, _>>()?;
    let (head, turn) = lines.split_first().context("a log begins with its creation")?;
    let mut all = vec![head.to_string()];
    let own = session.to_string();
    for round in 0_u32.. {
        if enough(&all) {
            break;
        }
        for line in turn {
            let mut line = line.clone();
            renew(&mut line, round, &own);
            if let Some(fields) = line.as_object_mut() {
                fields.insert("seq".to_owned(), json!(all.len() + 1));
            }
            all.push(line.to_string());
        }
    }
    import(bench, command, all).await
}

/// Replaces the end of every id except the session's own.
fn renew(value: &mut Value, round: u32, own: &str) {
    match value {
        Value::String(text) if text.len() == 36 && text != own && is_id(text) => {
            text.replace_range(28.., &format!("{round:08x}"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| renew(item, round, own)),
        Value::Object(fields) => fields.values_mut().for_each(|field| renew(field, round, own)),
        _ => {}
    }
}

fn is_id(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

async fn import(bench: &Bench, key: &str, lines: Vec<String>) -> Result<SessionId> {
    let pages: Vec<&[String]> = lines.chunks(PAGE).collect();
    for (n, page) in pages.iter().enumerate() {
        let params = ImportParams {
            lines: page.to_vec(),
            key: Some(key.to_owned()),
            more: n + 1 < pages.len(),
            workdir: bench.workdir.clone(),
            ..ImportParams::default()
        };
        if let Some(created) = bench.client.import(&params).await? {
            return Ok(created.session);
        }
    }
    anyhow::bail!("the import returned no session")
}
