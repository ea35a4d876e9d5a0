//! `session.bulk`: one operation on many sessions. An outcome per session; a failure does not stop the rest.

use crate::api::Api;
use crate::dispatch::answer;
use crate::sight::Caller;
use agentd_protocol::{
    BulkAction, BulkDone, BulkOutcome, BulkParams, CancelTurnParams, Done, Fault, FaultClass,
    LifecycleParams, ResumeParams, SessionId, from_named,
};
use agentd_store::{AWAY, ELSEWHERE};
use futures_util::{StreamExt as _, stream};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The maximum number of sessions in a request. Their ids fit into a frame, and the request ends in time.
pub(crate) const MOST: usize = 2_000;
/// Trees that are handled concurrently: their events then share transactions of the store.
const AT_ONCE: usize = 128;
/// The time limit of the whole request.
const WITHIN: Duration = Duration::from_secs(110);

/// The operation.
struct Order {
    action: BulkAction,
    reason: Option<String>,
    force: bool,
    deadline: Instant,
}

/// A session's position in the request, and the session or why it was not found.
type Target = (usize, Result<(SessionId, Option<SessionId>), Fault>);

impl Api {
    /// Carries out the operation on each session. The outcomes have the order of the request.
    pub(crate) async fn bulk(&self, who: &Caller, params: BulkParams) -> Result<BulkDone, Fault> {
        let action = params.action.ok_or_else(|| {
            Fault::invalid("action_missing", "the action is missing")
                .hint("give pause, resume, cancel, kill, close or delete")
        })?;
        if params.sessions.len() > MOST {
            let message = format!("{} sessions in one request", params.sessions.len());
            return Err(Fault::invalid("too_many_sessions", message)
                .hint(format!("give at most {MOST} sessions per request")));
        }
        let order = Order {
            action,
            reason: params.reason,
            force: params.force,
            deadline: Instant::now() + WITHIN,
        };
        let names = params.sessions;
        let find = |(place, name): (usize, String)| async move {
            let found = self.row_of(who, &name).await;
            (place, found.map(|(session, row)| (*session, row.summary.parent)))
        };
        let targets: Vec<Target> = stream::iter(names.iter().cloned().enumerate())
            .map(find)
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut outcomes: Vec<(usize, Result<Done, Fault>)> = stream::iter(families(targets))
            .map(|family| self.carry_out(who, &order, family))
            .buffer_unordered(AT_ONCE)
            .flat_map(stream::iter)
            .collect()
            .await;
        outcomes.sort_by_key(|(place, _)| *place);
        let outcomes = outcomes.into_iter().zip(names);
        let outcomes = outcomes.map(|((_, outcome), session)| match outcome {
            Ok(done) => BulkOutcome {
                session,
                done: Some(done),
                fault: None,
            },
            Err(fault) => BulkOutcome {
                session,
                done: None,
                fault: Some(fault),
            },
        });
        Ok(BulkDone {
            outcomes: outcomes.collect(),
        })
    }

    async fn carry_out(
        &self,
        who: &Caller,
        order: &Order,
        family: Vec<Target>,
    ) -> Vec<(usize, Result<Done, Fault>)> {
        let mut outcomes = Vec::with_capacity(family.len());
        for (place, found) in family {
            let outcome = match found {
                Ok((session, _)) => {
                    let done = timeout_at(order.deadline, self.act(who, order, session)).await;
                    done.unwrap_or_else(|_| Err(late()))
                }
                Err(fault) => Err(fault),
            };
            outcomes.push((place, outcome));
        }
        outcomes
    }

    async fn act(&self, who: &Caller, order: &Order, session: SessionId) -> Result<Done, Fault> {
        let (session, reason) = (session.to_string(), order.reason.clone());
        let cancel = |kill| CancelTurnParams {
            session: session.clone(),
            expect_turn: None,
            reason: reason.clone(),
            kill,
        };
        let params = || LifecycleParams {
            session: session.clone(),
            reason: reason.clone(),
            force: order.force,
        };
        let resumed = || ResumeParams {
            session: session.clone(),
            reason: reason.clone(),
            ..ResumeParams::default()
        };
        let (method, done) = match order.action {
            BulkAction::Pause => ("session.pause", self.pause(who, params()).await),
            BulkAction::Resume => ("session.resume", self.resume(who, resumed()).await),
            BulkAction::Cancel => ("turn.cancel", self.cancel_turn(who, cancel(false)).await),
            BulkAction::Kill => ("turn.cancel", self.cancel_turn(who, cancel(true)).await),
            BulkAction::Close => ("session.close", self.close(who, params()).await),
            BulkAction::Delete => ("session.delete", self.delete(who, params()).await),
        };
        match done {
            Err(fault) if [ELSEWHERE, AWAY].contains(&fault.code.as_str()) => {
                let same = match order.action {
                    BulkAction::Cancel | BulkAction::Kill => {
                        answer(&cancel(order.action == BulkAction::Kill))?
                    }
                    BulkAction::Resume => answer(&resumed())?,
                    _ => answer(&params())?,
                };
                let answer = self.there(who, (method, &same), fault).await?;
                // A newer node may say more in its answer.
                from_named(&answer)
                    .map_err(|error| Fault::internal("bad_answer", format!("{method} answered: {error}")))
            }
            done => done,
        }
    }
}

fn late() -> Fault {
    Fault::new(
        FaultClass::Timeout,
        "bulk_timeout",
        "the request took too long; this session may not have been reached",
    )
    .hint("repeat the request")
}

/// Groups sessions into trees. Within a tree they are handled one by one, because an operation on a parent changes its
/// sub-agents.
fn families(targets: Vec<Target>) -> Vec<Vec<Target>> {
    let found = targets.iter().filter_map(|(_, found)| found.as_ref().ok());
    let parents: BTreeMap<SessionId, Option<SessionId>> = found.copied().collect();
    let top_of = |mut session: SessionId| {
        // A chain of parents cannot be longer than the number of sessions.
        for _ in 0..parents.len() {
            match parents.get(&session).copied().flatten() {
                Some(parent) if parents.contains_key(&parent) => session = parent,
                _ => break,
            }
        }
        session
    };
    let (mut places, mut families) = (BTreeMap::new(), Vec::<Vec<Target>>::new());
    for target in targets {
        let place = match &target.1 {
            Ok((session, _)) => *places.entry(top_of(*session)).or_insert(families.len()),
            Err(_) => families.len(),
        };
        match families.get_mut(place) {
            Some(family) => family.push(target),
            None => families.push(vec![target]),
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    #[test]
    fn sessions_are_grouped_into_trees() {
        let found = |n: u8, parent: Option<u8>| Ok((session(n), parent.map(session)));
        let missing = || Err(late());
        let targets = [
            found(3, Some(2)),
            found(7, None),
            missing(),
            found(1, None),
            found(2, Some(1)),
            found(3, Some(2)),
            missing(),
            found(9, Some(8)),
        ];
        let places = |family: Vec<Target>| family.into_iter().map(|(place, _)| place).collect::<Vec<_>>();
        let families: Vec<Vec<usize>> = families(targets.into_iter().enumerate().collect())
            .into_iter()
            .map(places)
            .collect();
        let expected: [&[usize]; 5] = [&[0, 3, 4, 5], &[1], &[2], &[6], &[7]];
        assert_eq!(families, expected);
    }
}
