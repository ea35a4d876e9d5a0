//! Carries out a request with a single answer.

use crate::body::{self, Bounds, Received};
use crate::conditional;
use crate::pages::{self, Cut};
use crate::params::{Given, collect, key};
use crate::problem::Problem;
use crate::replay::request_of;
use crate::router::App;
use crate::routes::Route;
use crate::wait::{self, Wait};
use agentd_admission::Hold;
use agentd_protocol::{Fault, Principal};
use axum::Json;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use std::sync::Arc;

pub(crate) async fn handle(
    app: Arc<App>,
    route: &'static Route,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let who = caller(&parts)?;
    let path = path_params(&mut parts).await?;
    // A caller without the right is refused before its body takes memory.
    app.api.may_call(&who, route.method)?;
    for (name, value) in &path {
        app.api.may_name(&who, route.method, (name, value)).await?;
    }
    let Received { bytes, memory } = if route.has_body() {
        body::read(&app, Request::from_parts(parts.clone(), body), Bounds::of_calls).await?
    } else {
        Received::default()
    };
    let given = Given {
        path: &path,
        query: parts.uri.query().unwrap_or_default(),
        headers: &parts.headers,
        body: &bytes,
    };
    let mut params = collect(route, given)?;
    drop(bytes);
    if route.method == "session.update" {
        conditional::expect(&app, &who, &parts.headers, &mut params).await?;
    }
    let most = app.api.loaded().settings.limits.list_rows;
    let cut = Cut::of(&params, most);
    let waiting = Wait::asked(route, &parts.headers, &params)?;
    if waiting.is_some() {
        // Refused before the session runs, not after.
        app.api.may_call(&who, "session.attach")?;
    }
    let params = Value::Object(params);
    let answer = match key(route, &parts.headers)?.filter(|_| !route.keyed()) {
        Some(key) => once(&app, who.clone(), route, (params, memory), key).await?,
        None => {
            let answer = app.api.call(&who, route.method, params).await?;
            drop(memory);
            answer
        }
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
    (params, memory): (Value, Option<Hold>),
    key: &str,
) -> Result<Value, Fault> {
    let request = request_of(route.method, params.clone());
    let (api, by) = (Arc::clone(&app.api), who.clone());
    let work = async move {
        let answer = api.call(&by, route.method, params).await;
        drop(memory);
        answer
    };
    app.replays.once(&who, key, request, work).await
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
