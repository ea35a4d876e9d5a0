//! `cancel`, `kill`, `pause`, `resume`, `close`, `rm`: one operation on many sessions.

use crate::cli::{Format, TargetArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{count, one_line};
use crate::values;
use agentd_client::{Client, ClientError};
use agentd_protocol::{
    CancelTurnParams, Done, Fault, LifecycleParams, ListParams, RunState, Seq, SessionId, Summary, WaitReason,
};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Concurrent requests: their events then share transactions of the store.
const AT_ONCE: usize = 32;

/// The operation on each session.
#[derive(Debug)]
pub(crate) enum Order {
    /// End the turn: the reason, and whether commands are killed at once.
    Cancel(Option<String>, Kill),
    /// Start no new model call: the reason.
    Pause(Option<String>),
    /// Continue: the reason.
    Resume(Option<String>),
    /// Accept no more input: the reason, and whether to do so even while a turn runs.
    Close(Option<String>, bool),
    /// Remove the session; whether to do so even while a turn runs.
    Remove(bool),
}

/// How commands of a cancelled turn end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// TERM first.
    Gently,
    /// KILL at once.
    AtOnce,
}

/// The message to a person when the disk is full.
const PENDING: &str = "  the store is full: the commands were ended, but the log cannot record it until there is space; \
                       if the daemon dies before then, the turn continues";

/// A session on which the operation succeeded.
#[derive(Debug, Serialize)]
struct DoneRow {
    session: SessionId,
    seq: Seq,
    /// The turn has ended, but that is not durable yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
}

impl Order {
    pub(crate) const fn cancel(reason: Option<String>, at_once: bool) -> Self {
        Self::Cancel(reason, if at_once { Kill::AtOnce } else { Kill::Gently })
    }

    /// The operation's name and its past participle.
    const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Cancel(_, Kill::Gently) => ("cancel", "cancelled"),
            Self::Cancel(_, Kill::AtOnce) => ("kill", "killed"),
            Self::Pause(_) => ("pause", "paused"),
            Self::Resume(_) => ("resume", "resumed"),
            Self::Close(..) => ("close", "closed"),
            Self::Remove(_) => ("remove", "removed"),
        }
    }

    /// The verb that was typed.
    const fn verb(&self) -> &'static str {
        match self {
            Self::Remove(_) => "rm",
            Self::Cancel(..) | Self::Pause(_) | Self::Resume(_) | Self::Close(..) => self.words().0,
        }
    }

    /// A note on a possibly unexpected effect, given the number of queued inputs.
    fn remark(&self, queued: usize) -> String {
        match self {
            Self::Cancel(..) if queued > 0 => {
                let inputs = count(u64::try_from(queued).unwrap_or(u64::MAX), "queued input");
                format!("; the session continues with {inputs} (pause it first to hold them)")
            }
            Self::Cancel(..) | Self::Pause(_) | Self::Resume(_) | Self::Close(..) | Self::Remove(_) => {
                String::new()
            }
        }
    }

    /// Whether the operation would change the session. Closed sessions are left to the daemon, which reports the fault.
    pub(crate) fn fits(&self, row: &Summary) -> bool {
        match self {
            Self::Cancel(_, Kill::Gently) => row.turn.is_some(),
            // Without a turn only jobs are left to end.
            Self::Cancel(_, Kill::AtOnce) => row.turn.is_some() || !row.jobs.is_empty(),
            Self::Pause(_) => !row.paused,
            Self::Resume(_) => row.paused || stopped(row.status.state),
            Self::Close(..) => row.status.state != RunState::Closed,
            Self::Remove(_) => true,
        }
    }

    /// Reports what was done, or that there was nothing to do.
    fn told(&self, row: &Summary) -> String {
        let called = format!("{} ({})", row.session.short(), one_line(&row.name, 60));
        match self {
            Self::Pause(_) if !self.fits(row) => format!("{called} was already paused"),
            Self::Resume(_) if !self.fits(row) => format!("{called} was not paused"),
            _ => format!("{} {called}{}", self.words().1, self.remark(row.queue.len())),
        }
    }

    /// Whether a person must confirm it. A pause loses nothing, so without a person it needs no confirmation.
    const fn asks(&self, person: bool) -> bool {
        match self {
            Self::Cancel(..) | Self::Close(..) | Self::Remove(_) => true,
            Self::Pause(_) => person,
            Self::Resume(_) => false,
        }
    }

    /// The sessions to which `--all` applies.
    pub(crate) fn chosen_of(&self, mut rows: Vec<Summary>) -> Vec<Summary> {
        rows.retain(|row| self.fits(row));
        // A sub-agent is paused and resumed together with its parent.
        if matches!(self, Self::Pause(_) | Self::Resume(_)) {
            let fitting: BTreeSet<SessionId> = rows.iter().map(|row| row.session).collect();
            rows.retain(|row| row.parent.is_none_or(|parent| !fitting.contains(&parent)));
        }
        rows
    }

    /// The failure for a session on which the operation did not succeed.
    fn failed(&self, asked: &str, error: ClientError) -> Failure {
        let mut fault = Fault::from(error);
        fault.message = format!("cannot {} {asked}: {}", self.words().0, fault.message);
        if fault.code == "session_running" || fault.code == "turn_running" {
            fault.hint = Some(format!(
                "cancel it first, or: agentctl {} -f {asked}",
                self.verb()
            ));
        }
        fault.into()
    }

    async fn carry_out(&self, client: &Client, session: &str) -> Result<Done, ClientError> {
        let lifecycle = |reason: &Option<String>, force: bool| LifecycleParams {
            session: session.to_owned(),
            reason: reason.clone(),
            force,
        };
        match self {
            Self::Cancel(reason, kill) => {
                let params = CancelTurnParams {
                    session: session.to_owned(),
                    expect_turn: None,
                    reason: reason.clone(),
                    kill: *kill == Kill::AtOnce,
                };
                client.cancel_turn(&params).await
            }
            Self::Pause(reason) => client.pause(&lifecycle(reason, false)).await,
            Self::Resume(reason) => client.resume(&lifecycle(reason, false)).await,
            Self::Close(reason, force) => client.close(&lifecycle(reason, *force)).await,
            Self::Remove(force) => client.delete(&lifecycle(&None, *force)).await,
        }
    }
}

/// Whether the session is stopped and can be resumed.
const fn stopped(state: RunState) -> bool {
    matches!(
        state,
        RunState::Paused
            | RunState::Faulted
            | RunState::Waiting(
                WaitReason::RateLimit | WaitReason::Provider | WaitReason::Quota | WaitReason::Credentials
            )
    )
}

/// Performs the operation on each session. A failure does not stop the rest; the first one determines the exit code.
pub(crate) async fn each(ctx: &mut Ctx, targets: &TargetArgs, order: &Order) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let sessions = chosen(ctx, &client, targets, order).await?;
    let (mut exit, mut done) = (Exit::OK, Vec::new());
    let mut carried_out = stream::iter(families(sessions))
        .map(|family| carry_out(&client, order, family))
        .buffered(AT_ONCE)
        .flat_map(stream::iter);
    while let Some(outcome) = carried_out.next().await {
        match outcome {
            Ok((row, Done { seq, pending })) => {
                ctx.out.status(&order.told(&row));
                if pending {
                    ctx.out.status(PENDING);
                }
                done.push(DoneRow {
                    session: row.session,
                    seq,
                    pending,
                });
            }
            Err((asked, error)) => exit = exit.or(ctx.out.failure(&order.failed(&asked, error))),
        }
    }
    drop(carried_out);
    if ctx.out.quiet || ctx.out.format == Format::Name {
        done.iter()
            .try_for_each(|row| ctx.out.line(&row.session.to_string()))?;
    } else if !ctx.out.human() {
        ctx.out.value(&done)?;
    }
    Ok(exit)
}

/// A target as typed, with the session's state just before the operation, or why it was not found.
type Target = (String, Result<Summary, ClientError>);

/// Groups sessions into trees, ordered by their first members. Within a tree they are handled one by one, because an
/// operation on a parent changes its sub-agents.
fn families(targets: Vec<Target>) -> Vec<Vec<Target>> {
    let found = targets.iter().filter_map(|(_, found)| found.as_ref().ok());
    let parents: BTreeMap<SessionId, Option<SessionId>> =
        found.map(|row| (row.session, row.parent)).collect();
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
            Ok(row) => *places.entry(top_of(row.session)).or_insert(families.len()),
            Err(_) => families.len(),
        };
        match families.get_mut(place) {
            Some(family) => family.push(target),
            None => families.push(vec![target]),
        }
    }
    families
}

async fn carry_out(
    client: &Client,
    order: &Order,
    family: Vec<Target>,
) -> Vec<Result<(Summary, Done), (String, ClientError)>> {
    let mut outcomes = Vec::with_capacity(family.len());
    for (asked, found) in family {
        let outcome = match found {
            Ok(row) => {
                let done = order.carry_out(client, &row.session.to_string()).await;
                done.map(|done| (row, done))
            }
            Err(error) => Err(error),
        };
        outcomes.push(outcome.map_err(|error| (asked, error)));
    }
    outcomes
}

async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    targets: &TargetArgs,
    order: &Order,
) -> Result<Vec<Target>, Failure> {
    if !targets.all {
        let get = |asked: String| async move {
            let found = client.get(&asked).await;
            (asked, found)
        };
        let words = stream::iter(targets.sessions.clone());
        return Ok(words.map(get).buffered(AT_ONCE).collect().await);
    }
    let params = ListParams {
        all: matches!(order, Order::Remove(_)),
        states: targets.state.clone(),
        labels: values::selector(&targets.labels),
        ..ListParams::default()
    };
    let rows = order.chosen_of(client.list(&params).await?);
    if rows.is_empty() {
        ctx.out.status("no session matches");
    } else if !targets.yes && order.asks(ctx.out.terminal.stdin && ctx.out.terminal.stderr) {
        let sessions = count(u64::try_from(rows.len()).unwrap_or(u64::MAX), "session");
        confirm(ctx, &format!("{} {sessions}?", order.words().0))?;
    }
    let named = rows.into_iter().map(|row| (row.session.to_string(), Ok(row)));
    Ok(named.collect())
}

/// Asks for confirmation on a terminal; without one, requires `--yes`.
pub(crate) fn confirm(ctx: &mut Ctx, question: &str) -> Result<(), Failure> {
    if !(ctx.out.terminal.stdin && ctx.out.terminal.stderr) {
        return Err(Failure::invalid(
            format!("cannot ask for confirmation without a terminal: {question}"),
            "confirm with --yes",
        ));
    }
    if matches!(
        ask(ctx, &format!("{question} [y/N] "))?.as_str(),
        "y" | "Y" | "yes"
    ) {
        return Ok(());
    }
    Err(Fault::conflict("not_confirmed", "not confirmed; nothing was done").into())
}

/// Prompts for a line of input.
pub(crate) fn ask(ctx: &mut Ctx, question: &str) -> Result<String, Failure> {
    ctx.out.status_always(question);
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::file(std::path::Path::new("-"), &error))?;
    Ok(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{Status, Timestamp};

    fn session(n: u8) -> SessionId {
        SessionId::from_bytes([n; 16])
    }

    fn found(n: u8, parent: Option<u8>) -> Target {
        let status = Status::new(RunState::Idle, "", Timestamp(0));
        let mut row = Summary::new(session(n), status);
        row.parent = parent.map(session);
        (n.to_string(), Ok(row))
    }

    #[test]
    fn sessions_are_grouped_into_trees() {
        let missing = || ("x".to_owned(), Err(ClientError::Lost("gone".to_owned())));
        let targets = vec![
            found(3, Some(2)),
            found(7, None),
            missing(),
            found(1, None),
            found(2, Some(1)),
            found(3, Some(2)),
            missing(),
            found(9, Some(8)),
        ];
        let names = |family: Vec<Target>| family.into_iter().map(|(asked, _)| asked).collect::<Vec<_>>();
        let families: Vec<Vec<String>> = families(targets).into_iter().map(names).collect();
        let expected: [&[&str]; 5] = [&["3", "1", "2", "3"], &["7"], &["x"], &["x"], &["9"]];
        assert_eq!(families, expected);
    }
}
