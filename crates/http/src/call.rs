//! Carries out a request with a single answer.

use crate::pages;
use crate::params::{Given, collect};
use crate::problem::Problem;
use crate::router::App;
use crate::routes::Route;
use crate::wait::{self, Wait};
use agentd_protocol::{Fault, Principal};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest as _, FromRequestParts as _, RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time limit for a request's body.
const BODY: Duration = Duration::from_secs(30);

pub(crate) async fn handle(
    app: Arc<App>,
    route: &'static Route,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let who = caller(&parts)?;
    let path = path_params(&mut parts).await?;
    let body = self::body(Request::from_parts(parts.clone(), body)).await?;
    let given = Given {
        path: &path,
        query: parts.uri.query().unwrap_or_default(),
        headers: &parts.headers,
        body,
    };
    let params = collect(route, given)?;
    let limit = params.get("limit").and_then(Value::as_u64);
    let waiting = Wait::asked(route, &parts.headers, &params)?;
    let answer = app.api.call(&who, route.method, Value::Object(params)).await?;
    if let Some(waiting) = waiting {
        return wait::answer(&app, &who, answer, waiting).await;
    }
    let most = app.api.loaded().settings.limits.list_rows;
    Ok(pages::response(route, answer, limit.unwrap_or(0), most))
}

/// Reads a request's body.
pub(crate) async fn body(request: Request) -> Result<Result<Bytes, BytesRejection>, Problem> {
    timeout(BODY, Bytes::from_request(request, &()))
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
