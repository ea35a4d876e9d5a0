//! Admits a request: its host and origin, its token, its token's share of requests.

use crate::hosts::Hosts;
use crate::link::{Client, Link, busy};
use crate::problem::Problem;
use crate::router::App;
use agentd_api::Api;
use agentd_protocol::{Fault, FaultClass, Principal};
use agentd_settings::Settings;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use url::Url;

/// The parts of a request that the guard judges.
#[derive(Debug, Clone, Copy)]
struct Parts<'a> {
    uri: &'a Uri,
    headers: &'a HeaderMap,
    /// The address of this machine that the client connected to.
    local: Option<IpAddr>,
}

impl<'a> Parts<'a> {
    fn of(request: &'a Request) -> Self {
        Self {
            uri: request.uri(),
            headers: request.headers(),
            local: request.extensions().get::<Link>().and_then(|link| link.local),
        }
    }
}

/// What requests are admitted.
pub(crate) struct Guard {
    hosts: Hosts,
    origins: Vec<String>,
    rate: DefaultKeyedRateLimiter<Principal>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn new(settings: &Settings, listening: IpAddr) -> Self {
        let config = &settings.http;
        // Clients may use the name that other nodes use.
        let address = Url::parse(&settings.node.address).ok();
        let address = address.as_ref().and_then(Url::host_str).map(str::to_owned);
        let rate = NonZeroU32::new(config.requests_per_second).unwrap_or(NonZeroU32::MIN);
        Self {
            hosts: Hosts {
                configured: config.hosts.iter().cloned().chain(address).collect(),
                listening,
            },
            origins: config.origins.clone(),
            rate: RateLimiter::keyed(Quota::per_second(rate)),
        }
    }

    async fn admit(&self, api: &Api, request: Parts<'_>) -> Result<Principal, Problem> {
        self.door(request)?;
        let headers = request.headers;
        let who = api.authenticate(token(headers)?).await.map_err(unauthorized)?;
        if self.rate.check_key(&who).is_err() {
            let message = format!("{who} sends more requests than http.requests_per_second allows");
            return Err(Fault::busy("too_many_requests", message).into());
        }
        Ok(who)
    }

    /// Checks what every request must pass, with a token or without.
    fn door(&self, Parts { uri, headers, local }: Parts<'_>) -> Result<(), Problem> {
        let host = text(headers, &header::HOST)?.unwrap_or_default();
        if let Some(authority) = uri.authority()
            && authority.as_str() != host
        {
            let message = "the request's target and its header Host name different servers";
            return Err(Fault::invalid("two_hosts", message).hint("send one").into());
        }
        self.host(host, local)?;
        Ok(self.origin(text(headers, &header::ORIGIN)?, host)?)
    }

    /// Refuses names that are not ours: a page whose name was bound to this machine's address after it was loaded (DNS
    /// rebinding).
    fn host(&self, host: &str, local: Option<IpAddr>) -> Result<(), Problem> {
        if self.hosts.know(host, local) {
            return Ok(());
        }
        let shown: String = host.chars().take(100).collect();
        let message = format!("{shown:?} is not a name or address of this server");
        let fault = Fault::denied("unknown_host", message)
            .hint("use localhost or the address at which agentd listens, or add the name to http.hosts");
        Err(Problem::with(StatusCode::MISDIRECTED_REQUEST, fault))
    }

    /// Refuses pages of other sites. Our own page comes from the host that it asks.
    fn origin(&self, origin: Option<&str>, host: &str) -> Result<(), Fault> {
        let Some(origin) = origin else { return Ok(()) };
        let own = |prefix| {
            origin
                .strip_prefix(prefix)
                .is_some_and(|name| name.eq_ignore_ascii_case(host))
        };
        if own("http://") || own("https://") || self.origins.iter().any(|other| other == origin) {
            return Ok(());
        }
        let shown: String = origin.chars().take(100).collect();
        let message = format!("pages of {shown:?} may not use this server");
        Err(Fault::denied("foreign_origin", message).hint("add the origin to http.origins"))
    }
}

/// The value of a header. A second one is refused: a proxy may have judged the other one.
fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let message = format!("the request has several headers {name}");
        return Err(Fault::invalid("repeated_header", message).hint("send one"));
    }
    Ok(first.and_then(|value| value.to_str().ok()))
}

fn token(headers: &HeaderMap) -> Result<&str, Problem> {
    let missing = || {
        let fault = Fault::denied("token_missing", "the request has no token");
        Problem::unauthorized(
            fault.hint("send the header Authorization: Bearer TOKEN; agentctl token create makes one"),
        )
    };
    let (scheme, token) = text(headers, &header::AUTHORIZATION)?
        .and_then(|value| value.split_once(' '))
        .ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(missing());
    }
    Ok(token)
}

/// The problem of a token that opens nothing, or of a store that could not be asked.
fn unauthorized(fault: Fault) -> Problem {
    if fault.class == FaultClass::Denied {
        Problem::unauthorized(fault)
    } else {
        fault.into()
    }
}

/// The middleware: handlers find the principal among the request's extensions.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match app.guard.admit(&app.api, Parts::of(&request)).await {
        Ok(who) => {
            let work = Link::admit(&request, Client::Known(who.clone()));
            request.extensions_mut().insert(who);
            busy(next.run(request).await, work)
        }
        Err(problem) => problem.into_response(),
    }
}

/// The middleware of what needs no token.
pub(crate) async fn door(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.guard.door(Parts::of(&request)) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
