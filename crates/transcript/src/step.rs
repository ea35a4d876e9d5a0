//! The tool calls of the last answer, and their results so far.

use agentd_protocol::{Block, ImageSource, ToolCallId, ToolFinished, ToolStatus};
use serde_json::Value;

/// The substitute for a result that is not in the log.
const NO_RESULT: &str =
    "The call was interrupted before it gave a result. Its outcome is unknown; check before repeating it.";

/// One requested call.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    id: String,
    index: u32,
    /// The result, followed by its images; empty: there is none yet.
    result: Vec<Block>,
}

/// The calls of one answer, until the next request joins their results.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StepCalls {
    calls: Vec<Call>,
}

impl StepCalls {
    /// The calls that an answer requests, in its order.
    pub(crate) fn of(content: &[Block]) -> Self {
        let ids = content.iter().filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            Block::Text { .. }
            | Block::Image { .. }
            | Block::Thinking { .. }
            | Block::ToolResult { .. }
            | Block::Unknown => None,
        });
        let calls = ids.zip(0..).map(|(id, index)| Call {
            id,
            index,
            result: Vec::new(),
        });
        Self {
            calls: calls.collect(),
        }
    }

    /// Whether no call of the last answer is pending.
    pub(crate) const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Sets a call's place according to the log, which overrides its place in the answer.
    pub(crate) fn place(&mut self, tool_call: ToolCallId, index: u32) {
        if let Some(call) = self.find(tool_call) {
            call.index = index;
        }
    }

    /// Keeps the first result of a call; returns its blocks if the call is known and the result new.
    pub(crate) fn finish(&mut self, finished: &ToolFinished) -> Option<&[Block]> {
        let call = self.find(finished.tool_call)?;
        if !call.result.is_empty() {
            return None;
        }
        let result = Block::ToolResult {
            tool_use_id: call.id.clone(),
            content: finished.outcome.llm_text.clone(),
            is_error: finished.outcome.status != ToolStatus::Ok,
        };
        call.result.push(result);
        call.result
            .extend(finished.outcome.media.iter().filter_map(image));
        Some(&call.result)
    }

    /// One result per call, in the order of the calls; a missing one is filled in as interrupted (I3).
    pub(crate) fn seal(self) -> Vec<Block> {
        let mut calls = self.calls;
        calls.sort_by_key(|call| call.index);
        let answer = |call: Call| {
            if !call.result.is_empty() {
                return call.result;
            }
            vec![Block::ToolResult {
                tool_use_id: call.id,
                content: NO_RESULT.to_owned(),
                is_error: true,
            }]
        };
        calls.into_iter().flat_map(answer).collect()
    }

    /// The results so far.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.calls.iter().flat_map(|call| &call.result)
    }

    pub(crate) fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.calls.iter_mut().flat_map(|call| &mut call.result)
    }

    fn find(&mut self, tool_call: ToolCallId) -> Option<&mut Call> {
        let id = tool_call.to_string();
        self.calls.iter_mut().find(|call| call.id == id)
    }
}

/// An image in a result. Other media are only for people.
fn image(media: &Value) -> Option<Block> {
    let text = |name| media.get(name).and_then(Value::as_str).map(str::to_owned);
    let media_type = text("media_type").filter(|kind| kind.starts_with("image/"))?;
    let source = ImageSource::Data(text("data")?);
    Some(Block::Image { media_type, source })
}
