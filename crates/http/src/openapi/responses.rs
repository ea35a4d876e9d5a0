//! The responses of an operation: the answer's types, and a problem for each status of the table.

use super::{Book, links};
use crate::problem::status_of;
use crate::routes::{Route, Shape, Verb};
use crate::shown::{Nothing, Shown};
use agentd_protocol::FaultClass;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// What HTTP itself answers, and for which requests.
const OWN: [(StatusCode, bool, &str); 6] = [
    (StatusCode::UNAUTHORIZED, false, "The request has no valid token."),
    (StatusCode::REQUEST_TIMEOUT, true, "The body did not end in time."),
    (StatusCode::PAYLOAD_TOO_LARGE, true, "The body is over the limit."),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, true, "The body is not JSON."),
    (
        StatusCode::MISDIRECTED_REQUEST,
        false,
        "The host is not a name of this server.",
    ),
    (
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false,
        "The headers are over the limit.",
    ),
];

/// The responses of a route.
pub(super) fn of(route: &Route, book: &mut Book) -> Value {
    let name = route.answer.name();
    let answer = book.named(route.answer);
    let mut responses = Map::new();
    if route.shape == Shape::One {
        responses = one(route, &answer);
    }
    let mut add = |status: &str, response: Value| responses.insert(status.to_owned(), response);
    match route.shape {
        Shape::One => {}
        Shape::List => {
            let list = json!({"type": "object", "required": ["items"], "properties": {
                "items": {"type": "array", "items": answer},
            }});
            let list = book.own(&format!("{name}List"), list);
            let links = links::of(route, &answer, "items/0/", book);
            add("200", linked(json_response("All items.", &list), links));
        }
        Shape::Page => {
            let page = json!({"type": "object", "required": ["items", "next"], "properties": {
                "items": {"type": "array", "items": answer},
                "next": {"type": ["string", "null"], "description": "The `after` of the next page."},
            }});
            let page = book.own(&format!("{name}Page"), page);
            let links = links::of(route, &answer, "items/0/", book);
            add("200", linked(json_response("A page of items.", &page), links));
        }
        Shape::New => {
            let links = links::of(route, &answer, "", book);
            let new = linked(json_response("The answer.", &answer), links.clone());
            add("201", with_location(new, book, &answer));
            if route.waits() {
                let waited = json!({"allOf": [answer, {"$ref": "#/components/schemas/Waited"}]});
                let waited = book.own(&format!("{name}Waited"), waited);
                let done = json_response("With `Prefer: wait`: the turn ended.", &waited);
                let open = json_response(
                    "With `Prefer: wait`: the turn goes on, or a person must act.",
                    &waited,
                );
                add("200", linked(done, links.clone()));
                add("202", linked(open, links::approvals(links)));
            }
            if route.method == "session.import" {
                let nothing = book.named(Shown::of::<Nothing>());
                add(
                    "202",
                    json_response("The page was stored; send the next one.", &nothing),
                );
            }
        }
    }
    responses.extend(failures(matches!(route.verb, Verb::Post | Verb::Patch)));
    Value::Object(responses)
}

pub(super) fn json_response(about: &str, schema: &Value) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": schema}}})
}

fn linked(mut response: Value, links: Map<String, Value>) -> Value {
    if let Some(response) = response.as_object_mut()
        && !links.is_empty()
    {
        response.insert("links".to_owned(), Value::Object(links));
    }
    response
}

fn with_location(mut response: Value, book: &Book, answer: &Value) -> Value {
    if book.fields(answer).iter().any(|field| field == "session")
        && let Some(response) = response.as_object_mut()
    {
        let location = json!({"description": "The path of the session.", "schema": {"type": "string"}});
        response.insert("headers".to_owned(), json!({"Location": location}));
    }
    response
}

/// The responses of a route that answers with one object, without the problems that all have.
fn one(route: &Route, answer: &Value) -> Map<String, Value> {
    let mut found = json_response("The answer.", answer);
    let mut responses = Map::new();
    match route.method {
        "session.get" => {
            let mut same = json!({"description": "The client has this answer."});
            with_tag(&mut found);
            with_tag(&mut same);
            responses.insert("304".to_owned(), same);
        }
        "session.update" => {
            let status = StatusCode::PRECONDITION_FAILED;
            responses.insert(status.as_str().to_owned(), reference(status));
        }
        _ => {}
    }
    responses.insert("200".to_owned(), found);
    responses
}

fn with_tag(response: &mut Value) {
    let about = "Changes with the answer; `If-Match` compares only its part about the settings.";
    if let Some(response) = response.as_object_mut() {
        let tag = json!({"description": about, "schema": {"type": "string"}});
        response.insert("headers".to_owned(), json!({"ETag": tag}));
    }
}

/// A reference to the problem with a status.
pub(super) fn reference(status: StatusCode) -> Value {
    json!({"$ref": format!("#/components/responses/{}", name_of(status))})
}

/// References to all problems of an operation.
pub(super) fn failures(with_body: bool) -> impl Iterator<Item = (String, Value)> {
    let own = OWN.into_iter().filter(move |(_, body, _)| with_body || !body);
    let own = own.map(|(status, ..)| status);
    let mut all: Vec<StatusCode> = classes().map(|(status, _)| status).chain(own).collect();
    all.sort_unstable();
    all.into_iter()
        .map(|status| (status.as_str().to_owned(), reference(status)))
}

/// The classes that HTTP reports.
fn classes() -> impl Iterator<Item = (StatusCode, FaultClass)> {
    let all = FaultClass::ALL.into_iter();
    // Versions are agreed on at the start of the socket's protocol, which HTTP does not have.
    all.filter(|class| *class != FaultClass::Version)
        .map(|class| (status_of(class), class))
}

fn name_of(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    reason.replace(' ', "")
}

/// All problems by the names of their statuses.
pub(super) fn problems() -> Value {
    let mut problems = Map::new();
    for (status, class) in classes() {
        let class = serde_json::to_value(class).unwrap_or_default();
        let mut about = format!("The fault's class is `{}`.", class.as_str().unwrap_or_default());
        match status {
            StatusCode::CONFLICT => {
                about.push_str(" Or another request with this `Idempotency-Key` still runs (`key_busy`).");
            }
            StatusCode::UNPROCESSABLE_ENTITY => {
                about.push_str(" Or the `Idempotency-Key` was used for another request (`key_reused`).");
            }
            _ => {}
        }
        problems.insert(name_of(status), problem(status, &about));
    }
    let changed = (
        StatusCode::PRECONDITION_FAILED,
        false,
        "The session has other settings than those that the client has read.",
    );
    let only_stream = (
        StatusCode::NOT_ACCEPTABLE,
        false,
        "The request does not accept server-sent events, the only answer.",
    );
    for (status, _, about) in OWN.into_iter().chain([changed, only_stream]) {
        problems.insert(name_of(status), problem(status, about));
    }
    Value::Object(problems)
}

fn problem(status: StatusCode, about: &str) -> Value {
    let content = json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let header = match status {
        StatusCode::UNAUTHORIZED => Some(("WWW-Authenticate", json!({"type": "string"}))),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some(("Retry-After", json!({"type": "integer", "minimum": 0})))
        }
        // The server answers before it knows the request.
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => return json!({"description": about}),
        _ => None,
    };
    match header {
        Some((header, schema)) => {
            json!({"description": about, "headers": {header: {"schema": schema}}, "content": content})
        }
        None => json!({"description": about, "content": content}),
    }
}
