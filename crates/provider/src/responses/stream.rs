//! Answers of the Responses protocol. Finished items are authoritative; the deltas before them are for live viewers.

use crate::decoder::{Outcome, Progress, check_blocks};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::reply::ModelEvent;
use crate::responses::item::Item;
use crate::responses::{ending, items};
use agentd_protocol::{Block, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesStream {
    id: String,
    model: String,
    /// By position in the answer: some servers use different ids for the same item.
    items: BTreeMap<u64, Item>,
    next_block: u32,
    usage: Usage,
    cost_usd: Option<f64>,
    end: Option<StopReason>,
}

impl Reader for ResponsesStream {
    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        // Some servers answer with only the final event.
        if !text(&body, "type").is_empty() {
            return self.frame("", body, events).map(drop);
        }
        if !body.get("output").is_some_and(Value::is_array) {
            return Err(ModelError::transient("the answer has no output"));
        }
        self.finished(body, "completed", events)
    }

    /// Takes one event. Its kind is in the data; the event name is only a fallback.
    fn frame(
        &mut self,
        name: &str,
        mut frame: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let kind = match text(&frame, "type") {
            "" => name.to_owned(),
            kind => kind.to_owned(),
        };
        let kind = kind.strip_prefix("response.").unwrap_or(&kind);
        let mut take = |key: &str| frame.get_mut(key).map(Value::take).unwrap_or_default();
        match kind {
            "error" => return Err(ending::stream_error(&frame)),
            "failed" | "cancelled" => {
                let response = take("response");
                self.count(&response);
                return Err(ending::failure(&response));
            }
            "created" => self.begin(&take("response"))?,
            "completed" | "incomplete" => self.finished(take("response"), kind, events)?,
            "output_item.added" => {
                let item = take("item");
                self.add(number(&frame, "/output_index"), item, events)?;
            }
            "output_item.done" => {
                let item = take("item");
                self.done(number(&frame, "/output_index"), item, events)?;
            }
            _ => return self.piece(kind, &frame, events),
        }
        Ok(Progress::Moved)
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        self.into_outcome()
    }
}

impl ResponsesStream {
    fn begin(&mut self, response: &Value) -> Result<(), ModelError> {
        let id = text(response, "id");
        if !self.id.is_empty() && !id.is_empty() && id != self.id {
            return Err(ModelError::transient("the stream contains two answers"));
        }
        self.name(response);
        Ok(())
    }

    fn name(&mut self, response: &Value) {
        for (slot, key) in [(&mut self.id, "id"), (&mut self.model, "model")] {
            if !text(response, key).is_empty() {
                text(response, key).clone_into(slot);
            }
        }
    }

    fn count(&mut self, response: &Value) {
        if let Some(counted) = response.get("usage").filter(|usage| usage.is_object()) {
            self.usage = ending::usage(counted);
            self.cost_usd = ending::cost_usd(counted);
        }
    }

    /// An event about a part of an item.
    fn piece(
        &mut self,
        kind: &str,
        frame: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let (of, field) = match kind {
            "output_text.delta" | "refusal.delta" => ("message", "delta"),
            "reasoning_summary_text.delta" | "reasoning_text.delta" => ("reasoning", "delta"),
            "function_call_arguments.delta" => ("function_call", "delta"),
            "function_call_arguments.done" => ("function_call", "arguments"),
            "output_text.done" => ("message", "text"),
            "reasoning_summary_part.added" => ("reasoning", ""),
            _ if kind.ends_with(".delta") => return Ok(Progress::Moved),
            // The server is alive; events of newer versions are ignored.
            _ => return Ok(Progress::Alive),
        };
        let at = match self.find(number(frame, "/output_index"), text(frame, "item_id")) {
            Some(at) => at,
            None => self.add(number(frame, "/output_index"), json!({ "type": of }), events)?,
        };
        let Some(item) = self
            .items
            .get_mut(&at)
            .filter(|item| item.kind() == of && !item.done)
        else {
            return Ok(Progress::Moved);
        };
        let piece = match field {
            "delta" => text(frame, "delta"),
            // A further part of the summary starts a new paragraph.
            "" if item.grown.is_empty() => "",
            "" => "\n\n",
            // Servers that do not stream this field send it whole.
            whole if item.grown.is_empty() => text(frame, whole),
            _ => "",
        };
        item.show(piece, events);
        Ok(Progress::Moved)
    }

    /// The item that an event refers to; without an index, the one with this id, or the last.
    fn find(&self, index: Option<u64>, id: &str) -> Option<u64> {
        if index.is_some() {
            return index.filter(|index| self.items.contains_key(index));
        }
        let named = self
            .items
            .iter()
            .find(|(_, item)| !id.is_empty() && text(&item.value, "id") == id);
        named.or_else(|| self.items.last_key_value()).map(|(at, _)| *at)
    }

    fn add(
        &mut self,
        index: Option<u64>,
        value: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<u64, ModelError> {
        let next = self
            .items
            .last_key_value()
            .map_or(0, |(at, _)| at.saturating_add(1));
        let at = index.unwrap_or(next);
        if self.items.contains_key(&at) {
            return Ok(at);
        }
        check_blocks(self.items.len().saturating_add(1))?;
        let block = self.next_block;
        self.next_block = block.saturating_add(1);
        if text(&value, "type") == "function_call" {
            events.push(ModelEvent::ToolStart {
                block,
                name: text(&value, "name").to_owned(),
            });
        }
        let item = Item {
            block,
            value,
            grown: String::new(),
            done: false,
        };
        self.items.insert(at, item);
        Ok(at)
    }

    fn done(
        &mut self,
        index: Option<u64>,
        value: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let known = self.find(index, text(&value, "id")).filter(|at| {
            let open = |item: &Item| !item.done && item.kind() == text(&value, "type");
            index.is_some() || self.items.get(at).is_some_and(open)
        });
        let at = match known {
            Some(at) => at,
            None => self.add(index, value.clone(), events)?,
        };
        if let Some(item) = self.items.get_mut(&at) {
            item.value = value;
            if item.grown.is_empty() {
                let whole = items::readable(&item.value);
                item.show(&whole, events);
            }
            item.done = true;
        }
        Ok(())
    }

    /// Completes the answer. Its final list of items fills in those that were missed.
    fn finished(
        &mut self,
        mut response: Value,
        event: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.name(&response);
        self.count(&response);
        let end = match text(&response, "status") {
            "completed" => StopReason::EndTurn,
            "incomplete" => ending::cut(&response),
            "failed" | "cancelled" => return Err(ending::failure(&response)),
            _ if event == "incomplete" => ending::cut(&response),
            "" => StopReason::EndTurn,
            status => {
                return Err(ModelError::transient(format!(
                    "the status of the answer is {status} instead of completed"
                )));
            }
        };
        let listed = match response.get_mut("output").map(Value::take) {
            Some(Value::Array(listed)) => listed,
            _ => Vec::new(),
        };
        if self.items.values().filter(|item| item.done).count() < listed.len() {
            let places = u64::try_from(listed.len()).unwrap_or(u64::MAX);
            self.items.retain(|at, _| *at < places);
            for (at, item) in (0..).zip(listed) {
                self.done(Some(at), item, events)?;
            }
        }
        self.end = Some(end);
        Ok(())
    }

    /// The answer, if its end has arrived.
    fn into_outcome(self) -> Result<Outcome, ModelError> {
        let Some(end) = self.end else {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        };
        let refused = self.items.values().any(|item| items::refuses(&item.value));
        let content: Vec<Block> = self
            .items
            .into_values()
            .zip(1..)
            .flat_map(|(item, number)| item.into_blocks(number))
            .collect();
        let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let stop_reason = match end {
            StopReason::EndTurn if refused => StopReason::Refusal,
            StopReason::EndTurn if calls => StopReason::ToolUse,
            other => other,
        };
        Ok(Outcome {
            content,
            stop_reason,
            usage: self.usage,
            cost_usd: self.cost_usd,
            model: self.model,
            id: Some(self.id).filter(|id| !id.is_empty()),
        })
    }
}
