//! How the demo is told: one line an event.

use agentd_protocol::{Block, Event, EventBody, ToolStatus};
use std::io::{IsTerminal as _, Write as _};

/// Writes the story to stdout.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    colour: bool,
    sessions: u32,
}

/// Lines of a tool's output that are shown.
const OUTPUT_LINES: usize = 3;

impl Teller {
    pub(super) fn new(sessions: u32) -> Self {
        Self {
            colour: std::io::stdout().is_terminal(),
            sessions,
        }
    }

    pub(super) fn banner(&self) {
        self.print(&format!(
            "\n{} agents repair {} small projects. The model's words are scripted; files, commands, approvals and the log are real.\n",
            self.sessions, self.sessions
        ));
    }

    /// A line of session `number`.
    pub(super) fn line(&self, number: u32, text: &str) {
        // One colour a session, from the six that are readable on light and dark.
        let label = if self.colour {
            format!("\x1b[3{}m[{number}]\x1b[0m", 1 + number % 6)
        } else {
            format!("[{number}]")
        };
        self.print(&format!("{label} {}", agentd_text::for_terminal(text)));
    }

    pub(super) fn event(&self, number: u32, event: &Event) {
        for line in lines(&event.body) {
            self.line(number, &line);
        }
    }

    pub(super) fn diff(&self, number: u32, diff: &str) {
        self.print("");
        for line in diff.lines() {
            let shade = match line.as_bytes().first() {
                Some(b'+') => "32",
                Some(b'-') => "31",
                _ => "0",
            };
            let line = agentd_text::for_terminal(line);
            self.print(&if self.colour {
                format!("[{number}] \x1b[{shade}m{line}\x1b[0m")
            } else {
                format!("[{number}] {line}")
            });
        }
    }

    pub(super) fn closing(&self, good: usize, ctl: &str) {
        self.print(&format!(
            "\n{good} of {} agents are done and their tests are green. The daemon stays up; from another terminal:\n\n  \
             {ctl} ps -a\n  {ctl} logs @last\n  {ctl} attach @last\n\nCtrl-C stops it.",
            self.sessions
        ));
    }

    fn print(&self, text: &str) {
        // A closed stdout is no reason to stop the daemon.
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }
}

/// What an event reads like; most have nothing to say.
fn lines(body: &EventBody) -> Vec<String> {
    match body {
        EventBody::SessionCreated(session) => vec![format!("created in {}", session.workdir)],
        EventBody::ModelFinished(answer) => answer
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(format!("says: {}", first_line(text))),
                _ => None,
            })
            .collect(),
        EventBody::ModelFailed(failure) => {
            let next = failure
                .retry_at
                .map_or("gives up", |_| "the call is started again");
            vec![format!(
                "the model call failed ({}): {next}",
                first_line(&failure.message)
            )]
        }
        EventBody::ApprovalAsked(asked) => {
            let mut lines = vec![format!("ASKS: {}", asked.title)];
            lines.extend(asked.detail.lines().map(|line| format!("      {line}")));
            lines
        }
        EventBody::ApprovalDecided(decided) => vec![format!("answer: {}", word(&decided.decision))],
        EventBody::ToolStarted(tool) => vec![format!("runs: {}", tool.title)],
        EventBody::ToolFinished(done) => {
            let shown = done.outcome.display.as_ref().unwrap_or(&done.outcome.llm_text);
            let mark = if done.outcome.status == ToolStatus::Ok {
                "ok"
            } else {
                "failed"
            };
            let mut lines: Vec<String> = shown
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(OUTPUT_LINES)
                .map(|l| format!("      {l}"))
                .collect();
            lines.push(format!("      {mark} after {} ms", done.outcome.duration_ms));
            lines
        }
        EventBody::TurnFinished(end) => vec![format!(
            "done: {} ({} steps, {} tool calls)",
            word(&end.reason),
            end.steps,
            end.tool_calls
        )],
        _ => Vec::new(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The contract's word for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}
