//! The operations outside the table: event streams, which are also pages of JSON, and health.

use super::Book;
use super::operation::{head, path_parameters, query_parameter};
use super::responses::{failures, json_response, reference};
use crate::events::{OF_FLEET, OF_SESSION};
use crate::query::Query;
use crate::routes::STREAMS;
use crate::several::PARAMS;
use crate::shown::Shown;
use agentd_protocol::{AttachParams, WatchParams};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

const ABOUT: &str = "Events as pages of JSON, or with `Accept: text/event-stream` as server-sent events: events of \
    the log (`Event`) with their `id`, then `synced`, then what happens; `delta`, `lagged` and `ended` have no `id`.";

/// Adds the operations.
pub(super) fn add(paths: &mut Map<String, Value>, book: &mut Book) {
    let all = describe(book).into_iter().chain([several()]).chain(health());
    for (path, described) in all {
        super::add(paths, path, "get", described);
    }
}

/// The event streams with their paths.
fn describe(book: &mut Book) -> Vec<(&'static str, Value)> {
    let next = json!({"type": ["integer", "null"], "description": "The `after` of the next page."});
    let event = json!({"$ref": "#/components/schemas/Event"});
    let of_session = json!({"type": "object", "required": ["items", "next", "head"], "properties": {
        "items": {"type": "array", "items": event},
        "next": next,
        "head": {"type": "integer", "description": "The last seq of the log."},
    }});
    let placed = json!({"type": "object", "required": ["cursor", "event"], "properties": {
        "cursor": {"type": "integer", "description": "The place of the event in the fleet's log."},
        "event": event,
    }});
    let placed = book.own("FleetEvent", placed);
    let of_fleet = json!({"type": "object", "required": ["items", "next"], "properties": {
        "items": {"type": "array", "items": placed},
        "next": next,
    }});
    let of_session = book.own("EventPage", of_session);
    let of_fleet = book.own("FleetEventPage", of_fleet);
    let [attach, watch, _] = STREAMS;
    vec![
        stream(attach, Shown::of::<AttachParams>(), &OF_SESSION, &of_session),
        stream(watch, Shown::of::<WatchParams>(), &OF_FLEET, &of_fleet),
    ]
}

fn stream(
    (method, path): (&'static str, &'static str),
    params: Shown,
    query: &[(&str, Query)],
    page: &Value,
) -> (&'static str, Value) {
    let mut params = params.schema();
    if let Some(Value::Object(fields)) = params.get_mut("properties") {
        let number =
            |about| json!({"type": "integer", "format": "uint64", "minimum": 0, "description": about});
        fields.insert(
            "after".to_owned(),
            number("The place in the log after which the events begin."),
        );
        fields.insert(
            "limit".to_owned(),
            number("The most events of a page, up to 1000."),
        );
    }
    let mut parameters = path_parameters(path, &params);
    parameters.extend(query.iter().map(|query| query_parameter(query, &params)));
    parameters.push(json!({"$ref": "#/components/parameters/LastEventId"}));
    let mut operation = head(method, parameters);
    let about = format!("{ABOUT} The token needs the scope `read`.");
    operation.insert("description".to_owned(), json!(about));
    let mut response = json_response("A page, or a stream.", page);
    if let Some(Value::Object(content)) = response.get_mut("content") {
        content.insert(
            "text/event-stream".to_owned(),
            json!({"schema": {"type": "string"}}),
        );
    }
    let responses = std::iter::once(("200".to_owned(), response)).chain(failures(false));
    operation.insert("responses".to_owned(), Value::Object(responses.collect()));
    (path, Value::Object(operation))
}

/// The stream of several sessions and the fleet.
fn several() -> (&'static str, Value) {
    let about = |name: &str| match name {
        "sessions" => "Sessions to follow: `ID`, or `ID:SEQ` to begin after this seq.",
        "tail" => "Begins with the last N events of sessions without a seq.",
        "deltas" => "Sends deltas of the sessions as well.",
        "decides" => "This viewer may answer approvals of the sessions.",
        "fleet" => "Follows the fleet as well: after this cursor, or without a value only new events.",
        "labels" => "Of the fleet, only events of sessions with these labels.",
        _ => "Of the fleet, only events of these types or families of types.",
    };
    let parameters = PARAMS.iter().map(|(name, kind)| {
        let words = json!({"type": "array", "items": {"type": "string"}});
        let number = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
        let schema = match kind {
            Query::Words => words,
            Query::Number => number,
            Query::Flag => json!({"type": "boolean"}),
            Query::Text | Query::Selector => json!({"type": "string"}),
        };
        let mut parameter =
            json!({"name": name, "in": "query", "description": about(name), "schema": schema});
        if let Some(parameter) = parameter.as_object_mut().filter(|_| *kind == Query::Words) {
            parameter.insert("style".to_owned(), json!("form"));
            parameter.insert("explode".to_owned(), json!(false));
        }
        parameter
    });
    let mut parameters: Vec<Value> = parameters.collect();
    parameters.push(json!({
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event that the client has, of a stream of the same sessions in the same order.",
        "schema": {"type": "string"},
    }));
    let found = json!({
        "description": "Server-sent events, as docs/http.md describes them.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    });
    let status = StatusCode::NOT_ACCEPTABLE;
    let responses = [
        ("200".to_owned(), found),
        (status.as_str().to_owned(), reference(status)),
    ];
    let responses: Map<String, Value> = responses.into_iter().chain(failures(false)).collect();
    let operation = json!({
        "operationId": "stream",
        "summary": "several sessions and the fleet on one stream",
        "description": "Needs `Accept: text/event-stream`. The token needs the scope `read`.",
        "tags": ["session"],
        "parameters": parameters,
        "responses": responses,
    });
    ("/v1/stream", operation)
}

/// What needs no token.
pub(super) fn health() -> [(&'static str, Value); 3] {
    let operation = |id: &str, about: &str, media: &str, schema: Value| {
        json!({
            "operationId": id,
            "summary": about,
            "tags": ["health"],
            "security": [],
            "responses": {
                "200": {"description": "Yes.", "content": {media: {"schema": schema}}},
                "503": {"$ref": "#/components/responses/ServiceUnavailable"},
                "500": {"$ref": "#/components/responses/InternalServerError"},
            },
        })
    };
    let (text, object) = (json!({"type": "string"}), json!({"type": "object"}));
    [
        (
            "/healthz",
            operation(
                "health_alive",
                "Whether the daemon runs",
                "text/plain",
                text.clone(),
            ),
        ),
        (
            "/readyz",
            operation(
                "health_ready",
                "Whether the daemon takes work",
                "text/plain",
                text,
            ),
        ),
        (
            "/v1/openapi.json",
            operation("openapi", "This description", "application/json", object),
        ),
    ]
}
