//! Collects a method's parameters from the path, the query, the body and the headers.

use crate::problem::Problem;
use crate::query;
use crate::routes::{Route, Verb};
use agentd_api::check_key;
use agentd_protocol::{Fault, Unique, kind_of};
use axum::extract::RawPathParams;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};

/// The parts of a request that hold parameters.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) path: &'a RawPathParams,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// The parameters of a route's method.
pub(crate) fn collect(route: &Route, given: Given<'_>) -> Result<Map<String, Value>, Problem> {
    let mut params = query::read(given.query, route.query)?;
    if route.has_body() {
        params = read_body(given.headers, given.body)?;
    }
    if let Some(name) = route.content()
        && let Some(Value::String(text)) = params.get(name)
    {
        let blocks = json!([{"type": "text", "text": text}]);
        params.insert(name.to_owned(), blocks);
    }
    if let Some(key) = key(route, given.headers)?.filter(|_| route.keyed()) {
        place(&mut params, "key", key, "header Idempotency-Key")?;
    }
    for (name, value) in given.path {
        place(&mut params, name, value, "path")?;
    }
    Ok(params)
}

/// The `Idempotency-Key` of a POST; other requests ignore it.
pub(crate) fn key<'a>(route: &Route, headers: &'a HeaderMap) -> Result<Option<&'a str>, Fault> {
    let given = headers.get("idempotency-key");
    let Some(key) = given.filter(|_| route.verb == Verb::Post) else {
        return Ok(None);
    };
    if route.secret() {
        let message = format!(
            "{} takes no Idempotency-Key: its answer is a secret, which agentd does not keep",
            route.method
        );
        return Err(Fault::invalid("bad_key", message)
            .hint("omit the header; if you lost the answer, create another one"));
    }
    let key = key
        .to_str()
        .map_err(|_| Fault::invalid("bad_key", "Idempotency-Key: expected printable ASCII characters"))?;
    check_key(key)?;
    Ok(Some(key))
}

/// Adds a parameter that the body must not also have.
fn place(params: &mut Map<String, Value>, name: &str, value: &str, place: &str) -> Result<(), Fault> {
    match params.insert(name.to_owned(), Value::from(value)) {
        Some(other) if other != value => Err(Fault::invalid(
            "bad_params",
            format!("params: {name}: the body and the {place} have different values"),
        )),
        _ => Ok(()),
    }
}

/// The object in a body; an empty body is an empty object.
pub(crate) fn read_body(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        let message = format!(
            "the body must be application/json, not {}",
            kind.unwrap_or("untyped")
        );
        let fault = Fault::invalid("not_json", message).hint("with curl, use --json instead of --data");
        return Err(Problem::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, fault));
    }
    match serde_json::from_slice(body) {
        Ok(Unique(Value::Object(params))) => Ok(params),
        Ok(Unique(other)) => {
            let message = format!("the body must be a JSON object, not {}", kind_of(&other));
            Err(Fault::invalid("bad_json", message).into())
        }
        Err(error) if error.is_data() => Err(Fault::invalid("bad_json", format!("the body: {error}")).into()),
        Err(error) => Err(Fault::invalid("bad_json", format!("the body is not JSON: {error}")).into()),
    }
}
