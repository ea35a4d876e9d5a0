//! Answers as JSON: one object, or items with the place where the next page begins.

use crate::routes::{Route, Shape};
use agentd_protocol::{Listed, SortBy};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

/// A page of at least this many bytes may have been cut by its size: the api cuts at 4 MiB, before the row that crosses it.
const LARGE: usize = 1 << 20;

/// Where a list was cut into pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// The maximum number of rows in a page.
    limit: u64,
    sort: SortBy,
}

impl Cut {
    /// By these parameters, and at most at `most` rows.
    pub(crate) fn of(params: &Map<String, Value>, most: u32) -> Self {
        let most = u64::from(most);
        let limit = params.get("limit").and_then(Value::as_u64).unwrap_or(0);
        let sort = params.get("sort").and_then(|sort| SortBy::deserialize(sort).ok());
        Self {
            limit: if limit == 0 { most } else { limit.min(most) },
            sort: sort.unwrap_or_default(),
        }
    }
}

/// The response of a route to a method's answer.
pub(crate) fn response(route: &Route, answer: Value, cut: Cut) -> Response {
    match route.shape {
        Shape::One => Json(answer).into_response(),
        // A page of an import, which has made no session yet.
        Shape::New if answer.is_null() => (StatusCode::ACCEPTED, Json(json!({}))).into_response(),
        Shape::New => created(StatusCode::CREATED, answer),
        Shape::List => Json(json!({"items": answer})).into_response(),
        Shape::Page => {
            let next = next(&answer, cut);
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
fn next(answer: &Value, cut: Cut) -> Value {
    let Value::Array(rows) = answer else {
        return Value::Null;
    };
    let full = u64::try_from(rows.len()).is_ok_and(|count| count >= cut.limit);
    if !full && (rows.len() < 2 || answer.to_string().len() < LARGE) {
        return Value::Null;
    }
    let last = rows.last().and_then(|row| Listed::deserialize(row).ok());
    last.map_or(Value::Null, |last| Value::from(last.place(cut.sort).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::SessionId;

    #[test]
    fn a_full_page_names_the_start_of_the_next_one() {
        let [one, two] = [
            SessionId::NIL,
            "00000000-0000-0000-0000-000000000002".parse().unwrap(),
        ];
        let rows = json!([{"session": one, "cost_usd": 2}, {"session": two, "cost_usd": 1.5}]);
        let cut = |params: Value, most| Cut::of(params.as_object().unwrap(), most);
        assert_eq!(next(&rows, cut(json!({"limit": 2}), 200)), json!(two));
        assert_eq!(next(&rows, cut(json!({}), 2)), json!(two));
        assert_eq!(next(&rows, cut(json!({"limit": 9}), 2)), json!(two));
        let cost = cut(json!({"limit": 2, "sort": "cost"}), 200);
        assert_eq!(next(&rows, cost), json!(format!("{two}:1.5")));
        assert_eq!(next(&rows, cut(json!({"limit": 3}), 200)), Value::Null);
        assert_eq!(next(&json!([]), cut(json!({}), 200)), Value::Null);
    }
}
