//! `POST /v1/sign-in` and `GET /v1/me`: the two requests of the page that call no method.

use crate::body::{self, Bounds};
use crate::call;
use crate::params::read_body;
use crate::problem::Problem;
use crate::router::App;
use agentd_protocol::{Fault, SignInParams};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// Exchanges the code of a link for a token. It is the only request of the API without one.
pub(crate) async fn sign_in(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let received = body::read(&app, request, Bounds::of_sign_in).await?;
    let given = read_body(&headers, &received.bytes)?;
    let params: SignInParams = serde_json::from_value(Value::Object(given))
        .map_err(|error| Fault::invalid("bad_params", format!("params: {error}")))?;
    let answer = app.api.sign_in(&params).await?;
    let mut response = Json(answer).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Says who the caller is and what it may do, as the welcome does on a socket.
pub(crate) async fn me(State(app): State<Arc<App>>, request: Request) -> Result<Json<Value>, Problem> {
    let (parts, _) = request.into_parts();
    let who = call::caller(&parts)?;
    let scopes: Vec<_> = app
        .api
        .scopes(&who)
        .into_iter()
        .map(|scope| scope.as_str())
        .collect();
    Ok(Json(json!({
        "principal": who,
        "scopes": scopes,
        "labels": app.api.labels_of(&who),
        "node": app.api.facts().node,
        "version": app.api.facts().version,
    })))
}
