//! One connection, shared by a reader task, a writer task and the callers.

use crate::connect::{ConnectOptions, Greeted, greet};
use crate::error::ClientError;
use crate::pending::{Routed, Shared};
use crate::subscription::{Inbox, Subscription};
use crate::transport::Incoming;
use crate::web::{self, Remote};
use agentd_protocol::{Fault, Subscribed};
use agentd_wire::{ClientFrame, FrameLimits, Request, ServerFrame, Welcome, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Capacity of the queue of frames to be written.
const OUTGOING_FRAMES: usize = 64;

/// A connection to a daemon. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Vec<u8>>,
    welcome: Welcome,
    reader: tokio::task::AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Client {
    /// Connects to the daemon on a Unix socket.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if no daemon answers in time, [`ClientError::Refused`] with the daemon's fault.
    pub async fn connect(path: &Path, options: &ConnectOptions) -> Result<Self, ClientError> {
        // Boxed: its buffers would make the future of every caller large.
        Ok(Self::over(Box::pin(greet(path, options)).await?))
    }

    /// Connects to a daemon on another machine.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_remote(remote: &Remote, options: &ConnectOptions) -> Result<Self, ClientError> {
        Ok(Self::over(Box::pin(web::greet(remote, options)).await?))
    }

    fn over(greeted: Greeted) -> Self {
        let (outgoing, frames) = mpsc::channel(OUTGOING_FRAMES);
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(read_all(
            greeted.incoming,
            Arc::clone(&shared),
            outgoing.downgrade(),
        ));
        tokio::spawn(greeted.outgoing.run(frames));
        let reader = task.abort_handle();
        Self(Arc::new(Inner {
            shared,
            outgoing,
            welcome: greeted.welcome,
            reader,
        }))
    }

    /// The daemon's greeting.
    #[must_use]
    pub fn welcome(&self) -> &Welcome {
        &self.0.welcome
    }

    /// Why the connection was lost; `None` while it is open.
    #[must_use]
    pub fn lost(&self) -> Option<Fault> {
        self.0.shared.lost()
    }

    /// Calls a method. The daemon may still execute a call that was dropped or timed out.
    ///
    /// # Errors
    /// [`ClientError`]: the daemon's fault, a lost connection, a timeout, or an unreadable answer.
    pub async fn call<P, A>(&self, method: &str, params: &P, within: Duration) -> Result<A, ClientError>
    where
        P: Serialize + ?Sized + Sync,
        A: DeserializeOwned,
    {
        read_answer(method, self.request(method, params, within, None).await?)
    }

    /// Calls a method that starts a subscription.
    pub(crate) async fn subscribe<P: Serialize + Sync>(
        &self,
        method: &str,
        params: &P,
        within: Duration,
    ) -> Result<Subscription, ClientError> {
        let (inbox, outbox) = Inbox::new();
        let ok = self.request(method, params, within, Some(inbox)).await?;
        let Subscribed { sub, head } = read_answer(method, ok)?;
        Ok(Subscription::new(self.clone(), outbox, sub, head))
    }

    async fn request<P: Serialize + ?Sized + Sync>(
        &self,
        method: &str,
        params: &P,
        within: Duration,
        inbox: Option<Inbox>,
    ) -> Result<Value, ClientError> {
        let params = serde_json::to_value(params).map_err(|error| ClientError::Answer {
            method: method.to_owned(),
            why: format!("could not encode the parameters: {error}"),
        })?;
        let (id, answer) = self.0.shared.register(inbox)?;
        let waits = Waits {
            client: self,
            id,
            answered: false,
        };
        let frame = ClientFrame::Request(Request {
            id,
            method: method.to_owned(),
            params,
        });
        let bytes = encode(
            &frame,
            usize::try_from(self.0.welcome.limits.max_frame_bytes).unwrap_or(usize::MAX),
        )?;
        let exchange = async {
            let gone = || self.0.shared.lost_error();
            self.0.outgoing.send(bytes).await.map_err(|_| gone())?;
            answer.await.unwrap_or_else(|_| Err(gone()))
        };
        let answer = timeout(within, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::Timeout {
                method: method.to_owned(),
                within,
            })
        });
        waits.over(answer)
    }

    pub(crate) fn made_room(&self) {
        self.0.shared.room.notify_one();
    }

    /// A subscription was dropped: forgets it here and tells the daemon, without waiting.
    pub(crate) fn leave(&self, sub: u64) {
        if !self.0.shared.unsubscribe(sub) {
            return;
        }
        send_detach(&self.0.outgoing, sub);
    }
}

/// Tells the daemon to end a subscription, without waiting.
fn send_detach(outgoing: &mpsc::Sender<Vec<u8>>, sub: u64) {
    // No caller has id 0, so the answer is dropped.
    let frame = ClientFrame::Request(Request {
        id: 0,
        method: "session.detach".to_owned(),
        params: serde_json::json!({ "sub": sub }),
    });
    if let Ok(bytes) = encode(&frame, 1_024) {
        // If the queue is full, the daemon keeps pushing; the reader then drops those frames.
        let _ = outgoing.try_send(bytes);
    }
}

/// A pending request. If dropped before its answer, it ends the subscription that it has started or will start.
struct Waits<'a> {
    client: &'a Client,
    id: u64,
    answered: bool,
}

impl Waits<'_> {
    fn over<A>(mut self, answer: Result<A, ClientError>) -> Result<A, ClientError> {
        self.answered = answer.is_ok();
        answer
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let shared = &self.client.0.shared;
        if self.answered {
            shared.taken(self.id);
        } else if let Some(sub) = shared.abandon(self.id) {
            self.client.leave(sub);
        }
    }
}

fn read_answer<A: DeserializeOwned>(method: &str, ok: Value) -> Result<A, ClientError> {
    serde_json::from_value(ok).map_err(|error| ClientError::Answer {
        method: method.to_owned(),
        why: error.to_string(),
    })
}

async fn read_all(mut incoming: Incoming, shared: Arc<Shared>, outgoing: mpsc::WeakSender<Vec<u8>>) {
    let why = loop {
        let delivered = match incoming.next().await {
            Ok(body) => deliver(&body, &shared, &outgoing).await,
            Err(error) => Err(error),
        };
        if let Err(error) = delivered {
            break error;
        }
    };
    shared.lose(&why);
}

/// Delivers a frame. Waits while its subscription is full and no request is pending.
async fn deliver(
    body: &[u8],
    shared: &Shared,
    outgoing: &mpsc::WeakSender<Vec<u8>>,
) -> Result<(), ClientError> {
    let frame = decode::<ServerFrame>(body, FrameLimits::of_answers())?;
    match shared.route(frame)? {
        Routed::Done => {}
        Routed::Push(inbox, push) => {
            while inbox.full() && !shared.someone_waits() {
                shared.room.notified().await;
            }
            inbox.push(push);
        }
        Routed::Unwanted(sub) => {
            if let Some(outgoing) = outgoing.upgrade() {
                send_detach(&outgoing, sub);
            }
        }
    }
    Ok(())
}
