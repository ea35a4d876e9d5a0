//! The description of the API in OpenAPI 3.1, made from the table of routes and the types of its rows.

mod links;
mod operation;
mod responses;
mod signing;
mod streams;
mod union;

use crate::problem;
use crate::routes::{ROUTES, Verb};
use crate::shown::Shown;
use crate::wait::Waited;
use agentd_protocol::{Block, CaughtUp, Delta, Event, Lagged, Synced};
use serde_json::{Map, Value, json};

/// The description as the file docs/openapi.json has it.
#[must_use]
pub fn openapi() -> String {
    let mut text = serde_json::to_string_pretty(&document()).unwrap_or_default();
    text.push('\n');
    text
}

/// Collects the schemas that the operations refer to.
#[derive(Default)]
struct Book {
    schemas: Map<String, Value>,
}

impl Book {
    /// A reference to a type, whose schema is added.
    fn named(&mut self, shown: Shown) -> Value {
        shown.below(&mut self.schemas);
        self.own(&shown.name(), shown.schema())
    }

    /// A reference to a schema with this name, which is added.
    fn own(&mut self, name: &str, schema: Value) -> Value {
        self.schemas.insert(name.to_owned(), schema);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// The names of the fields of a schema.
    fn fields(&self, schema: &Value) -> Vec<String> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap_or_default();
            return self
                .schemas
                .get(name)
                .map(|named| self.fields(named))
                .unwrap_or_default();
        }
        let own = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<String> = own.into_iter().flat_map(Map::keys).cloned().collect();
        let parts = schema.get("allOf").and_then(Value::as_array);
        fields.extend(parts.into_iter().flatten().flat_map(|part| self.fields(part)));
        fields
    }
}

fn document() -> Value {
    let mut book = Book::default();
    for shown in [
        Shown::of::<Block>(),
        Shown::of::<Delta>(),
        Shown::of::<Synced>(),
        Shown::of::<CaughtUp>(),
        Shown::of::<Lagged>(),
        Shown::of::<Event>(),
        Shown::of::<Waited>(),
        Shown::of::<problem::Body<'static>>(),
    ] {
        book.named(shown);
    }
    let content = json!({
        "description": "Content: a text, or blocks.",
        "oneOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Block"}}],
    });
    book.own("Content", content);
    union::of_events(&mut book);
    for choice in ["Block", "Delta"] {
        union::of_variants(&mut book, choice);
    }
    let mut paths = Map::new();
    for route in &ROUTES {
        let described = operation::describe(route, &mut book);
        add(&mut paths, route.path, verb(route.verb), described);
    }
    streams::add(&mut paths, &mut book);
    signing::add(&mut paths, &mut book);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agentd",
            "summary": "Runs LLM agents on one machine.",
            "description": "docs/http.md explains the API with examples, docs/protocol.md each method. \
                /v1/wire is the control protocol over WebSocket.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7433"}],
        "security": [{"token": []}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": book.schemas,
            "parameters": operation::headers(),
            "responses": responses::problems(),
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "`agentctl token create NAME --scope read,steer,approve` makes a token.",
            }},
        },
    })
}

fn add(paths: &mut Map<String, Value>, path: &str, verb: &str, operation: Value) {
    let item = paths.entry(path).or_insert_with(|| json!({}));
    if let Value::Object(item) = item {
        item.insert(verb.to_owned(), operation);
    }
}

const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Post => "post",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}

/// The families of the methods.
fn tags() -> Vec<Value> {
    let mut names: Vec<&str> = ROUTES.iter().map(|route| family(route.method)).collect();
    names.extend(["fleet", "health"]);
    names.sort_unstable();
    names.dedup();
    let about = |name: &str| format!("Methods `{name}.*`; docs/protocol.md explains them.");
    let tag = |name: &str| json!({"name": name, "description": about(name)});
    names.into_iter().map(tag).collect()
}

fn family(method: &str) -> &str {
    method.split_once('.').map_or(method, |(family, _)| family)
}

/// The id of a method's operation.
fn operation_id(method: &str) -> String {
    method.replace('.', "_")
}

#[cfg(test)]
mod tests;
