//! Admits a request: its host and origin, its token, its token's share of requests.

use crate::link::{Client, Link, busy};
use crate::problem::Problem;
use crate::router::App;
use agentd_api::Api;
use agentd_protocol::{Fault, FaultClass, Principal};
use agentd_settings::HttpConfig;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

/// What requests are admitted.
pub(crate) struct Guard {
    hosts: Vec<String>,
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
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let rate = NonZeroU32::new(config.requests_per_second).unwrap_or(NonZeroU32::MIN);
        Self {
            hosts: config.hosts.clone(),
            origins: config.origins.clone(),
            rate: RateLimiter::keyed(Quota::per_second(rate)),
        }
    }

    async fn admit(&self, api: &Api, uri: &Uri, headers: &HeaderMap) -> Result<Principal, Problem> {
        self.door(uri, headers)?;
        let who = api.authenticate(token(headers)?).await.map_err(unauthorized)?;
        if self.rate.check_key(&who).is_err() {
            let message = format!("{who} sends more requests than http.requests_per_second allows");
            return Err(Fault::busy("too_many_requests", message).into());
        }
        Ok(who)
    }

    /// Checks what every request must pass, with a token or without.
    fn door(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let authority = uri.authority().map(|authority| authority.as_str());
        let host = authority.or(text(headers, &header::HOST)?);
        self.host(host)?;
        Ok(self.origin(text(headers, &header::ORIGIN)?, host.unwrap_or_default())?)
    }

    /// Refuses names that are not ours: a page whose name was bound to this machine's address after it was loaded (DNS
    /// rebinding). An address cannot be bound again.
    fn host(&self, host: Option<&str>) -> Result<(), Problem> {
        let host = host.unwrap_or_default();
        let name = host
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name);
        let address = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        let known = |own: &String| own.eq_ignore_ascii_case(name);
        if address.is_ok() || name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(known) {
            return Ok(());
        }
        let shown: String = name.chars().take(100).collect();
        let fault = Fault::denied("unknown_host", format!("{shown:?} is not a name of this server"))
            .hint("add the name to http.hosts, or use the address");
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
    match app.guard.admit(&app.api, request.uri(), request.headers()).await {
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
    match app.guard.door(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
