//! The narration of the demo: one line per event.

use agentd_protocol::{AppliedTo, Block, Branched, Event, EventBody, ToolCallId, ToolFinished, ToolStatus};
use std::collections::HashMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Writes the story to stdout.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    colour: bool,
    sessions: u32,
    /// The `agentctl` command for this daemon.
    ctl: String,
}

/// The titles of a session's running calls.
pub(super) type Titles = HashMap<ToolCallId, String>;

/// Lines shown of a tool's output.
const OUTPUT_LINES: usize = 3;
/// Words at the start of a line that are shown in a color: green, red, yellow.
const SHADES: [(&str, &str); 4] = [
    ("ok:", "32"),
    ("FAILED:", "31"),
    ("failed:", "31"),
    ("ASKS:", "33"),
];

impl Teller {
    pub(super) fn new(sessions: u32, ctl: String) -> Self {
        Self {
            colour: std::io::stdout().is_terminal(),
            sessions,
            ctl,
        }
    }

    pub(super) fn banner(&self) {
        let who = match self.sessions {
            1 => "One agent fixes a script in a small repository".to_owned(),
            n => format!("{n} agents fix one script each in a small repository, each in its own worktree"),
        };
        let ctl = &self.ctl;
        self.print(&format!(
            "\n{who}. Only the model's answers are scripted; files, commands, approvals and the log are real.\n\
             The demo approves requests after a while, unless you answer first. To watch from another terminal:\n\n  \
             {ctl} ps -w\n  {ctl} attach \"demo 1\"\n"
        ));
    }

    /// Prints where a browser can watch.
    pub(super) fn page(&self, url: &str) {
        self.print(&format!(
            "Or in a browser (the link works once; `{} open` makes another):\n\n  {url}\n",
            self.ctl
        ));
    }

    /// Prints how a user can answer the open approval.
    pub(super) fn how_to_answer(&self, number: u32, approval: &str, look: Duration) {
        let short = approval
            .get(approval.len().saturating_sub(12)..)
            .unwrap_or(approval);
        self.line(
            number,
            &format!(
                "      {} approve {short}   (approved automatically after {} s, or later while you are connected)",
                self.ctl,
                look.as_secs()
            ),
        );
    }

    /// Prints a line of session `number`.
    pub(super) fn line(&self, number: u32, text: &str) {
        let text = agentd_text::for_terminal(text);
        if !self.colour {
            return self.print(&format!("[{number}] {text}"));
        }
        // One color per session, from the six that are readable on light and dark.
        self.print(&format!(
            "\x1b[3{}m[{number}]\x1b[0m {}",
            1 + number % 6,
            shaded(&text)
        ));
    }

    pub(super) fn event(&self, number: u32, event: &Event, titles: &mut Titles) {
        for line in lines(event, titles) {
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

    pub(super) fn branched(&self, number: u32, made: &Branched) {
        self.print("");
        self.line(
            number,
            &format!(
                "its work is now the branch {} of {}",
                made.branch, made.repository
            ),
        );
    }

    pub(super) fn applied(&self, number: u32, applied: &AppliedTo) {
        let files = applied.files.join(", ");
        self.line(number, &format!("its work is applied to {}: {files}", applied.to));
    }

    pub(super) fn closing(&self, good: usize) {
        let ctl = &self.ctl;
        let failed = match usize::try_from(self.sessions)
            .unwrap_or_default()
            .saturating_sub(good)
        {
            0 => String::new(),
            failed => format!(" {failed} failed, as scripted."),
        };
        self.print(&format!(
            "\n{good} of {} agents are done and their tests pass.{failed} The daemon stays up; from another terminal:\n\n  \
             {ctl} ps\n  {ctl} workspace ls\n  {ctl} logs @last\n  {ctl} attach @last\n\nCtrl-C stops it and deletes the temporary repository.",
            self.sessions
        ));
    }

    fn print(&self, text: &str) {
        // A closed stdout is no reason to stop the daemon.
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }
}

/// Colors the first word of a line, if it is one of these.
fn shaded(text: &str) -> String {
    let begin = text.len() - text.trim_start().len();
    let (blank, rest) = text.split_at(begin);
    for (word, shade) in SHADES {
        if let Some(behind) = rest.strip_prefix(word) {
            return format!("{blank}\x1b[{shade}m{word}\x1b[0m{behind}");
        }
    }
    text.to_owned()
}

/// The lines for an event; none for most events.
fn lines(event: &Event, titles: &mut Titles) -> Vec<String> {
    match &event.body {
        EventBody::SessionCreated(session) => vec![format!("created in {}", session.workdir)],
        EventBody::ModelFinished(answer) => answer
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(format!("says: {}", gist(text))),
                _ => None,
            })
            .collect(),
        EventBody::ModelFailed(failure) => {
            let next = failure.retry_at.map_or("giving up", |_| "retrying");
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
        EventBody::ApprovalDecided(decided) => {
            vec![format!("answer: {} by {}", word(&decided.decision), event.by)]
        }
        EventBody::ToolStarted(tool) => {
            titles.insert(tool.tool_call, tool.title.clone());
            vec![format!("runs: {}", tool.title)]
        }
        EventBody::ToolFinished(done) => finished(done, titles.remove(&done.tool_call)),
        EventBody::TurnFinished(end) => vec![format!(
            "done: {} ({} steps, {} tool calls)",
            word(&end.reason),
            end.steps,
            end.tool_calls
        )],
        _ => Vec::new(),
    }
}

/// The result of a call, with its most informative lines.
fn finished(done: &ToolFinished, title: Option<String>) -> Vec<String> {
    let outcome = &done.outcome;
    let mark = if outcome.status == ToolStatus::Ok {
        "ok:  "
    } else {
        "failed:"
    };
    let head = format!(
        "{mark} {} ({} ms)",
        title.unwrap_or_default(),
        outcome.duration_ms
    );
    let shown = outcome.display.as_ref().unwrap_or(&outcome.llm_text);
    let is_diff = shown.starts_with("--- ");
    let says_most = |line: &&str| {
        let changed = line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ");
        !line.trim().is_empty() && (changed || !is_diff)
    };
    let below = shown.lines().filter(says_most).take(OUTPUT_LINES);
    std::iter::once(head)
        .chain(below.map(|line| format!("      {line}")))
        .collect()
}

/// The first paragraph without a final announcement, or the last paragraph if the first is nothing else.
fn gist(text: &str) -> &str {
    let mut paragraphs = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    let first = first_line(paragraphs.next().unwrap_or_default());
    if !first.ends_with(':') {
        return first;
    }
    match first.rfind(". ") {
        Some(end) => first.get(..=end).unwrap_or(first),
        None => first_line(paragraphs.last().unwrap_or(first)),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The contract's name for a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{Stamp, Timestamp, ToolOutcome};

    fn told(shown: &str) -> Vec<String> {
        let tool_call = Stamp::new(Timestamp(1_763_629_200_123), 1).tool_call();
        let outcome = ToolOutcome {
            duration_ms: 7,
            ..ToolOutcome::text(ToolStatus::Ok, shown)
        };
        finished(&ToolFinished { tool_call, outcome }, Some("Edit a.sh".into()))
    }

    #[test]
    fn only_changed_lines_of_a_diff_are_shown() {
        let diff = "--- a/a.sh\n+++ b/a.sh\n@@ -1,3 +1,3 @@\n #!/bin/sh\n\n-total=1\n+total=0\n";
        assert_eq!(
            told(diff),
            ["ok:   Edit a.sh (7 ms)", "      -total=1", "      +total=0"]
        );
    }

    #[test]
    fn success_and_failure_are_coloured() {
        assert_eq!(shaded("ok:   Bash"), "\x1b[32mok:\x1b[0m   Bash");
        assert_eq!(
            shaded("      FAILED: sum.sh"),
            "      \x1b[31mFAILED:\x1b[0m sum.sh"
        );
        assert_eq!(shaded("it is ok: really"), "it is ok: really");
    }

    #[test]
    fn other_output_shows_its_first_lines() {
        assert_eq!(
            told("one\n\n- two\nthree\nfour"),
            [
                "ok:   Edit a.sh (7 ms)",
                "      one",
                "      - two",
                "      three"
            ]
        );
    }

    #[test]
    fn the_summary_line_skips_announcements() {
        assert_eq!(gist("I look first.\n\nThen I act."), "I look first.");
        assert_eq!(gist("The test says:\n\nFAILED\n\nI fix it."), "I fix it.");
        assert_eq!(gist("Done. I fixed it. It said:\n\nok"), "Done. I fixed it.");
        assert_eq!(gist("Well:"), "Well:");
        assert_eq!(gist(""), "");
    }
}
