//! Carries out a request with a single answer.

use crate::conditional;
use crate::link::Link;
use crate::pages::{self, Cut};
use crate::params::{Given, collect, key};
use crate::problem::Problem;
use crate::replay::request_of;
use crate::router::App;
use crate::routes::Route;
use crate::wait::{self, Wait};
use agentd_protocol::{Fault, Principal};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest as _, FromRequestParts as _, RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

pub(crate) async fn handle(
    app: Arc<App>,
    route: &'static Route,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let who = caller(&parts)?;
    let path = path_params(&mut parts).await?;
    let limit = Duration::from_millis(app.api.loaded().settings.http.body_ms);
    let body = self::body(Request::from_parts(parts.clone(), body), limit).await?;
    let given = Given {
        path: &path,
        query: parts.uri.query().unwrap_or_default(),
        headers: &parts.headers,
        body,
    };
    let mut params = collect(route, given)?;
    if route.method == "session.update" {
        conditional::expect(&app, &who, &parts.headers, &mut params).await?;
    }
    let most = app.api.loaded().settings.limits.list_rows;
    let cut = Cut::of(&params, most);
    let waiting = Wait::asked(route, &parts.headers, &params)?;
    let params = Value::Object(params);
    let answer = match key(route, &parts.headers)?.filter(|_| !route.keyed()) {
        Some(key) => once(&app, who.clone(), route, params, key).await?,
        None => app.api.call(&who, route.method, params).await?,
    };
    if let Some(waiting) = waiting {
        return wait::answer(&app, &who, answer, waiting).await;
    }
    if route.method == "session.get" {
        let response = Json(&answer).into_response();
        return Ok(conditional::tagged(&parts.headers, &answer, response)?);
    }
    Ok(pages::response(route, answer, cut))
}

/// Calls a method without a key of its own once for the key of the request.
async fn once(
    app: &Arc<App>,
    who: Principal,
    route: &'static Route,
    params: Value,
    key: &str,
) -> Result<Value, Fault> {
    app.api.may_call(&who, route.method)?;
    let request = request_of(route.method, params.clone());
    let (api, by) = (Arc::clone(&app.api), who.clone());
    let work = async move { api.call(&by, route.method, params).await };
    app.replays.once(&who, key, request, work).await
}

/// Reads a request's body. As long as it has not ended, another client can have the connection's place.
pub(crate) async fn body(
    request: Request,
    limit: Duration,
) -> Result<Result<Bytes, BytesRejection>, Problem> {
    let (parts, body) = request.into_parts();
    let _reading = Link::of(&parts)?.reading();
    timeout(limit, Bytes::from_request(Request::from_parts(parts, body), &()))
        .await
        .map_err(|_| {
            let fault = Fault::timeout("body_late", "the body did not end in time");
            Problem::with(StatusCode::REQUEST_TIMEOUT, fault)
        })
}

/// The principal that the guard found.
pub(crate) fn caller(parts: &Parts) -> Result<Principal, Problem> {
    let who = parts.extensions.get::<Principal>().cloned();
    who.ok_or_else(|| Fault::internal("no_principal", "the request was not authenticated").into())
}

/// The parameters of the path.
pub(crate) async fn path_params(parts: &mut Parts) -> Result<RawPathParams, Problem> {
    let path = RawPathParams::from_request_parts(parts, &()).await;
    path.map_err(|error| Fault::invalid("bad_path", format!("the path is wrong: {error}")).into())
}
