//! The two operations of the page that call no method: who the caller is, and the exchange of a link's code for a token.

use super::Book;
use super::responses::{failures, json_response};
use crate::shown::Shown;
use agentd_protocol::{SignInParams, TokenCreated};
use serde_json::{Map, Value, json};

/// Adds the operations.
pub(super) fn add(paths: &mut Map<String, Value>, book: &mut Book) {
    let text = json!({"type": "string"});
    let me = json!({
        "type": "object",
        "required": ["principal", "scopes", "labels", "node", "version"],
        "properties": {
            "principal": {"type": "string", "description": "As in `by` of events: `token:NAME`."},
            "scopes": {"type": "array", "items": text},
            "labels": {"$ref": "#/components/schemas/Labels"},
            "node": {"type": "string", "description": "The name of the node."},
            "version": {"type": "string", "description": "The version of agentd."},
        },
    });
    let me = book.own("Me", me);
    let params = book.named(Shown::of::<SignInParams>());
    let signed_in = book.named(Shown::of::<TokenCreated>());
    let operation = |id: &str, about: &str, response: Value, with_body: bool| {
        let ok = std::iter::once(("200".to_owned(), response));
        let responses: Map<String, Value> = ok.chain(failures(with_body)).collect();
        json!({"operationId": id, "summary": about, "tags": ["token"], "responses": responses})
    };
    let me = operation(
        "me",
        "The caller and its scopes",
        json_response("The caller.", &me),
        false,
    );
    let about = "Exchanges the code of a link, which works once, for a token";
    let mut sign_in = operation("sign_in", about, json_response("The token.", &signed_in), true);
    if let Some(sign_in) = sign_in.as_object_mut() {
        sign_in.insert("security".to_owned(), json!([]));
        let body = json!({"required": true, "content": {"application/json": {"schema": params}}});
        sign_in.insert("requestBody".to_owned(), body);
    }
    super::add(paths, "/v1/me", "get", me);
    super::add(paths, "/v1/sign-in", "post", sign_in);
}
