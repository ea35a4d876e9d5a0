//! `ETag`, `If-None-Match` and `If-Match` of a session (RFC 9110, section 13).
//!
//! An entity tag has two parts: the tag of the settings, and a hash of the whole answer. `If-None-Match` compares both.
//! `If-Match` compares only the settings, because they are what the update changes: the rest of the answer changes with
//! each event of a running session, and an update would hardly ever succeed.

use crate::router::App;
use agentd_protocol::{Fault, Principal};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The bytes of the hash of an answer.
const BYTES: usize = 12;

/// The entity tags that a condition accepts.
#[derive(Debug, PartialEq, Eq)]
enum Accepted {
    /// Everything that exists.
    Any,
    /// These tags, without quotation marks, and whether each one is weak.
    Tags(Vec<(String, bool)>),
}

/// The entity tag of the answer of `session.get`, in quotation marks.
fn tag(answer: &Value) -> String {
    let settings = answer.get("settings_tag").and_then(Value::as_str);
    let hash = Sha256::digest(answer.to_string());
    let hash: String = hash
        .iter()
        .take(BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{}-{hash}\"", settings.unwrap_or_default())
}

/// Adds the entity tag to the response of `session.get`; 304 if the client has this answer.
pub(crate) fn tagged(headers: &HeaderMap, answer: &Value, response: Response) -> Result<Response, Fault> {
    let tag = tag(answer);
    let known = accepted(headers, &header::IF_NONE_MATCH)?.is_some_and(|accepted| match accepted {
        Accepted::Any => true,
        Accepted::Tags(tags) => tags.iter().any(|(known, _)| *known == tag.trim_matches('"')),
    });
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        response
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Adds the settings that `If-Match` expects to the parameters of `session.update`, whose loop compares them.
pub(crate) async fn expect(
    app: &App,
    who: &Principal,
    headers: &HeaderMap,
    params: &mut Map<String, Value>,
) -> Result<(), Fault> {
    let Some(Accepted::Tags(tags)) = accepted(headers, &header::IF_MATCH)? else {
        return Ok(());
    };
    // A weak tag never matches here.
    let strong = tags.iter().filter(|(_, weak)| !weak);
    let settings: Vec<&str> = strong
        .map(|(tag, _)| tag.split_once('-').map_or(tag.as_str(), |(settings, _)| settings))
        .collect();
    let mut expected = settings.first().copied().unwrap_or_default().to_owned();
    if settings.len() > 1 {
        let named = json!({"session": params.get("session")});
        let now = app.api.call(who, "session.get", named).await?;
        let now = now
            .get("settings_tag")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if settings.contains(&now) {
            expected = now.to_owned();
        }
    }
    match params.insert("expect".to_owned(), Value::from(expected.clone())) {
        Some(other) if other != expected => Err(Fault::invalid(
            "bad_params",
            "params: expect: the body and the header If-Match have different values",
        )),
        _ => Ok(()),
    }
}

/// Reads a condition; `None` if there is none.
fn accepted(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Accepted>, Fault> {
    let mut tags = Vec::new();
    let mut any = false;
    for line in headers.get_all(name) {
        let line = line.to_str().map_err(|_| bad(name))?;
        // Our tags have no commas, so a tag with one is another server's, and its parts match as little as the whole.
        for item in line.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (item, weak) = item.strip_prefix("W/").map_or((item, false), |item| (item, true));
            match item.strip_prefix('"').and_then(|item| item.strip_suffix('"')) {
                _ if item == "*" && !weak => any = true,
                Some(tag) => tags.push((tag.to_owned(), weak)),
                None => return Err(bad(name)),
            }
        }
    }
    match (any, tags.is_empty()) {
        (true, true) => Ok(Some(Accepted::Any)),
        (true, false) => Err(bad(name)),
        (false, true) if headers.contains_key(name) => Err(bad(name)),
        (false, true) => Ok(None),
        (false, false) => Ok(Some(Accepted::Tags(tags))),
    }
}

fn bad(name: &HeaderName) -> Fault {
    let message = format!("params: {name}: expected the ETag of an answer, in quotation marks, or *");
    Fault::invalid("bad_params", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Option<Accepted>, Fault> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, HeaderValue::from_str(line).unwrap());
        }
        accepted(&headers, &header::IF_MATCH)
    }

    #[test]
    fn if_match_accepts_a_star_or_tags_on_several_lines() {
        let tag = |tag: &str, weak| (tag.to_owned(), weak);
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&["*"]).unwrap(), Some(Accepted::Any));
        assert_eq!(
            read(&["\"a\", W/\"b\"", ",\"c\","]).unwrap(),
            Some(Accepted::Tags(vec![
                tag("a", false),
                tag("b", true),
                tag("c", false)
            ]))
        );
        for wrong in ["", "a", "\"a", "\"", "W/*", "*, \"a\"", "w/\"a\""] {
            assert_eq!(read(&[wrong]).unwrap_err().code, "bad_params", "{wrong}");
        }
    }

    #[test]
    fn equal_answers_have_equal_tags() {
        let answer = json!({"settings_tag": "s", "seq": 1});
        let other = json!({"settings_tag": "s", "seq": 2});
        assert!(tag(&answer).starts_with("\"s-"), "{}", tag(&answer));
        assert_eq!(tag(&answer), tag(&answer.clone()));
        assert_ne!(tag(&answer), tag(&other));
    }
}
