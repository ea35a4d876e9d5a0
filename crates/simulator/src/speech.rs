//! The content of models' answers.

use crate::dice::Dice;
use crate::options::Knob;
use crate::world::World;
use agentd_protocol::{Block, Latency, StopReason, Usage};
use agentd_turn::ModelAnswer;
use serde_json::{Value, json};

impl World {
    pub(crate) fn answer(&mut self, tokens: u64, summary: bool, credential: Option<String>) -> ModelAnswer {
        let (content, stop_reason) = match summary {
            true => (vec![Block::text("## Task\nas it was\n")], StopReason::EndTurn),
            false => self.content(),
        };
        let output = content.iter().map(block_tokens).sum::<u64>().max(1);
        let counts = !self.dice.percent(10);
        let usage = Usage {
            input: if counts { tokens.max(1) } else { 0 },
            output: if counts { output } else { 0 },
            ..Usage::default()
        };
        ModelAnswer {
            content,
            stop_reason,
            usage,
            cost_usd: self.dice.percent(80).then_some(0.25),
            latency: Latency::default(),
            credential,
            reading: agentd_protocol::Reading::default(),
        }
    }

    fn content(&mut self) -> (Vec<Block>, StopReason) {
        let mut content = Vec::new();
        let words = match self.chance(Knob::Long, 100) {
            true => self.dice.between(200, 3_000),
            false => self.dice.between(0, 20),
        };
        let text = match self.dice.below(20) {
            0 => "Let me check:".to_owned(),
            1 => String::new(),
            _ => "talk ".repeat(usize::try_from(words).unwrap_or(1)),
        };
        content.push(Block::text(text));
        let calls = match self.chance(Knob::Tools, 100) {
            true => self.dice.between(1, 4),
            false => 0,
        };
        for _ in 0..calls {
            content.push(self.tool_use());
        }
        let stop = match (calls, self.dice.below(20)) {
            (_, 0) => StopReason::MaxTokens,
            (_, 1) => StopReason::PauseTurn,
            (_, 2) => StopReason::Other,
            (_, 3) => StopReason::Refusal,
            (_, 4) => StopReason::EndTurn,
            (0, _) => StopReason::EndTurn,
            (_, _) => StopReason::ToolUse,
        };
        (content, stop)
    }

    fn tool_use(&mut self) -> Block {
        let n = self.dice.below(6);
        if self.chance(Knob::Children, 100) {
            let input = json!({ "description": format!("part {n}"), "prompt": "do that part" });
            return Block::ToolUse {
                id: format!("call_{n}"),
                name: "Task".to_owned(),
                input,
            };
        }
        let (name, input) = match self.dice.below(16) {
            0..=3 => ("Read", json!({ "file_path": format!("src/{n}.rs") })),
            4 => ("Grep", json!({ "pattern": "x" })),
            5..=8 => ("Bash", json!({ "command": command(n) })),
            9 | 10 => (
                "Write",
                json!({ "file_path": format!("out/{n}"), "content": "x" }),
            ),
            11 => (
                "TodoWrite",
                json!({ "todos": [{ "content": "a", "status": "pending" }] }),
            ),
            12 => (
                "AskUser",
                json!({ "question": "Which?", "choices": ["red", "blue"] }),
            ),
            13 => ("ExitPlanMode", json!({ "plan": "do it" })),
            14 => ("Plan", json!({ "steps": [{ "title": "a", "check": "b" }] })),
            _ => ("Read", json!({ "file_path": "/etc/passwd" })),
        };
        let (name, input) = match self.chance(Knob::Malformed, 100) {
            true => self.malformed(name, input),
            false => (name.to_owned(), input),
        };
        Block::ToolUse {
            id: format!("call_{n}"),
            name,
            input,
        }
    }

    fn malformed(&mut self, name: &str, input: Value) -> (String, Value) {
        match self.dice.below(4) {
            0 => ("Nonsense".to_owned(), input),
            1 => (name.to_owned(), Value::String("{ not json".into())),
            2 => (name.to_owned(), json!({})),
            _ => (name.to_uppercase(), input),
        }
    }
}

fn command(n: u64) -> &'static str {
    match n {
        0 => "ls -la",
        1 => "cargo test",
        2 => "echo a && rm -rf b",
        3 => "cat src/a.rs",
        4 => "rm -rf /",
        _ => "git status",
    }
}

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text { text } => text.len() as u64 / 4,
        Block::ToolUse { input, .. } => input.to_string().len() as u64 / 4,
        Block::Image { .. } | Block::Thinking { .. } | Block::ToolResult { .. } | Block::Unknown => 0,
    }
}

/// A piece of a streamed answer; some stutter.
pub(crate) fn piece_of(dice: &mut Dice) -> String {
    match dice.below(40) {
        0 => "the ".repeat(101),
        n => format!("piece {n} "),
    }
}
