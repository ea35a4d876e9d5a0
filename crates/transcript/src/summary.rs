//! A summary made without a model: what was asked, what was done, what was said last. Summarising a summary keeps the
//! same sections, so it does not grow from one compaction to the next.

use crate::cut;
use crate::transcript::NOTE_MARK;
use agentd_protocol::{Block, Message, Role};
use serde_json::Value;
use std::collections::BTreeMap;

const EARLIER: &str = "## Earlier summary";
const ASKED: &str = "## What was asked";
const DONE: &str = "## What was done";
const SAID: &str = "## What was said last";
/// The end of the note with which a section says how many items it has lost.
const LEFT_OUT: &str = " more omitted here)";
/// The most bytes of one request and of one answer.
const ASKED_BYTES: usize = 2_000;
const SAID_BYTES: usize = 1_200;
/// The most answers to keep.
const SAID_ITEMS: usize = 3;
/// The most bytes of a call's argument.
const ARGUMENT_BYTES: usize = 120;
/// The most informative arguments of a call, best first.
const MAIN_ARGUMENTS: [&str; 7] = [
    "command",
    "path",
    "file_path",
    "pattern",
    "url",
    "query",
    "prompt",
];

/// The sections of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// A summary from another source, such as a model.
    earlier: String,
    asked: Items,
    done: Items,
    said: Items,
}

/// One section: its items, and the number lost earlier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Items {
    kept: Vec<String>,
    lost: usize,
}

impl Summary {
    /// Adds messages in order.
    pub(crate) fn add<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        let failed = failures(messages.clone());
        for message in messages {
            for block in &message.content {
                match (block, message.role) {
                    (Block::Text { text }, role) if says_more_than_notes(text) => match role {
                        Role::User => self.asked.add(text, ASKED_BYTES),
                        Role::Assistant => self.said.add(text, SAID_BYTES),
                    },
                    (Block::Image { .. }, _) => self.asked.add("(an image)", ASKED_BYTES),
                    (Block::ToolUse { id, name, input }, _) => {
                        let end = match failed.get(id.as_str()) {
                            Some(true) => "error",
                            Some(false) => "ok",
                            None => "no result",
                        };
                        self.done
                            .add(&format!("{name}{}: {end}", argument(input)), ASKED_BYTES);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Parses what [`Self::write`] wrote; any other text is kept unchanged.
    pub(crate) fn read(text: &str) -> Self {
        let mut summary = Self::default();
        let mut part = "";
        for line in text.lines() {
            if [EARLIER, ASKED, DONE, SAID].contains(&line) {
                part = line;
                continue;
            }
            match part {
                ASKED => summary.asked.read(line),
                DONE => summary.done.read(line),
                SAID => summary.said.read(line),
                _ => {
                    summary.earlier.push_str(line);
                    summary.earlier.push('\n');
                }
            }
        }
        summary.earlier.truncate(summary.earlier.trim_end().len());
        summary
    }

    /// The text, in about `max_bytes`. The first request is the task and stays; of the others, the newest stay.
    pub(crate) fn write(mut self, max_bytes: usize) -> String {
        let mut out = String::new();
        if !self.earlier.is_empty() {
            let share = max_bytes / 3;
            let earlier = cut::head_and_tail(&self.earlier, share).unwrap_or(self.earlier);
            out = format!("{EARLIER}\n{earlier}\n");
        }
        let room = max_bytes.saturating_sub(out.len());
        let overflow = self.said.kept.len().saturating_sub(SAID_ITEMS);
        self.said.kept.drain(..overflow);
        self.said.lost = 0;
        let (asked, done) = (room / 2, room.saturating_mul(3) / 10);
        self.asked.write(&mut out, ASKED, asked, true);
        self.done.write(&mut out, DONE, done, false);
        self.said.write(
            &mut out,
            SAID,
            room.saturating_sub(asked).saturating_sub(done),
            false,
        );
        out.truncate(out.trim_end().len());
        out
    }
}

impl Summary {
    /// A model's summary of the same, in about `max_bytes`, with the requests verbatim next to it.
    pub(crate) fn retold(self, text: &str, max_bytes: usize) -> String {
        let plain: Vec<&str> = text
            .lines()
            .filter(|line| ![EARLIER, ASKED, DONE, SAID].contains(line))
            .collect();
        let (told, asked) = (max_bytes.saturating_mul(3) / 4, max_bytes / 4);
        let plain = plain.join("\n");
        let plain = plain.trim();
        let mut out = cut::head_and_tail(plain, told).unwrap_or_else(|| plain.to_owned());
        out.push('\n');
        self.asked.write(&mut out, ASKED, asked, true);
        out.truncate(out.trim_end().len());
        out
    }
}

impl Items {
    /// An item starts on one line; further lines are indented so that they cannot look like headings.
    fn add(&mut self, text: &str, max_bytes: usize) {
        let text = text.trim();
        self.kept.push(indented(
            &cut::head_and_tail(text, max_bytes).unwrap_or_else(|| text.to_owned()),
        ));
    }

    fn read(&mut self, line: &str) {
        let lost = line
            .strip_prefix('(')
            .and_then(|line| line.strip_suffix(LEFT_OUT))
            .and_then(|count| count.parse::<usize>().ok());
        if let Some(lost) = lost {
            self.lost = self.lost.saturating_add(lost);
        } else if let Some(item) = line.strip_prefix("- ") {
            self.kept.push(item.to_owned());
        } else if let Some(last) = self.kept.last_mut() {
            last.push('\n');
            last.push_str(line);
        }
    }

    /// Writes the newest items that fit; with `first`, the first one as well.
    fn write(self, out: &mut String, heading: &str, room: usize, first: bool) {
        if self.kept.is_empty() {
            return;
        }
        let mut left = room.saturating_sub(heading.len().saturating_add(LEFT_OUT.len() + 8));
        let line = |text: &str, most: usize| format!("- {}\n", short(text, most));
        let mut items = self.kept.iter();
        let task = items.next().filter(|_| first).map(|task| line(task, left / 2));
        left = left.saturating_sub(task.as_ref().map_or(0, String::len));
        let others = if first { items } else { self.kept.iter() };
        let mut newest = Vec::new();
        let mut lost = self.lost;
        for item in others.rev() {
            let line = line(item, room / 3);
            if lost == self.lost && line.len() <= left {
                left -= line.len();
                newest.push(line);
            } else {
                lost = lost.saturating_add(1);
            }
        }
        out.push_str(heading);
        out.push('\n');
        out.push_str(task.as_deref().unwrap_or_default());
        if lost > 0 {
            out.push_str(&format!("({lost}{LEFT_OUT}\n"));
        }
        out.extend(newest.into_iter().rev());
    }
}

/// A shortened item keeps the form of an item.
fn short(item: &str, max_bytes: usize) -> String {
    if item.len() <= max_bytes {
        return item.to_owned();
    }
    let plain = item.replace("\n  ", "\n");
    indented(&cut::head_and_tail(&plain, max_bytes).unwrap_or_else(|| cut::head(&plain, max_bytes)))
}

fn indented(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("\n  ")
}

/// Whether a text is more than agentd's notes, which are of no use later.
fn says_more_than_notes(text: &str) -> bool {
    !text.trim().is_empty() && !text.starts_with(NOTE_MARK)
}

/// Whether each call failed, by call id.
fn failures<'a>(messages: impl Iterator<Item = &'a Message>) -> BTreeMap<&'a str, bool> {
    let blocks = messages.flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            is_error,
            ..
        } => Some((tool_use_id.as_str(), *is_error)),
        _ => None,
    });
    results.collect()
}

/// The most informative argument, on one line.
fn argument(input: &Value) -> String {
    let named = MAIN_ARGUMENTS.iter().find_map(|name| input.get(name)?.as_str());
    let any = || input.as_object()?.values().find_map(Value::as_str);
    let Some(text) = named.or_else(any) else {
        return String::new();
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(" `{}`", cut::head(&line, ARGUMENT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(text: &str) -> Message {
        Message {
            role: Role::User,
            content: vec![Block::text(text)],
        }
    }

    fn call(id: &str, input: Value) -> Message {
        Message {
            role: Role::Assistant,
            content: vec![
                Block::text(format!("I do {id}.")),
                Block::ToolUse {
                    id: id.into(),
                    name: "Bash".into(),
                    input,
                },
            ],
        }
    }

    fn result(id: &str, is_error: bool) -> Message {
        Message {
            role: Role::User,
            content: vec![Block::ToolResult {
                tool_use_id: id.into(),
                content: "…".into(),
                is_error,
            }],
        }
    }

    fn summary() -> Summary {
        let messages = [
            user("Fix the test.\n## What was done\n- nothing"),
            call("a", json!({"timeout": 5, "command": "cargo test\n  --all"})),
            result("a", true),
            call("b", json!({"path": "src/lib.rs"})),
            result("b", false),
            user("[agentd] a note"),
        ];
        let mut summary = Summary::default();
        summary.add(messages.iter());
        summary
    }

    #[test]
    fn a_summary_lists_requests_actions_and_answers() {
        assert_eq!(
            summary().write(4_000),
            "## What was asked\n- Fix the test.\n  ## What was done\n  - nothing\n\
             ## What was done\n- Bash `cargo test --all`: error\n- Bash `src/lib.rs`: ok\n\
             ## What was said last\n- I do a.\n- I do b."
        );
    }

    #[test]
    fn a_written_summary_parses_back() {
        let read = Summary::read(&summary().write(4_000));
        assert_eq!(read, summary());
        let foreign = Summary::read("The user wants a fix.\n\n- it is half done");
        assert_eq!(
            foreign.write(4_000),
            "## Earlier summary\nThe user wants a fix.\n\n- it is half done"
        );
    }

    #[test]
    fn the_task_and_the_newest_items_stay() {
        let mut summary = Summary::default();
        let many: Vec<Message> = (0..500).map(|n| user(&format!("request number {n}"))).collect();
        summary.add(many.iter());
        let text = summary.write(1_000);
        assert!(text.len() <= 1_000, "{}", text.len());
        assert!(text.contains("- request number 0\n(4"), "{text}");
        assert!(text.ends_with("- request number 499"), "{text}");
        let again = Summary::read(&text).write(500);
        assert!(again.contains("- request number 0\n(4"), "{again}");
        assert!(again.ends_with("- request number 499"), "{again}");
    }
}
