//! Choices by `type` as choices of named types: what generators of clients can read.

use super::Book;
use serde_json::{Map, Value, json};

/// Replaces the schema of events, an envelope around a choice of payloads, by a choice of events.
pub(super) fn of_events(book: &mut Book) {
    let event = book.schemas.remove("Event").unwrap_or_default();
    let body = book.schemas.remove("EventBody").unwrap_or_default();
    let envelope = event.pointer("/allOf/1").cloned().unwrap_or_default();
    let envelope = book.own("EventEnvelope", envelope);
    // The one without a payload stands for types of newer versions.
    let known = variants(&body).filter(|variant| variant.get("allOf").is_some());
    let choices = known.map(|variant| {
        let parts = variant.get("allOf").and_then(Value::as_array);
        let parts: Vec<&Value> = std::iter::once(&envelope)
            .chain(parts.into_iter().flatten())
            .collect();
        json!({"description": variant.get("description"), "allOf": parts})
    });
    choose(book, "Event", event.get("description"), choices.collect());
}

/// Names the variants of a choice.
pub(super) fn of_variants(book: &mut Book, name: &str) {
    let choice = book.schemas.remove(name).unwrap_or_default();
    let variants = variants(&choice).cloned().collect();
    choose(book, name, choice.get("description"), variants);
}

fn variants(choice: &Value) -> impl Iterator<Item = &Value> {
    let all = choice.get("oneOf").and_then(Value::as_array);
    all.into_iter().flatten()
}

fn choose(book: &mut Book, name: &str, about: Option<&Value>, variants: Vec<Value>) {
    let (mut choices, mut mapping) = (Vec::new(), Map::new());
    for variant in variants {
        let Some(tag) = tag(&variant).map(str::to_owned) else {
            continue;
        };
        let choice = book.own(&name_of(&tag, name), variant);
        mapping.insert(tag, choice.get("$ref").cloned().unwrap_or_default());
        choices.push(choice);
    }
    let discriminator = json!({"propertyName": "type", "mapping": mapping});
    let choice = json!({"description": about, "oneOf": choices, "discriminator": discriminator});
    book.own(name, choice);
}

/// The `type` of a variant.
fn tag(variant: &Value) -> Option<&str> {
    let parts = variant.get("allOf").and_then(Value::as_array);
    let mut parts = parts.into_iter().flatten().chain([variant]);
    parts.find_map(|part| part.pointer("/properties/type/enum/0")?.as_str())
}

/// `SessionCreatedEvent` for `session.created`, `TextDelta` for `delta.text`.
fn name_of(tag: &str, of: &str) -> String {
    let words = tag.split(['.', '_']);
    let words = words.map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(chars).collect::<String>()
    });
    let words: String = words.collect();
    format!("{}{of}", words.strip_prefix(of).unwrap_or(&words))
}
