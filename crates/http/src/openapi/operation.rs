//! The operation of a route: its parameters and its body.

use super::{Book, family, operation_id, responses};
use crate::query::Query;
use crate::routes::{Route, Verb};
use serde_json::{Map, Value, json};

pub(super) fn describe(route: &Route, book: &mut Book) -> Value {
    route.params.below(&mut book.schemas);
    let schema = route.params.schema();
    let mut parameters = path_parameters(route.path, &schema);
    parameters.extend(route.query.iter().map(|query| query_parameter(query, &schema)));
    let mut header = |name| parameters.push(json!({"$ref": format!("#/components/parameters/{name}")}));
    if route.takes_key() {
        header("IdempotencyKey");
    }
    if route.waits() {
        header("Prefer");
    }
    match route.method {
        "session.get" => header("IfNoneMatch"),
        "session.update" => header("IfMatch"),
        _ => {}
    }
    let mut operation = head(route.method, parameters);
    if matches!(route.verb, Verb::Post | Verb::Patch) {
        operation.insert("requestBody".to_owned(), body(route, schema, book));
    }
    operation.insert("responses".to_owned(), responses::of(route, book));
    Value::Object(operation)
}

/// The fields that each operation has.
pub(super) fn head(method: &str, parameters: Vec<Value>) -> Map<String, Value> {
    let scope = agentd_api::methods().find(|(name, _)| *name == method);
    let scope = scope.map_or("read", |(_, scope)| scope.as_str());
    let mut operation = Map::new();
    operation.insert("operationId".to_owned(), json!(operation_id(method)));
    operation.insert("summary".to_owned(), json!(method));
    let about = format!("The token needs the scope `{scope}`.");
    operation.insert("description".to_owned(), json!(about));
    operation.insert("tags".to_owned(), json!([family(method)]));
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), Value::Array(parameters));
    }
    operation
}

pub(super) fn path_parameters(path: &str, params: &Value) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name| {
        let (mut schema, about) = property(params, name);
        let text = schema.get("type").and_then(Value::as_str) == Some("string");
        if let Some(schema) = schema.as_object_mut().filter(|_| text) {
            schema.remove("default");
            schema.insert("minLength".to_owned(), json!(1));
        }
        json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
    };
    names.map(parameter).collect()
}

pub(super) fn query_parameter((name, kind): &(&str, Query), params: &Value) -> Value {
    let (schema, about) = property(params, name);
    let schema = match kind {
        Query::Selector => json!({"type": "string"}),
        Query::Number | Query::Flag | Query::Words | Query::Text => schema,
    };
    let all = params.get("required").and_then(Value::as_array);
    let required = all.is_some_and(|all| all.iter().any(|required| required == name));
    let mut parameter = json!({
        "name": name, "in": "query", "description": about, "required": required, "schema": schema,
    });
    if *kind == Query::Words
        && let Some(parameter) = parameter.as_object_mut()
    {
        parameter.insert("style".to_owned(), json!("form"));
        parameter.insert("explode".to_owned(), json!(false));
    }
    parameter
}

/// The schema of a field, which is not null where it is given, and its description.
fn property(params: &Value, name: &str) -> (Value, String) {
    let mut schema = params
        .get("properties")
        .and_then(|all| all.get(name))
        .cloned()
        .unwrap_or_else(|| json!({}));
    if let Some(kind) = schema.get_mut("type")
        && let Some(only) = kind
            .as_array()
            .and_then(|kinds| kinds.iter().find(|kind| *kind != "null"))
    {
        *kind = only.clone();
    }
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let given = choices
        .into_iter()
        .flatten()
        .find(|choice| choice.get("$ref").is_some());
    let mut schema = given.cloned().unwrap_or(schema);
    if schema.get("default").is_some_and(Value::is_null)
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("default");
    }
    let about = description(&mut schema);
    (schema, about)
}

/// Takes the description out of a schema.
fn description(schema: &mut Value) -> String {
    let taken = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("description"));
    taken
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The body: the parameters that are not in the path.
fn body(route: &Route, mut schema: Value, book: &mut Book) -> Value {
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for name in route.path_params() {
            fields.remove(name);
        }
        if let Some(content) = route.content().and_then(|name| fields.get_mut(name)) {
            let content_or_null = json!([{"type": "null"}, {"$ref": "#/components/schemas/Content"}]);
            let optional = content.get("type").is_some_and(Value::is_array);
            let about = description(content);
            *content = if optional {
                json!({"description": about, "oneOf": content_or_null})
            } else {
                json!({"description": about, "$ref": "#/components/schemas/Content"})
            };
        }
    }
    let required = schema.get("required").is_some();
    let schema = book.own(&route.params.name(), schema);
    json!({"required": required, "content": {"application/json": {"schema": schema}}})
}

/// The headers that several operations take.
pub(super) fn headers() -> Value {
    json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A repetition of the request with the same key gives the same answer, and is not carried out again. \
                docs/http.md says how long.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
        },
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": "The `ETag` of the session that the client has read, or several, or `*`. If the settings of the \
                session are others by now, the request is refused with 412.",
            "schema": {"type": "string", "examples": ["\"0f5cd4a92b7713a6e8d1c04b-5f1d7a84e9b2c36d10a7b3f4\""]},
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `ETag` of the answer that the client has. If it is still the same, the answer is 304, without \
                a body.",
            "schema": {"type": "string"},
        },
        "Prefer": {
            "name": "Prefer",
            "in": "header",
            "description": "`wait=SECONDS` holds the answer until the turn ends, at most 600 seconds.",
            "schema": {"type": "string", "examples": ["wait=60"]},
        },
        "LastEventId": {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last event that the client has; replaces `after`.",
            "schema": {"type": "integer", "format": "uint64", "minimum": 0},
        },
    })
}
