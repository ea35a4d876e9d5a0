//! The fleet's log, read once or followed.

use crate::dial::Dial;
use crate::failure::Failure;
use crate::follow::unreadable;
use crate::verbs::logs::Choice;
use agentd_client::{Push, StoredEvent};
use agentd_protocol::{Event, Fault, WatchParams};
use std::collections::VecDeque;

/// How many events at the end of the log are first searched for the last matching ones.
const FIRST_LOOK: u64 = 256;

/// How a watch of the fleet ended.
pub(crate) enum Over {
    /// The end of the log.
    End,
    /// The connection is lost, or the daemon cannot read its store.
    Lost(Fault),
}

impl Over {
    /// For callers that cannot reconnect: a lost connection is a failure.
    fn whole(self) -> Result<(), Failure> {
        match self {
            Self::End => Ok(()),
            Self::Lost(fault) => Err(fault.into()),
        }
    }
}

/// An event with the exact stored line and its cursor.
pub(crate) type Found = (Event, StoredEvent);

/// Passes matching events to `take` in order. Advances `params.after`.
pub(crate) async fn watch(
    dial: &Dial,
    params: &mut WatchParams,
    choice: &Choice,
    mut take: impl FnMut(Found) -> Result<(), Failure>,
) -> Result<Over, Failure> {
    let client = match dial.connect().await {
        Ok(client) => client,
        Err(Failure::Fault(fault)) if fault.code == "daemon_unreachable" => return Ok(Over::Lost(fault)),
        Err(failure) => return Err(failure),
    };
    let mut live = client.watch(params).await?;
    loop {
        match live.next().await {
            Some(Push::Event(stored)) => {
                params.after = stored.cursor.or(params.after);
                let event: Event =
                    serde_json::from_slice(&stored.json).map_err(|error| unreadable(&error))?;
                if choice.takes(&event) {
                    take((event, stored))?;
                }
            }
            Some(Push::Ended(ended)) => {
                params.after = ended.cursor.or(params.after);
                return match ended.code.as_str() {
                    "end" => Ok(Over::End),
                    "unavailable" => Ok(Over::Lost(Fault::unavailable("unavailable", ended.message))),
                    _ => Err(Fault::unavailable("ended", ended.message).into()),
                };
            }
            Some(Push::Delta(_) | Push::Synced(_) | Push::CaughtUp(_) | Push::Lagged(_) | Push::Unknown) => {}
            None => {
                let lost = client.lost();
                return Ok(Over::Lost(lost.unwrap_or_else(|| {
                    Fault::unavailable("connection_lost", "the connection was lost")
                })));
            }
        }
    }
}

/// Reads all stored events that match.
pub(crate) async fn all(
    dial: &Dial,
    params: WatchParams,
    choice: &Choice,
    take: impl FnMut(Found) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut params = WatchParams { once: true, ..params };
    watch(dial, &mut params, choice, take).await?.whole()
}

/// The last matching events, at most `most`, and the cursor after them. Most logs are far longer, so this reads
/// the end first, and goes further back while it has too few.
pub(crate) async fn last(
    dial: &Dial,
    params: &WatchParams,
    choice: &Choice,
    most: usize,
) -> Result<(VecDeque<Found>, Option<u64>), Failure> {
    let first = params.after.unwrap_or(0);
    let nothing = WatchParams {
        after: None,
        once: true,
        ..WatchParams::default()
    };
    let head = dial.connect().await?.watch(&nothing).await?.head();
    let mut look = FIRST_LOOK.max(u64::try_from(most).unwrap_or(u64::MAX));
    loop {
        let start = head.saturating_sub(look).max(first);
        let mut asked = WatchParams {
            after: Some(start),
            once: true,
            ..params.clone()
        };
        let mut kept = VecDeque::new();
        let done = watch(dial, &mut asked, choice, |found| {
            kept.push_back(found);
            if kept.len() > most {
                kept.pop_front();
            }
            Ok(())
        });
        done.await?.whole()?;
        if kept.len() >= most || start == first {
            return Ok((kept, asked.after));
        }
        look = look.saturating_mul(8);
    }
}
