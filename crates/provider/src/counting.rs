//! Exact token counting: some servers count a request's tokens without answering it. One attempt, with one deadline;
//! a request that cannot be counted keeps its estimate.

mod endpoints;

use crate::body::RequestBody;
use crate::call::headers;
use crate::dialect::codec;
use crate::fields::json_bytes;
use crate::spec::{Credential, ModelSpec};
use endpoints::{CountEndpoint, endpoints};
use futures_util::StreamExt as _;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// The longest answer that is read: some servers return all tokens along with their number.
const LONGEST: usize = 16 << 20;

/// The outcome of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The request has this many tokens.
    Tokens(u64),
    /// This server does not count; asking again is useless.
    Never,
    /// This count failed; another may succeed.
    Failed,
}

/// Whether the model's server may support counting.
#[must_use]
pub fn may_count(spec: &ModelSpec) -> bool {
    !endpoints(spec).is_empty()
}

/// Asks a server to count the tokens of a request. `body` is the body of the call itself.
pub async fn count_tokens(
    client: &Client,
    spec: &ModelSpec,
    credential: Option<&Credential>,
    body: &RequestBody,
    within: Duration,
) -> Counted {
    let asking = ask(client, spec, credential, body);
    timeout(within, asking).await.unwrap_or(Counted::Failed)
}

async fn ask(
    client: &Client,
    spec: &ModelSpec,
    credential: Option<&Credential>,
    body: &RequestBody,
) -> Counted {
    let Ok(Value::Object(body)) = serde_json::from_slice(&body.to_bytes()) else {
        return Counted::Never;
    };
    for endpoint in endpoints(spec) {
        let asked = RequestBody::of(vec![json_bytes(&endpoint.body(spec, &body)).into()]);
        match at(client, spec, credential, endpoint, asked).await {
            Counted::Never => {}
            counted => return counted,
        }
    }
    Counted::Never
}

async fn at(
    client: &Client,
    spec: &ModelSpec,
    credential: Option<&Credential>,
    endpoint: &CountEndpoint,
    asked: RequestBody,
) -> Counted {
    let Some(codec) = codec(spec.dialect) else {
        return Counted::Never;
    };
    let own = codec.headers(spec, credential);
    let Ok(headers) = headers(spec, &own, &asked) else {
        return Counted::Failed;
    };
    let request = client
        .post(endpoint.url(spec))
        .headers(headers)
        .body(asked.to_bytes())
        .send();
    let Ok(response) = request.await else {
        return Counted::Failed;
    };
    match response.status() {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            return Counted::Never;
        }
        status if !status.is_success() => return Counted::Failed,
        _ => {}
    }
    match read(response)
        .await
        .as_ref()
        .and_then(|answer| endpoint.tokens(answer))
    {
        Some(tokens) => Counted::Tokens(tokens),
        // Something else answers at that address.
        None => Counted::Failed,
    }
}

async fn read(response: Response) -> Option<Value> {
    let mut bytes = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.ok()?;
        if body.len() + chunk.len() > LONGEST {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).ok()
}

#[cfg(test)]
mod tests;
