//! The cost of a task: the same scripted task in each dialect, billed by a simulated prompt cache.
//!
//! The model server keeps every request. [`cache`] replays them by the published rules of the providers; nothing here
//! depends on time. Tokens are bytes of JSON divided by four, so the figures compare versions and dialects with each
//! other; a provider's own count differs.

mod cache;
mod long;
mod request;

use crate::config::{DaemonArgs, KEY};
use crate::daemon::Bench;
use crate::drive::Watcher;
use crate::model_process::MannerArgs;
use crate::report::{Report, Target};
use agentd_bench::model_server::{ModelServer, task};
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use cache::{Cache, Rules, Used};
use clap::Args;
use request::Request;
use serde_json::json;
use std::path::{Path, PathBuf};

/// US dollars per million tokens: input, cached read, cache write for five minutes, for an hour, output.
const PRICES: [f64; 5] = [3.0, 0.3, 3.75, 6.0, 15.0];
/// The bill that the task should not exceed where the cache has marks.
const GOAL_USD: f64 = 0.28;
/// The share of tools and system prompt that sessions in different directories should share, in percent.
const GOAL_SHARED: f64 = 90.0;

/// How to use the requests.
#[derive(Debug, Clone, Args)]
pub(crate) struct CostArgs {
    /// Write the requests of each dialect below this directory, one file each
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Instead, simulate sessions of 200 and 1,000 steps in windows of 32k, 200k and 1M tokens, without a daemon: US cents
    /// per step with agentd's clearing and summaries, with none (as if the window had no end), and with the best choice.
    ///
    /// The best choice is found by dynamic programming over the same sizes, prices and cache: it knows the whole session
    /// in advance, and chooses at which steps to clear and at which to summarise. Each clearing and each summary
    /// keeps the same as in agentd. Possible points are every step at 32k, every 4th at 200k and every 10th at 1M.
    #[arg(long, verbatim_doc_comment)]
    long: bool,
}

/// A provider that the task runs on.
struct Case {
    name: &'static str,
    dialect: &'static str,
    base: &'static str,
    /// The provider's name for the model; it decides the prompt and the tools.
    model: &'static str,
    compat: &'static str,
    rules: Rules,
}

/// Models with a minimum of 1,024 tokens, the most common one.
const MARKS: Rules = Rules::Marks { min: 1_024 };
const PREFIX: Rules = Rules::Prefix {
    min: 1_024,
    step: 128,
};

const fn case(name: &'static str, dialect: &'static str, model: &'static str, rules: Rules) -> Case {
    Case {
        name,
        dialect,
        base: "",
        model,
        compat: "",
        rules,
    }
}

const CASES: [Case; 7] = [
    Case {
        compat: "compat = { prompt_cache = true }",
        ..case("anthropic", "anthropic", "claude-sonnet-5-5", MARKS)
    },
    // Nothing is configured: the address is not the provider's own.
    case("anthropic-gateway", "anthropic", "claude-sonnet-5-5", MARKS),
    Case {
        base: "/v1",
        ..case("chat-claude", "openai-chat", "anthropic/claude-sonnet-5-5", MARKS)
    },
    Case {
        base: "/v1",
        ..case("openai-chat", "openai-chat", "deepseek-chat", PREFIX)
    },
    Case {
        base: "/v1",
        ..case("openai-responses", "openai-responses", "gpt-5.2", PREFIX)
    },
    case("gemini", "gemini", "gemini-2.5-flash", PREFIX),
    // A local server keeps the whole prefix.
    case("ollama", "ollama", "qwen3", Rules::Prefix { min: 0, step: 1 }),
];

pub(crate) async fn run(daemon: &DaemonArgs, args: &CostArgs) -> Result<Report> {
    if args.long {
        return Ok(long::run());
    }
    let server = ModelServer::start(true).await?;
    let config = config(&server.url(), daemon);
    let daemon = DaemonArgs {
        model_url: Some(server.url()),
        whole: Some(config),
        ..daemon.clone()
    };
    let bench = Bench::start(&daemon, MannerArgs::default()).await?;
    let mut watch = Watcher::start(&bench).await?;
    let mut report = Report::default();
    for case in &CASES {
        let name = case.name;
        let all = session(&bench, &server, &mut watch, case, task::STEPS).await?;
        ensure!(
            all.len() == task::STEPS + 1,
            "{name}: {} requests instead of {}",
            all.len(),
            task::STEPS + 1
        );
        save(args, name, &all)?;
        let requests = all
            .iter()
            .map(|body| Request::read(body))
            .collect::<Result<Vec<_>>>()
            .with_context(|| name.to_owned())?;
        let elsewhere = session(&bench, &server, &mut watch, case, 0).await?;
        let elsewhere = elsewhere.first().context("one request")?;
        let bill = bill(&requests, case.rules).with_context(|| name.to_owned())?;
        let shared = shared(&requests, &Request::read(elsewhere)?, case.rules)?;
        let first = requests.first().context("one request")?;
        let figures = json!({
            "system": first.system, "tools": first.tools, "sent": bill.sent, "cached_percent": bill.cached_percent(),
            "output": bill.output,
        });
        report.put(name, figures);
        let target = (case.rules == MARKS).then_some(Target::AtMost(GOAL_USD));
        report.maybe(format!("{name}.bill_usd"), bill.usd(), target);
        report.maybe(
            format!("{name}.shared_percent"),
            shared as f64 * 100.0 / (first.system + first.tools) as f64,
            Some(Target::AtLeast(GOAL_SHARED)),
        );
    }
    let failed = watch.with(|seen| seen.failed_tools);
    report.put("failed_tool_calls", failed);
    watch.all_completed()?;
    Ok(report)
}

/// Runs the task once, in a directory of its own. Returns the bodies of its requests.
async fn session(
    bench: &Bench,
    server: &ModelServer,
    watch: &mut Watcher,
    case: &Case,
    steps: usize,
) -> Result<Vec<Bytes>> {
    let before = server.bodies().len();
    let place = bench.place(&format!("{}-{steps}", case.name))?;
    task::lay_out(Path::new(&place))?;
    let ended = watch.ended();
    create(&bench.client, case, place, steps).await?;
    watch.until(ended + 1).await?;
    Ok(server.bodies().split_off(before))
}

async fn create(client: &Client, case: &Case, workdir: String, steps: usize) -> Result<()> {
    let words = format!("{}\n\nplan:{} steps={steps} tool=task;", task::PROMPT, case.name);
    let params = CreateParams {
        title: Some(case.name.to_owned()),
        workdir,
        model: Some(case.name.to_owned()),
        prompt: Some(vec![Block::text(words)]),
        ..CreateParams::default()
    };
    client.create(&params).await?;
    Ok(())
}

/// The configuration of the daemon: defaults, and one model for each case.
fn config(url: &str, daemon: &DaemonArgs) -> String {
    let level = daemon.sandbox.name();
    let mut text = format!(
        "[model]\ndefault = \"anthropic\"\n[permission]\nmode = \"yolo\"\n[sandbox]\nlevel = \"{level}\"\nrequire = \"{level}\"\n"
    );
    for case in &CASES {
        let Case {
            name,
            dialect,
            base,
            model,
            compat,
            ..
        } = case;
        text.push_str(&format!(
            "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{url}{base}\"\n\
             credentials = [{{ name = \"main\", env = \"{KEY}\" }}]\n{compat}\n\
             [models.{name}]\nprovider = \"{name}\"\nmodel = \"{model}\"\ncontext_window = 200000\n"
        ));
    }
    text
}

fn save(args: &CostArgs, name: &str, bodies: &[Bytes]) -> Result<()> {
    let Some(dir) = &args.save else { return Ok(()) };
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir)?;
    for (n, body) in bodies.iter().enumerate() {
        std::fs::write(dir.join(format!("{n:02}.json")), body)?;
    }
    Ok(())
}

/// The cost of a run.
#[derive(Debug, Default)]
struct Bill {
    /// Tokens of all requests.
    sent: u64,
    used: Used,
    output: u64,
}

impl Bill {
    fn usd(&self) -> f64 {
        let tokens = [
            self.used.fresh,
            self.used.read,
            self.used.write,
            self.used.write_long,
            self.output,
        ];
        let cost = tokens.iter().zip(PRICES);
        cost.map(|(tokens, price)| *tokens as f64 * price / 1e6).sum()
    }

    /// The share of what was sent that came from the cache, in percent.
    fn cached_percent(&self) -> u64 {
        (self.used.read * 100).checked_div(self.sent).unwrap_or_default()
    }
}

fn bill(requests: &[Request], rules: Rules) -> Result<Bill> {
    let mut cache = Cache::new(rules);
    let mut bill = Bill::default();
    for request in requests {
        let used = cache.request(&request.blocks, 0)?;
        bill.sent += request.tokens();
        bill.used = bill.used.plus(used);
    }
    let last = requests.last().context("one request")?;
    bill.output = last.answered() + task::FINAL.len() as u64 / 4;
    Ok(bill)
}

/// Tokens that a session in another directory reads from the cache at its first request.
fn shared(requests: &[Request], elsewhere: &Request, rules: Rules) -> Result<u64> {
    let mut cache = Cache::new(rules);
    for request in requests {
        cache.request(&request.blocks, 0)?;
    }
    Ok(cache.request(&elsewhere.blocks, 0)?.read)
}
