//! Follows a session across lost connections, without gaps or duplicates (I2).

use crate::dial::Dial;
use crate::failure::Failure;
use agentd_client::{Client, ClientError, Ended, Push, Subscription};
use agentd_protocol::{
    AttachParams, Delta, Event, EventBody, Fault, FaultClass, RunState, Seq, SessionParams, Synced,
};
use std::time::Duration;

/// Reconnection attempts before giving up; the delay grows with each.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The session and events to follow.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The session's full id.
    pub(crate) session: String,
    /// Events after this one.
    pub(crate) after: Seq,
    /// The last N events instead of all.
    pub(crate) tail: Option<u32>,
    /// Whether to receive live fragments too.
    pub(crate) deltas: bool,
    /// Whether this viewer answers approvals.
    pub(crate) decides: bool,
}

/// News about a session.
#[derive(Debug)]
pub(crate) enum News {
    /// An event, and its stored line.
    Event(Box<Event>, String),
    /// A live fragment.
    Delta(Delta),
    /// The replay is complete; live events follow.
    Synced(Box<Synced>),
    /// Some fragments were missed.
    Lagged,
    /// The connection is lost; the follower reconnects.
    Retrying,
    /// The connection is back.
    Back,
    /// The daemon ended the subscription.
    Ended(Ended),
}

impl News {
    /// Whether this is the last news: the session is closed or gone.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Event(event, _) => matches!(event.body, EventBody::SessionClosed(_)),
            Self::Synced(synced) => synced.status.state == RunState::Closed,
            Self::Ended(_) => true,
            Self::Delta(_) | Self::Lagged | Self::Retrying | Self::Back => false,
        }
    }
}

/// Follows one session.
#[derive(Debug)]
pub(crate) struct Follower {
    dial: Dial,
    client: Client,
    wanted: Wanted,
    live: Option<Subscription>,
    tries: u32,
    announced: bool,
    why: Option<Fault>,
}

impl Follower {
    /// Attaches.
    pub(crate) async fn attach(dial: Dial, client: Client, wanted: Wanted) -> Result<Self, Failure> {
        let live = client.attach(&params(&wanted)).await?;
        Ok(Self {
            dial,
            client,
            wanted,
            live: Some(live),
            tries: 0,
            announced: true,
            why: None,
        })
    }

    /// The current connection, for other calls.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The session's full id.
    pub(crate) fn session(&self) -> &str {
        &self.wanted.session
    }

    /// Asks the daemon to compact the conversation.
    pub(crate) async fn compact(&self) -> Result<(), Fault> {
        let params = SessionParams {
            session: self.wanted.session.clone(),
        };
        let asked = self.client.compact(&params).await;
        asked.map(drop).map_err(Fault::from)
    }

    /// The next news. Cancel-safe: dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<News, Failure> {
        loop {
            let Some(live) = &mut self.live else {
                match self.come_back().await? {
                    Some(news) => return Ok(news),
                    None => continue,
                }
            };
            let Some(push) = live.next().await else {
                self.live = None;
                self.why = self.client.lost();
                continue;
            };
            if let Some(news) = self.read(push)? {
                return Ok(news);
            }
        }
    }

    fn read(&mut self, push: Push) -> Result<Option<News>, Failure> {
        match push {
            Push::Event(stored) => {
                let line = String::from_utf8_lossy(&stored.json).into_owned();
                let event: Event = serde_json::from_str(&line).map_err(|error| unreadable(&error))?;
                if event.seq <= self.wanted.after {
                    return Ok(None);
                }
                self.wanted.after = event.seq;
                self.wanted.tail = None;
                Ok(Some(News::Event(Box::new(event), line)))
            }
            Push::Delta(delta) => Ok(Some(News::Delta(delta))),
            Push::Synced(synced) => {
                self.tries = 0;
                Ok(Some(News::Synced(Box::new(synced))))
            }
            Push::Lagged(_) => Ok(Some(News::Lagged)),
            Push::Ended(ended) if ended.code == "unavailable" => {
                // The daemon cannot read its store now.
                self.live = None;
                self.why = Some(Fault::unavailable("unavailable", ended.message));
                Ok(None)
            }
            Push::Ended(ended) => Ok(Some(News::Ended(ended))),
            Push::CaughtUp(_) | Push::Unknown => Ok(None),
        }
    }

    /// Makes one attempt to attach again. Announces it first.
    async fn come_back(&mut self) -> Result<Option<News>, Failure> {
        if self.announced {
            self.announced = false;
            self.tries += 1;
            return Ok(Some(News::Retrying));
        }
        tokio::time::sleep((PAUSE * self.tries).min(LONGEST_PAUSE)).await;
        match self.try_again().await {
            Ok((client, live)) => {
                self.client = client;
                self.live = Some(live);
                self.announced = true;
                Ok(Some(News::Back))
            }
            Err(error) => {
                let fault = Fault::from(error);
                let gone = matches!(fault.class, FaultClass::Unavailable | FaultClass::Timeout);
                self.tries += 1;
                if gone && self.tries <= TRIES {
                    return Ok(None);
                }
                Err(self.give_up(fault))
            }
        }
    }

    async fn try_again(&self) -> Result<(Client, Subscription), ClientError> {
        let client = self.dial.try_connect().await?;
        let live = client.attach(&params(&self.wanted)).await?;
        Ok((client, live))
    }

    fn give_up(&self, last: Fault) -> Failure {
        let fault = self
            .why
            .clone()
            .filter(|_| last.class == FaultClass::Unavailable)
            .unwrap_or(last);
        let hint = format!(
            "acknowledged events are safe; when the daemon is running again: agentctl attach {}",
            self.wanted.session
        );
        fault.hint(hint).into()
    }
}

fn params(wanted: &Wanted) -> AttachParams {
    AttachParams {
        session: wanted.session.clone(),
        after_seq: Some(wanted.after),
        tail: wanted.tail,
        deltas: wanted.deltas,
        decides: wanted.decides,
    }
}

/// The daemon sent an event that cannot be parsed.
pub(crate) fn unreadable(error: &serde_json::Error) -> Failure {
    Fault::version("bad_event", format!("cannot parse an event: {error}"))
        .hint("the daemon has a different version; `agentctl version` shows both")
        .into()
}
