//! The first frames: the client's hello, in time and in a supported version, then the welcome.

use crate::reader::{FrameReader, ReadEnd};
use agentd_api::Api;
use agentd_protocol::{Fault, Principal};
use agentd_wire::{ClientFrame, Hello, Limits, Welcome, negotiate};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::timeout;

/// The time limit for the client's hello.
pub(crate) const HELLO: Duration = Duration::from_secs(5);
/// The maximum number of unanswered requests on one connection; more are read only when one of them is answered.
pub(crate) const IN_FLIGHT: usize = 64;

/// Waits for the hello; `None` when the peer has closed.
pub(crate) async fn greet(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    api: &Api,
    who: &Principal,
) -> Result<Option<Welcome>, Fault> {
    let hello = match timeout(HELLO, reader.next()).await {
        Ok(Ok((ClientFrame::Hello(hello), _))) => hello,
        Ok(Ok((ClientFrame::Request(_), _))) => {
            return Err(Fault::invalid("hello_missing", "the first frame must be a hello"));
        }
        Ok(Err(ReadEnd::Bad(error))) => return Err(error.into()),
        Ok(Err(ReadEnd::Closed)) => return Ok(None),
        Ok(Err(ReadEnd::Slow | ReadEnd::Crowded)) | Err(_) => {
            let message = format!("no hello within {} ms", HELLO.as_millis());
            return Err(Fault::timeout("hello_late", message));
        }
    };
    let protocol = negotiate(hello.protocol)?;
    let Hello { client, .. } = hello;
    let client: String = client.chars().filter(|c| !c.is_control()).take(80).collect();
    tracing::debug!(%client, %who, protocol, "a client said hello");
    let loaded = api.loaded();
    let limits = &loaded.settings.limits;
    Ok(Some(Welcome {
        protocol,
        node: api.facts().node.clone(),
        principal: who.clone(),
        scopes: api
            .scopes(who)
            .into_iter()
            .map(|scope| scope.as_str().to_owned())
            .collect(),
        limits: Limits {
            max_frame_bytes: limits.max_frame_bytes,
            max_input_bytes: limits.max_input_bytes,
            max_in_flight: u32::try_from(IN_FLIGHT).unwrap_or(u32::MAX),
        },
    }))
}
