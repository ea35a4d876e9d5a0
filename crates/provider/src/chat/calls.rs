//! Assembles tool calls from fragments, which every server cuts differently.

use crate::decoder::check_blocks;
use crate::error::ModelError;
use crate::fields::{parse_arguments, text};
use crate::reply::ModelEvent;
use agentd_protocol::Block;
use serde_json::Value;

#[derive(Debug)]
struct Part {
    index: Option<u64>,
    block: u32,
    id: String,
    name: String,
    arguments: String,
}

/// The tool calls of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Part>);

impl Calls {
    /// Whether there is no call: one without a name and arguments does not count.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Part::is_empty)
    }

    /// Takes one fragment; `next_block` is the block number of the next new call.
    ///
    /// # Errors
    /// When there are more calls than any client could run.
    pub(crate) fn take(
        &mut self,
        fragment: &Value,
        next_block: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = fragment.get("index").and_then(Value::as_u64);
        let id = text(fragment, "id");
        let function = fragment.get("function").unwrap_or(fragment);
        let name = text(function, "name");
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        let known = match index {
            Some(_) => self.0.iter().rposition(|part| part.index == index),
            None => self.0.len().checked_sub(1),
        };
        let goes_on = known
            .and_then(|at| self.0.get(at))
            .is_some_and(|part| part.takes(id, name, &arguments));
        let at = match known.filter(|_| goes_on) {
            Some(at) => at,
            None => {
                check_blocks(self.0.len().saturating_add(1))?;
                self.begin(index, next_block)
            }
        };
        let Some(part) = self.0.get_mut(at) else {
            return Ok(());
        };
        let unnamed = part.name.is_empty();
        // Some servers repeat the id and the name in each fragment; others send them empty.
        if part.id.is_empty() {
            id.clone_into(&mut part.id);
        }
        if unnamed && !name.is_empty() {
            name.clone_into(&mut part.name);
            events.push(ModelEvent::ToolStart {
                block: part.block,
                name: name.to_owned(),
            });
        }
        part.arguments.push_str(&arguments);
        if !arguments.is_empty() {
            events.push(ModelEvent::ToolInputDelta {
                block: part.block,
                text: arguments,
            });
        }
        Ok(())
    }

    fn begin(&mut self, index: Option<u64>, next_block: &mut u32) -> usize {
        let block = *next_block;
        *next_block = next_block.saturating_add(1);
        let (id, name, arguments) = Default::default();
        self.0.push(Part {
            index,
            block,
            id,
            name,
            arguments,
        });
        self.0.len().saturating_sub(1)
    }

    /// The calls as blocks; a call without an id gets a generated one.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.0
            .into_iter()
            .zip(1..)
            .map(|(part, number): (Part, u32)| Block::ToolUse {
                id: if part.id.is_empty() {
                    format!("call_{number}")
                } else {
                    part.id
                },
                name: part.name,
                input: parse_arguments(&part.arguments),
            })
    }
}

impl Part {
    fn is_empty(&self) -> bool {
        self.name.is_empty() && matches!(self.arguments.trim(), "" | "{}")
    }

    /// Whether a fragment with this call's index continues this call, rather than starting a new one with the same index.
    fn takes(&self, id: &str, name: &str, arguments: &str) -> bool {
        if !id.is_empty() && !self.id.is_empty() {
            return id == self.id && !self.is_followed_by(name, arguments);
        }
        let repeats = id.is_empty() && self.id.is_empty() && !name.is_empty() && !arguments.is_empty();
        // Checked last: parsing all arguments at each fragment takes quadratic time.
        !(repeats && is_object(&self.arguments))
    }

    /// Whether a fragment with the same id is another whole call: some servers give all calls one index and one id. An
    /// empty object before the real one and a repetition are one call.
    fn is_followed_by(&self, name: &str, arguments: &str) -> bool {
        let full = |text: &str| text.trim_end().ends_with('}') && is_object(text) && text.trim() != "{}";
        !name.is_empty() && self.arguments != arguments && full(arguments) && full(&self.arguments)
    }
}

fn is_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "json values read better by value")]
    use super::*;
    use serde_json::json;

    fn check(fragments: &[Value], expected: &[(&str, &str, Value)]) {
        let mut calls = Calls::default();
        let (mut next_block, mut events) = (0, Vec::new());
        fragments
            .iter()
            .for_each(|fragment| calls.take(fragment, &mut next_block, &mut events).unwrap());
        let blocks: Vec<Block> = calls.into_blocks().collect();
        let call = |(id, name, input): &(&str, &str, Value)| Block::ToolUse {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            input: input.clone(),
        };
        assert_eq!(blocks, expected.iter().map(call).collect::<Vec<_>>());
    }

    fn fragment(index: Value, id: Value, name: Value, arguments: Value) -> Value {
        json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn fragments_are_joined_by_index() {
        check(
            &[
                fragment(json!(0), json!("a"), json!("Read"), json!("")),
                fragment(json!(1), json!("b"), json!("Ls"), json!("")),
                fragment(json!(0), Value::Null, Value::Null, json!("{\"p\":")),
                fragment(json!(1), json!(""), json!(""), json!("{}")),
                fragment(json!(0), Value::Null, Value::Null, json!("1}")),
            ],
            &[("a", "Read", json!({"p": 1})), ("b", "Ls", json!({}))],
        );
    }

    #[test]
    fn a_new_id_at_the_same_index_is_a_new_call() {
        check(
            &[
                fragment(json!(0), json!("a"), json!("Read"), json!("{\"p\":1}")),
                fragment(json!(0), json!("b"), json!("Read"), json!("{\"p\":2}")),
            ],
            &[("a", "Read", json!({"p": 1})), ("b", "Read", json!({"p": 2}))],
        );
    }

    #[test]
    fn whole_calls_without_index_and_id_stay_apart() {
        check(
            &[
                fragment(Value::Null, Value::Null, json!("Read"), json!({"p": 1})),
                fragment(Value::Null, Value::Null, json!("Read"), json!({"p": 2})),
            ],
            &[
                ("call_1", "Read", json!({"p": 1})),
                ("call_2", "Read", json!({"p": 2})),
            ],
        );
    }

    #[test]
    fn whole_calls_with_one_index_and_one_id_stay_apart() {
        let call = |arguments: &str| fragment(json!(0), json!("a"), json!("Read"), json!(arguments));
        check(
            &[call("{\"p\":1}"), call("{\"p\":2}")],
            &[("a", "Read", json!({"p": 1})), ("a", "Read", json!({"p": 2}))],
        );
        check(
            &[call("{}"), call("{\"p\":2}")],
            &[("a", "Read", json!("{}{\"p\":2}"))],
        );
        check(
            &[call("{\"p\":"), call("{\"q\":2}"), call("}")],
            &[("a", "Read", json!({"p": {"q": 2}}))],
        );
    }

    #[test]
    fn a_name_repeated_in_each_fragment_is_one_call() {
        check(
            &[
                fragment(json!(0), json!("a"), json!("Read"), json!("{\"p\"")),
                fragment(json!(0), json!("a"), json!("Read"), json!(":1}")),
            ],
            &[("a", "Read", json!({"p": 1}))],
        );
    }

    #[test]
    fn a_call_without_arguments_gets_an_empty_object() {
        check(
            &[fragment(json!(0), json!("a"), json!("Ls"), json!(""))],
            &[("a", "Ls", json!({}))],
        );
    }
}
