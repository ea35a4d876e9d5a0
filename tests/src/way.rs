//! The ways to a daemon, so that one test can follow sessions over each.

use crate::daemon::PATIENCE;
use crate::follow::Follower;
use crate::sse::{Access, Sse};
use crate::within;
use agentd_client::{Client, ClientError, ConnectOptions, Push, Subscription};
use agentd_protocol::{AttachParams, CreateTokenParams, FaultClass, Seq};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A way to a daemon.
#[derive(Debug, Clone)]
pub enum Way {
    /// Its socket.
    Socket(PathBuf),
    /// Its HTTP server.
    Http(Access),
}

/// A subscription over one of the ways.
#[derive(Debug)]
pub enum Source {
    /// Over the control protocol.
    Wire(Subscription),
    /// Over HTTP.
    Sse(Sse),
}

impl Access {
    /// The address of the daemon behind this client, and a new token.
    ///
    /// # Errors
    /// The daemon is gone, or refused.
    pub async fn of(client: &Client) -> Result<Self, ClientError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let params = CreateTokenParams {
            name: format!("viewer-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            scopes: ["read", "steer"].map(str::to_owned).to_vec(),
            ..CreateTokenParams::default()
        };
        let token = client.create_token(&params).await?.token.expose().to_owned();
        let url = client.status().await?.http;
        let address = url.trim_start_matches("http://").to_owned();
        Ok(Self { address, token })
    }
}

impl Way {
    /// Follows a session on a connection of its own.
    pub async fn follow(&self, session: &str) -> Follower {
        Follower::from(
            self.source(session, None)
                .await
                .expect("the session can be followed"),
        )
    }

    /// Follows a session after this event.
    ///
    /// # Errors
    /// The daemon is gone, or refused.
    pub async fn source(&self, session: &str, after: Option<Seq>) -> Result<Source, String> {
        match self {
            Self::Socket(socket) => {
                let options = ConnectOptions {
                    deadline: PATIENCE,
                    ..ConnectOptions::default()
                };
                let client = Client::connect(socket, &options).await;
                let client = client.map_err(|error| error.to_string())?;
                let attached = attach(&client, session, after).await;
                attached.map(Source::Wire).map_err(|error| error.to_string())
            }
            Self::Http(access) => {
                let opened = within("the stream opens", Sse::open(access, session, after)).await;
                opened.map(Source::Sse).map_err(|error| error.to_string())
            }
        }
    }
}

impl Source {
    /// The next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<Push> {
        match self {
            Self::Wire(subscription) => subscription.next().await,
            Self::Sse(sse) => sse.next().await,
        }
    }

    /// The position of the last event that the transport itself told, from which a client resumes.
    pub(crate) const fn told(&self) -> Option<Seq> {
        match self {
            Self::Wire(_) => None,
            Self::Sse(sse) => sse.last,
        }
    }
}

/// Attaches, patiently: a loaded machine may take longer than a client waits for this; to ask again is safe.
pub(crate) async fn attach(
    client: &Client,
    session: &str,
    after_seq: Option<Seq>,
) -> Result<Subscription, ClientError> {
    let params = AttachParams {
        session: session.to_owned(),
        after_seq,
        deltas: true,
        ..AttachParams::default()
    };
    let asking = async {
        loop {
            match client.attach(&params).await {
                Err(ClientError::Timeout { .. }) => {}
                Err(ClientError::Refused(fault)) if fault.class == FaultClass::Timeout => {}
                answered => return answered,
            }
        }
    };
    within("attach answers", asking).await
}
