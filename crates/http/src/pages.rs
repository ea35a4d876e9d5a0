//! Answers as JSON: one object, or items with the place where the next page begins.

use crate::routes::{Route, Shape};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

/// A page of at least this many bytes may have been cut by its size: the api cuts at 4 MiB, before the row that crosses it.
const LARGE: usize = 1 << 20;

/// The response of a route to a method's answer.
pub(crate) fn response(route: &Route, answer: Value, limit: u64, most: u32) -> Response {
    match route.shape {
        Shape::One => Json(answer).into_response(),
        // A page of an import, which has made no session yet.
        Shape::New if answer.is_null() => (StatusCode::ACCEPTED, Json(json!({}))).into_response(),
        Shape::New => created(StatusCode::CREATED, answer),
        Shape::List => Json(json!({"items": answer})).into_response(),
        Shape::Page => {
            let next = next(&answer, limit, u64::from(most));
            Json(json!({"items": answer, "next": next})).into_response()
        }
    }
}

/// A response that says where the session is.
pub(crate) fn created(status: StatusCode, answer: Value) -> Response {
    let session = answer.get("session").and_then(Value::as_str);
    let place = session.and_then(|session| HeaderValue::from_str(&format!("/v1/sessions/{session}")).ok());
    let mut response = (status, Json(answer)).into_response();
    if let Some(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// The cursor of the next page; null if this page was not cut.
fn next(answer: &Value, limit: u64, most: u64) -> Value {
    let Value::Array(rows) = answer else {
        return Value::Null;
    };
    let limit = if limit == 0 { most } else { limit.min(most) };
    let full = u64::try_from(rows.len()).is_ok_and(|count| count >= limit);
    let last = rows
        .last()
        .and_then(|row| row.get("session"))
        .cloned()
        .unwrap_or(Value::Null);
    if full || rows.len() > 1 && answer.to_string().len() >= LARGE {
        last
    } else {
        Value::Null
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_names_the_place_of_the_next_one() {
        let rows = json!([{"session": "a"}, {"session": "b"}]);
        assert_eq!(next(&rows, 2, 200), json!("b"));
        assert_eq!(next(&rows, 0, 2), json!("b"));
        assert_eq!(next(&rows, 9, 2), json!("b"));
        assert_eq!(next(&rows, 3, 200), Value::Null);
        assert_eq!(next(&json!([]), 0, 200), Value::Null);
    }
}
