//! Long sessions, simulated: what a step costs with the shipped rules for clearing and summaries, without any, and with
//! the best choice of points for them.

mod best;
mod ours;

use crate::report::Report;
use agentd_protocol::Price;
use agentd_transcript::summary_request;
use agentd_turn::ContextRules;
use serde_json::{Value, json};

/// US dollars per million tokens.
const PRICE: Price = Price {
    input: 3.0,
    output: 15.0,
    cache_read: 0.3,
    cache_write: 3.75,
    cache_write_1h: 0.0,
};
/// Tokens of the tools and the system prompt.
const FRAME: u64 = 3_500;
/// Tokens of the task.
const TASK: u64 = 400;
/// Tokens of a summary that a model wrote.
const SUMMARY: u64 = 1_500;
/// The output limit of the model.
const MAX_OUTPUT: u64 = 8_192;

/// The sizes of a session's steps, in tokens.
#[derive(Debug)]
struct Work {
    answers: Vec<u64>,
    results: Vec<u64>,
}

impl Work {
    /// Mostly short results, some of a few thousand tokens; the same at each run.
    fn new(steps: usize) -> Self {
        let mut state: u64 = 0x5eed;
        let mut next = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut work = Self {
            answers: Vec::new(),
            results: Vec::new(),
        };
        for _ in 0..steps {
            work.answers.push(80 + next(160));
            let long = next(10) < 3;
            work.results.push(100 + next(if long { 4_000 } else { 600 }));
        }
        work
    }

    fn steps(&self) -> usize {
        self.answers.len()
    }
}

/// A model's window and the rules for it.
#[derive(Debug, Clone, Copy)]
struct Window {
    tokens: u64,
    /// A conversation with more tokens is summarised.
    line: u64,
    rules: ContextRules,
}

impl Window {
    fn new(tokens: u64) -> Self {
        let rules = ContextRules::default();
        let line = rules.line(tokens, MAX_OUTPUT);
        Self { tokens, line, rules }
    }
}

/// The cost of a request and its answer, in US dollars.
#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn cost(read: u64, write: u64, output: u64) -> f64 {
    let all =
        read as f64 * PRICE.cache_read + write as f64 * PRICE.cache_write + output as f64 * PRICE.output;
    all / 1e6
}

/// The cost of a summary requested at the end of the cached conversation.
#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn summary_cost(read: u64, new: u64) -> f64 {
    let question = summary_request().len() as u64 / 4;
    cost(read, 0, SUMMARY) + (new + question) as f64 * PRICE.input / 1e6
}

/// The cost without clearing and summaries, and the steps that fit into the window.
fn none(work: &Work, window: Window) -> (f64, usize) {
    let (mut usd, mut sent, mut new, mut fit) = (0.0, 0, FRAME + TASK, 0);
    for (at, (answer, result)) in work.answers.iter().zip(&work.results).enumerate() {
        usd += cost(sent, new, *answer);
        sent += new;
        if sent <= window.tokens - MAX_OUTPUT {
            fit = at + 1;
        }
        new = answer + result;
    }
    (usd, fit)
}

/// Simulates all sessions.
pub(super) fn run() -> Report {
    let mut report = Report::default();
    for steps in [200, 1_000] {
        let work = Work::new(steps);
        for (name, tokens, every) in [("32k", 32_768, 1), ("200k", 200_000, 4), ("1M", 1_000_000, 10)] {
            let window = Window::new(tokens);
            let ours = ours::run(&work, window);
            let (none, fit) = none(&work, window);
            let best = best::run(&work, window, every);
            report.put(
                format!("{steps} steps, {name}"),
                json!({
                    "agentd": cents(ours.usd, steps), "none": cents(none, steps), "none_fits": fit,
                    "best": cents(best, steps), "cleared": ours.cleared, "summaries": ours.summaries,
                }),
            );
        }
    }
    report
}

/// US cents per step.
#[expect(clippy::cast_precision_loss, reason = "few steps")]
fn cents(usd: f64, steps: usize) -> Value {
    json!((usd * 1e5 / steps as f64).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_choice_of_points_beats_the_optimum_within_the_window() {
        let work = Work::new(120);
        let window = Window::new(32_768);
        let ours = ours::run(&work, window);
        let best = best::run(&work, window, 1);
        assert!(ours.largest <= window.tokens, "{}", ours.largest);
        assert!(ours.summaries > 0);
        // The shipped code keeps slightly more than the model of it, since it does not part calls from results.
        assert!(best <= ours.usd * 1.02, "{best} {}", ours.usd);
        assert!(
            best <= best::run(&work, window, 2) + 1e-9,
            "more points are no worse"
        );
    }

    #[test]
    fn all_three_cost_the_same_if_nothing_needs_management() {
        let work = Work::new(30);
        let window = Window::new(1_000_000);
        let ours = ours::run(&work, window);
        let (none, fit) = none(&work, window);
        assert_eq!((ours.cleared, ours.summaries, fit), (0, 0, 30));
        let best = best::run(&work, window, 1);
        assert!((best - none).abs() < 1e-9, "{best} {none}");
        assert!((ours.usd / none - 1.0).abs() < 0.02, "{} {none}", ours.usd);
    }
}
