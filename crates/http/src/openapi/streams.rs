//! The operations outside the table: event streams, which are also pages of JSON, and health.

use super::Book;
use super::operation::{head, path_parameters, query_parameter};
use super::responses::{failures, json_response};
use crate::events::{OF_FLEET, OF_SESSION};
use crate::query::Query;
use crate::routes::STREAMS;
use crate::shown::Shown;
use agentd_protocol::{AttachParams, WatchParams};
use serde_json::{Value, json};

const ABOUT: &str = "Events as pages of JSON, or with `Accept: text/event-stream` as server-sent events: events of \
    the log (`Event`) with their `id`, then `synced`, then what happens; `delta`, `lagged` and `ended` have no `id`.";

/// The event streams with their paths.
pub(super) fn describe(book: &mut Book) -> Vec<(&'static str, Value)> {
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
