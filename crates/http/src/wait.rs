//! `Prefer: wait=SECONDS`: answers a new input with the result of its turn.

use crate::pages::created;
use crate::problem::Problem;
use crate::router::App;
use crate::routes::Route;
use agentd_api::Push;
use agentd_protocol::{
    Delta, Event, EventBody, Fault, InputId, OpenApproval, Principal, Seq, TurnFinished, TurnId,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use utoipa::ToSchema;

/// The longest wait; a client asks again with the events.
const LONGEST: Duration = Duration::from_secs(600);
const QUEUE: usize = 64;

/// A client's wish to wait.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    within: Duration,
    /// No client will answer its approvals, so they do not end the wait.
    headless: bool,
    /// The session of an input; a new session is in the answer.
    session: Option<Value>,
}

impl Wait {
    /// Reads the header of a request that makes an input; other requests ignore it, as RFC 7240 allows.
    pub(crate) fn asked(
        route: &Route,
        headers: &HeaderMap,
        params: &Map<String, Value>,
    ) -> Result<Option<Self>, Fault> {
        let Some(seconds) = preferred(headers) else {
            return Ok(None);
        };
        if !route.waits() {
            return Ok(None);
        }
        let seconds = seconds.parse().map_err(|_| {
            Fault::invalid(
                "bad_params",
                "params: Prefer: expected wait=SECONDS, with a whole number",
            )
        })?;
        Ok(Some(Self {
            within: Duration::from_secs(seconds).min(LONGEST),
            headless: params.get("headless").and_then(Value::as_bool).unwrap_or(false),
            session: params.get("session").cloned(),
        }))
    }
}

fn preferred(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all("prefer").iter();
    let mut all = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    all.find_map(|one| Some(one.trim().strip_prefix("wait=")?.to_owned()))
}

/// The fields that a request with `Prefer: wait` adds to its method's answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Waited {
    /// The open approvals, if the turn has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    approvals: Option<Vec<OpenApproval>>,
    /// The turn, if it has ended.
    turn: Option<Box<FinishedTurn>>,
}

/// A turn that ended: its event `turn.finished`, without the envelope.
#[derive(Debug, Serialize, ToSchema)]
struct FinishedTurn {
    #[serde(flatten)]
    finished: TurnFinished,
    /// Whether it ended by itself, with an answer.
    success: bool,
    /// Its id.
    turn: Option<TurnId>,
    /// The place of the event in the log.
    seq: Seq,
}

/// What ended a wait.
enum End {
    /// The turn ended.
    Turn(Box<FinishedTurn>),
    /// A person must act first.
    Blocked,
    /// No turn will come: the input was cancelled, or the session closed.
    Never,
}

/// The answer after the wait: 200 with the finished turn, or 202 with what is known so far.
pub(crate) async fn answer(
    app: &App,
    who: &Principal,
    answer: Value,
    wait: Wait,
) -> Result<Response, Problem> {
    let Value::Object(mut answer) = answer else {
        return Err(Fault::internal("bad_answer", "the answer is no object").into());
    };
    let new = wait.session.is_none();
    if let Some(session) = &wait.session {
        answer.insert("session".to_owned(), session.clone());
    }
    let input = answer
        .get("input")
        .cloned()
        .and_then(|id| serde_json::from_value::<InputId>(id).ok());
    let end = match input.filter(|input| *input != InputId::NIL) {
        Some(input) => {
            let seq = if new {
                0
            } else {
                answer.get("seq").and_then(Value::as_u64).unwrap_or(0)
            };
            let params = json!({"session": answer.get("session"), "after_seq": seq, "deltas": true});
            timeout(wait.within, follow(app, who, params, input, wait.headless)).await
        }
        None => Ok(Ok(End::Never)),
    };
    let turn = match end {
        Ok(Ok(End::Turn(turn))) => Some(turn),
        Ok(Ok(End::Blocked | End::Never)) | Err(_) => None,
        Ok(Err(fault)) => return Err(fault.into()),
    };
    let status = if turn.is_some() {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    let mut approvals = None;
    if turn.is_none() {
        let params = json!({"session": answer.get("session")});
        let open = app.api.call(who, "approval.list", params).await?;
        approvals = serde_json::from_value(open).map_err(|error| unreadable(&error))?;
    }
    let waited = serde_json::to_value(Waited { approvals, turn });
    if let Value::Object(waited) = waited.map_err(|error| unreadable(&error))? {
        answer.extend(waited);
    }
    let mut response = created(status, Value::Object(answer));
    response
        .headers_mut()
        .insert("preference-applied", HeaderValue::from_static("wait"));
    Ok(response)
}

async fn follow(
    app: &App,
    who: &Principal,
    params: Value,
    input: InputId,
    headless: bool,
) -> Result<End, Fault> {
    let (_, attachment) = app.api.attach(who, params).await?;
    let (pushes, mut frames) = mpsc::channel(QUEUE);
    tokio::spawn(attachment.run(pushes));
    let (mut joined, mut live) = (false, false);
    while let Some(pushed) = frames.recv().await {
        let blocked = match pushed.push {
            Push::Event { json, .. } => {
                let event: Event = serde_json::from_slice(&json).map_err(|error| {
                    Fault::internal("bad_event", format!("cannot parse an event: {error}"))
                })?;
                match &event.body {
                    EventBody::TurnStarted(started) => joined |= started.inputs.contains(&input),
                    EventBody::ModelStarted(started) => joined |= started.inputs.contains(&input),
                    EventBody::TurnFinished(turn) if joined => {
                        return Ok(End::Turn(Box::new(FinishedTurn {
                            success: turn.succeeded(),
                            turn: event.turn,
                            seq: event.seq,
                            finished: turn.clone(),
                        })));
                    }
                    EventBody::InputCancelled(cancelled) if cancelled.input == input => {
                        return Ok(End::Never);
                    }
                    EventBody::SessionClosed(_) => return Ok(End::Never),
                    _ => {}
                }
                live && matches!(event.body, EventBody::ApprovalAsked(_))
            }
            Push::Synced(synced) => {
                live = true;
                !synced.approvals.is_empty() || synced.status.state.blocked()
            }
            Push::Delta(delta) => match delta.as_ref() {
                Delta::Status(status) => status.state.blocked(),
                Delta::Asks { approvals, .. } => !approvals.is_empty(),
                _ => false,
            },
            Push::Ended { code: "deleted", .. } => return Ok(End::Never),
            Push::Ended { code, message, .. } => return Err(Fault::unavailable(code, message)),
            Push::CaughtUp(_) | Push::Lagged(_) => false,
        };
        if blocked && !headless {
            return Ok(End::Blocked);
        }
    }
    Err(Fault::unavailable(
        "stream_ended",
        "cannot follow the session until its turn ends",
    ))
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::internal("bad_answer", format!("cannot parse the answer: {error}"))
}
