//! The full-screen mode of agentctl in a pseudo-terminal: how soon a key is on the screen, memory, processor time.

use crate::attaching::grow;
use crate::daemon::Bench;
use crate::drive::send;
use crate::played_fleet::PlayedFleet;
use crate::pty::Pty;
use crate::report::{Report, Target};
use crate::tree;
use agentd_protocol::SessionId;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The size of the terminal.
const COLUMNS: u16 = 160;
const ROWS: u16 = 50;
/// The keys: letters that no other text has, so that a change of the screen shows them.
const LETTERS: std::ops::RangeInclusive<char> = 'а'..='я';
/// Milliseconds between two events of a streaming answer: 200 a second.
pub(crate) const GAP_MS: u64 = 5;

/// How much.
#[derive(Debug, Clone, Args)]
pub(crate) struct TerminalArgs {
    /// The program to measure; default: agentctl next to this program
    #[arg(long, value_name = "PATH")]
    agentctl: Option<PathBuf>,
    /// Megabytes of the transcript in which keys are pressed
    #[arg(long, default_value_t = 10)]
    megabytes: u32,
    /// Events of the log with which memory is measured
    #[arg(long, default_value_t = 100_000)]
    events: u32,
    /// Sessions of the fleet
    #[arg(long, default_value_t = 10_000)]
    sessions: u32,
    /// Sessions that change in a second
    #[arg(long, default_value_t = 1_000)]
    changes: u32,
    /// Keys that are pressed
    #[arg(long, default_value_t = 400)]
    keys: usize,
    /// Seconds for which processor time is measured
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

impl TerminalArgs {
    const fn span(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

struct Terminals<'a> {
    bench: &'a Bench,
    agentctl: PathBuf,
    socket: String,
}

impl Terminals<'_> {
    fn open(&self, arguments: &[&str]) -> Result<Pty> {
        let mut all = vec!["--socket", &self.socket];
        all.extend(arguments);
        Pty::start(&self.agentctl, &all, &self.bench.data(), COLUMNS, ROWS)
    }

    async fn attach(&self, session: SessionId) -> Result<Pty> {
        let mut terminal = self.open(&["attach", &session.to_string()])?;
        terminal.until("a message starts a turn").await?;
        Ok(terminal)
    }
}

pub(crate) async fn run(bench: &Bench, args: &TerminalArgs) -> Result<Report> {
    let beside = std::env::current_exe()?.with_file_name("agentctl");
    let agentctl = args.agentctl.clone().unwrap_or(beside);
    ensure!(
        agentctl.is_file(),
        "{} is missing: build agentctl",
        agentctl.display()
    );
    let terminals = Terminals {
        bench,
        agentctl,
        socket: bench.socket().display().to_string(),
    };
    let mut report = Report::default();
    keys(&terminals, args, &mut report).await?;
    memory(&terminals, args, &mut report).await?;
    fleet(&terminals, args, &mut report).await?;
    Ok(report)
}

/// Presses keys in a long session while text streams.
async fn keys(terminals: &Terminals<'_>, args: &TerminalArgs, report: &mut Report) -> Result<()> {
    let bench = terminals.bench;
    let least = (args.megabytes as usize) << 20;
    let session = grow(bench, "seq_1_4000", |lines| {
        lines.iter().map(String::len).sum::<usize>() >= least
    })
    .await?;
    let mut terminal = terminals.attach(session).await?;
    // The first frame comes before the events.
    sleep(Duration::from_secs(2)).await;
    let before = tree::cpu_ms(terminal.pid);
    sleep(args.span()).await;
    let idle = tree::cpu_ms(terminal.pid) - before;
    report.aim(
        "attach.idle_cpu_percent",
        percent(idle, args.span()),
        Target::AtMost(0.1),
    );
    // The answer outlasts the keys. It has code, so that the colours of code count, too.
    let words: Vec<String> = (0..12_000).map(word).collect();
    send(
        &bench.client,
        session,
        &format!("plan:stream text={};", words.join("_")),
    )
    .await?;
    let mut shown = 0;
    for _ in 0..300 {
        sleep(Duration::from_millis(100)).await;
        shown += terminal.skip();
        if shown > 1_000 {
            break;
        }
    }
    ensure!(shown > 1_000, "no text streams");
    let (begun, before) = (Instant::now(), tree::cpu_ms(terminal.pid));
    let mut times = Vec::new();
    for (n, letter) in LETTERS.cycle().take(args.keys).enumerate() {
        // Not in step with the frames.
        sleep(Duration::from_millis(31 + (n as u64 * 7) % 23)).await;
        terminal.skip();
        let pressed = terminal.press(&letter.to_string())?;
        let shown = terminal.until(&letter.to_string()).await?;
        times.push(shown.duration_since(pressed).as_secs_f64() * 1_000.0);
        if n % 32 == 31 {
            terminal.press("\u{15}")?;
        }
    }
    let spent = tree::cpu_ms(terminal.pid) - before;
    let row = bench.client.get(&session.to_string()).await?;
    ensure!(row.turn.is_some(), "the answer ended before the keys did");
    report.percentiles("key_to_screen_ms", &mut times, Some(Target::AtMost(16.0)));
    report.number("streaming.cpu_percent", percent(spent, begun.elapsed()));
    report.number("streaming.rss_mb", bench_memory(&terminal)?);
    terminal.end().await
}

/// A word of the answer: prose, and a block of code in every 200 words.
fn word(n: usize) -> String {
    match n % 200 {
        120 => format!("\n\n```python\ndef_f{n}(x):"),
        199 => "\n```\n\n".to_owned(),
        at if at > 120 && at % 8 == 0 => format!("\n____y{n}_=_x_+_{n}_#"),
        _ => format!("word{n}"),
    }
}

/// Attaches to a log with many events and goes up in it.
async fn memory(terminals: &Terminals<'_>, args: &TerminalArgs, report: &mut Report) -> Result<()> {
    let most = args.events as usize;
    let session = grow(terminals.bench, "true", |lines| lines.len() >= most).await?;
    let begun = Instant::now();
    let mut terminal = terminals.attach(session).await?;
    report.number("attach.first_screen_ms", begun.elapsed().as_secs_f64() * 1_000.0);
    report.aim("attach.rss_mb", bench_memory(&terminal)?, Target::AtMost(60.0));
    terminal.press("\t")?;
    for _ in 0..60 {
        // To the beginning of what is loaded, which loads the page before it.
        terminal.press("g")?;
        sleep(Duration::from_millis(100)).await;
    }
    report.aim(
        "attach.rss_mb.after_scrolling",
        bench_memory(&terminal)?,
        Target::AtMost(60.0),
    );
    terminal.end().await
}

/// The fleet, idle and changing.
async fn fleet(terminals: &Terminals<'_>, args: &TerminalArgs, report: &mut Report) -> Result<()> {
    let bench = terminals.bench;
    let socket = bench.data().join("played.sock");
    let client = bench.connect().await?;
    let fleet = PlayedFleet::start(&socket, client, args.sessions, args.changes)?;
    let played = Terminals {
        bench,
        agentctl: terminals.agentctl.clone(),
        socket: socket.display().to_string(),
    };
    let mut terminal = played.open(&["top"])?;
    terminal.until("session 10").await?;
    sleep(Duration::from_secs(3)).await;
    terminal.skip();
    let before = tree::cpu_ms(terminal.pid);
    sleep(args.span()).await;
    let idle = tree::cpu_ms(terminal.pid) - before;
    report.aim(
        "top.idle_cpu_percent",
        percent(idle, args.span()),
        Target::AtMost(0.1),
    );
    report.put("top.idle_bytes_written", terminal.skip());
    // The most recently changed first, so that every row of every frame differs.
    terminal.press("sssss")?;
    for (name, keys) in [("top", ""), ("top.labels", "l")] {
        terminal.press(keys)?;
        fleet.lively(true);
        sleep(Duration::from_secs(2)).await;
        terminal.skip();
        let (begun, before, counts) = (Instant::now(), tree::cpu_ms(terminal.pid), fleet.counts());
        sleep(args.span()).await;
        let (took, spent) = (begun.elapsed(), tree::cpu_ms(terminal.pid) - before);
        let (changed, asked) = fleet.counts();
        let rate = |count| per_second(count, took);
        report.number(format!("{name}.changes_per_second"), rate(changed - counts.0));
        report.number(format!("{name}.lists_per_second"), rate(asked - counts.1));
        report.aim(
            format!("{name}.cpu_percent"),
            percent(spent, took),
            Target::AtMost(20.0),
        );
        report.number(format!("{name}.rss_mb"), bench_memory(&terminal)?);
        ensure!(draws(&mut terminal).await, "{name} drew nothing");
    }
    terminal.end().await
}

/// Whether the program drew anything, or does so soon: otherwise its figures mean nothing.
async fn draws(terminal: &mut Pty) -> bool {
    for _ in 0..300 {
        if terminal.skip() > 0 {
            return true;
        }
        sleep(Duration::from_millis(100)).await;
    }
    false
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: u64, span: Duration) -> f64 {
    count as f64 / span.as_secs_f64()
}

fn percent(cpu_ms: f64, span: Duration) -> f64 {
    cpu_ms / (span.as_secs_f64() * 10.0)
}

/// Resident memory of the program in megabytes.
fn bench_memory(terminal: &Pty) -> Result<f64> {
    Ok(tree::Usage::of(terminal.pid)?.rss_mb)
}
