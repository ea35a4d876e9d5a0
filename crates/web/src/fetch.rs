//! One fetch: judge, look up, judge again, connect, read.

use crate::content::{self, Content, Kind};
use crate::error::WebError;
use crate::guard::Guard;
use crate::hops::{Hop, Hops, NoOpinion};
use crate::page::{Elsewhere, Fetch, Page};
use crate::pins::Pins;
use crate::resolver::{Resolver, SystemResolver};
use crate::target::Target;
use agentd_settings::WebConfig;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Host;

/// The most redirects to follow in a row.
const MAX_REDIRECTS: u32 = 5;
/// The most addresses of one name to check; no name has that many.
const MAX_ADDRESSES: usize = 64;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";

/// Fetches pages one after another; keeps no connection between them.
#[derive(Debug)]
pub struct Fetcher {
    client: Client,
    guard: Guard,
    pins: Pins,
    resolver: Arc<dyn Resolver>,
    hops: Arc<dyn Hops>,
    max_bytes: usize,
    time: Duration,
}

impl Fetcher {
    /// A fetcher that uses the system's name resolution.
    ///
    /// # Errors
    /// The configuration is invalid, or the machine's TLS set-up is unusable.
    pub fn new(config: &WebConfig) -> Result<Self, WebError> {
        Self::with_resolver(config, Arc::new(SystemResolver::default()))
    }

    /// A fetcher with its own name resolution.
    ///
    /// # Errors
    /// The configuration is invalid, or the machine's TLS set-up is unusable.
    pub fn with_resolver(config: &WebConfig, resolver: Arc<dyn Resolver>) -> Result<Self, WebError> {
        let pins = Pins::default();
        Ok(Self {
            client: client(&pins)?,
            guard: Guard::new(config)?,
            pins,
            resolver,
            hops: Arc::new(NoOpinion),
            max_bytes: usize::try_from(config.max_bytes).unwrap_or(usize::MAX),
            time: Duration::from_millis(config.timeout_ms),
        })
    }

    /// The same fetcher with a judge for the addresses of redirects.
    #[must_use]
    pub fn judged_by(self, hops: Arc<dyn Hops>) -> Self {
        Self { hops, ..self }
    }

    /// Fetches a page as text. Borrows the fetcher exclusively, because pinned addresses belong to one fetch.
    ///
    /// # Errors
    /// The address may not be reached, or the response cannot be read.
    #[expect(clippy::disallowed_methods, reason = "it works in memory only")]
    pub async fn fetch(&mut self, target: &Target, raw: bool) -> Result<Fetch, WebError> {
        let deadline = Instant::now() + self.time;
        let fetched = timeout_at(deadline, self.follow(target)).await;
        match fetched.map_err(|_| WebError::Slow(self.time))?? {
            Fetched::Elsewhere(elsewhere) => Ok(Fetch::Elsewhere(elsewhere)),
            Fetched::Body(body) => {
                let read = tokio::task::spawn_blocking(move || body.page(raw)).await;
                let page = read.map_err(|error| WebError::Connection(error.to_string()))??;
                Ok(Fetch::Page(page))
            }
        }
    }

    async fn follow(&self, target: &Target) -> Result<Fetched, WebError> {
        let mut at = target.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(&at).await?;
            let Some(location) = redirect(&response) else {
                return self.read(&at, response).await.map(Fetched::Body);
            };
            let next = at.join(&location)?;
            self.guard.check(&next)?;
            match (self.hops.judge(next.as_str()).await, at.same_server(&next)) {
                (Hop::Allowed, _) | (Hop::Unjudged, true) => at = next,
                (Hop::Unjudged, false) | (Hop::Asked, _) => {
                    return Ok(Fetched::Elsewhere(Elsewhere {
                        from: at.to_string(),
                        to: next.to_string(),
                        status: response.status().as_u16(),
                    }));
                }
                (Hop::Denied(why), _) => return Err(WebError::Forbidden(next.to_string(), why)),
            }
        }
        Err(WebError::Redirects(MAX_REDIRECTS))
    }

    async fn get(&self, target: &Target) -> Result<Response, WebError> {
        self.guard.check(target)?;
        if let Some(Host::Domain(host)) = target.url().host() {
            let addresses = self.judged(target, host).await?;
            self.pins.set(host, addresses);
        }
        let request = self
            .client
            .get(target.url().clone())
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_LANGUAGE, "en, *;q=0.5")
            // No compression, so that the response cannot unpack into more than the bytes read.
            .header(ACCEPT_ENCODING, "identity");
        request.send().await.map_err(|error| WebError::of(&error))
    }

    /// All addresses of a host. One bad address refuses the host, because the client chooses among them.
    async fn judged(&self, target: &Target, host: &str) -> Result<Vec<std::net::IpAddr>, WebError> {
        let unknown = |why: String| WebError::Unknown {
            host: host.to_owned(),
            why,
        };
        let found = self.resolver.look_up(host).await;
        let mut addresses = found.map_err(|error| unknown(error.to_string()))?;
        addresses.truncate(MAX_ADDRESSES);
        if addresses.is_empty() {
            return Err(unknown("it has no address".to_owned()));
        }
        for address in &addresses {
            self.guard.check_address(target, *address)?;
        }
        Ok(addresses)
    }

    async fn read(&self, at: &Target, mut response: Response) -> Result<Body, WebError> {
        let header = |name| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
        };
        let encoding = header(CONTENT_ENCODING).unwrap_or_default();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            return Err(WebError::Encoded(encoding.chars().take(40).collect()));
        }
        let content_type = header(CONTENT_TYPE).unwrap_or_default();
        // Skip a body that is certainly not text.
        let kind = content::kind(&content_type)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        let mut cut = false;
        while !cut && let Some(chunk) = response.chunk().await.map_err(|error| WebError::of(&error))? {
            let room = self.max_bytes.saturating_sub(bytes.len());
            cut = chunk.len() > room;
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        }
        Ok(Body {
            at: at.clone(),
            status,
            content_type,
            kind,
            bytes,
            cut,
        })
    }
}

enum Fetched {
    Body(Body),
    Elsewhere(Elsewhere),
}

struct Body {
    at: Target,
    status: u16,
    content_type: String,
    kind: Kind,
    bytes: Vec<u8>,
    cut: bool,
}

impl Body {
    /// Converts the body to text. Takes a while for a large page.
    fn page(self, raw: bool) -> Result<Page, WebError> {
        let kind = if raw { Kind::Plain } else { self.kind };
        let Content { title, text, cut } =
            content::read(&self.bytes, &self.content_type, kind, self.at.url())?;
        Ok(Page {
            url: self.at.to_string(),
            status: self.status,
            content_type: self.content_type,
            title,
            text,
            bytes: u64::try_from(self.bytes.len()).unwrap_or(u64::MAX),
            cut: self.cut || cut,
        })
    }
}

/// The target of a redirect.
fn redirect(response: &Response) -> Option<String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

fn client(pins: &Pins) -> Result<Client, WebError> {
    // An error only means that another provider was installed first, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .dns_resolver(pins.clone())
            // A proxy would resolve names itself, bypassing the guard.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .gzip(false)
            // Each connection must go to a freshly judged address.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
    };
    builder()
        .build()
        // A machine without root certificates can still fetch pages without TLS.
        .or_else(|_| builder().tls_certs_only(std::iter::empty()).build())
        .map_err(|error| WebError::Client(error.to_string()))
}
