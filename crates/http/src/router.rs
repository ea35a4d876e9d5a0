//! The router: the table of routes, the streams, health, and the layers around them.

use crate::guard::{Guard, door, guard};
use crate::openapi::openapi;
use crate::problem::Problem;
use crate::replay::Replays;
use crate::routes::{ROUTES, Verb};
use crate::streams::Streams;
use crate::ui::{self, Page};
use crate::wire::Wire;
use crate::{call, events, peer, several, sign_in, wire};
use agentd_api::Api;
use agentd_protocol::Fault;
use agentd_settings::HttpConfig;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use std::any::Any;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use tokio::sync::{OnceCell, watch};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;

/// What all handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) api: Arc<Api>,
    pub(crate) guard: Guard,
    pub(crate) streams: Arc<Streams>,
    pub(crate) replays: Replays,
    pub(crate) wire: Arc<dyn Wire>,
    /// From the first request for it on: many daemons never get one.
    page: OnceCell<Page>,
    pub(crate) shutdown: watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        api: Arc<Api>,
        wire: Arc<dyn Wire>,
        listening: IpAddr,
        shutdown: watch::Receiver<bool>,
    ) -> Self {
        let loaded = api.loaded();
        let config = &loaded.settings.http;
        Self {
            guard: Guard::new(&loaded.settings, listening),
            replays: Replays::new(config),
            streams: Streams::new(config.streams_per_token),
            wire,
            page: OnceCell::new(),
            shutdown,
            api,
        }
    }

    /// The page. The first request for it waits until its files are compressed.
    pub(crate) async fn page(&self) -> &Page {
        let load = || async {
            #[expect(clippy::disallowed_methods, reason = "no session's files")]
            let loaded = tokio::task::spawn_blocking(Page::load).await;
            loaded.unwrap_or_else(|_| Page::load())
        };
        self.page.get_or_init(load).await
    }
}

/// All routes.
pub(crate) fn router(app: Arc<App>, config: &HttpConfig) -> Router {
    let mut api = Router::new();
    for route in &ROUTES {
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Patch => MethodFilter::PATCH,
            Verb::Delete => MethodFilter::DELETE,
        };
        let handler = move |State(app): State<Arc<App>>, request: Request| call::handle(app, route, request);
        api = api.route(route.path, on(filter, handler));
    }
    let api = api
        .route("/v1/sessions/{session}/events", get(events::session))
        .route("/v1/events", get(events::fleet))
        .route("/v1/stream", get(several::several))
        .route("/v1/me", get(sign_in::me))
        .route("/v1/wire", get(wire::upgrade))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_verb)
        .layer(from_fn_with_state(Arc::clone(&app), guard));
    let open = ui::routes()
        .route("/v1/sign-in", post(sign_in::sign_in))
        .layer(from_fn_with_state(Arc::clone(&app), door));
    let peers = Router::new()
        .route("/v1/node/call", post(peer::peer_call))
        .route("/v1/node/follow", post(peer::peer_follow));
    Router::new()
        .merge(open)
        .merge(peers)
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/v1/openapi.json", get(described))
        .merge(api)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(cors(&config.origins))
        .with_state(app)
}

/// Lets the pages of these origins use the API: none, if there are none.
fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok());
    CorsLayer::new()
        .allow_origin(origins.collect::<Vec<_>>())
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("prefer"),
        ])
        .expose_headers([header::LOCATION, header::ETAG])
}

async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    app.api.ready().await?;
    Ok("ready\n")
}

/// The description holds nothing secret, so it needs no token.
async fn described() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone())
}

async fn unknown_path(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let fault = Fault::not_found("unknown_path", format!("there is nothing at {path}"));
    fault.hint("docs/http.md lists the paths").into()
}

async fn unknown_verb(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let fault = Fault::invalid("unknown_verb", format!("{path} does not support {method}"));
    Problem::with(StatusCode::METHOD_NOT_ALLOWED, fault)
}

fn panicked(_what: Box<dyn Any + Send>) -> Response {
    let fault = Fault::internal("request_panicked", "the request failed inside agentd")
        .hint("retry with the same Idempotency-Key; the daemon's log has the details");
    Problem::from(fault).into_response()
}
