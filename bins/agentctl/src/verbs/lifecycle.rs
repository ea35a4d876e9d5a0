//! `cancel`, `kill`, `pause`, `resume`, `close`, `rm`: one order for many sessions.

use crate::cli::{Format, TargetArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{count, one_line};
use crate::values;
use agentd_client::{Client, ClientError};
use agentd_protocol::{
    CancelTurnParams, Done, LifecycleParams, ListParams, RunState, Seq, SessionId, Summary, WaitReason,
};
use serde::Serialize;

/// What is done to each session.
#[derive(Debug)]
pub(crate) enum Order {
    /// End the turn: why, and whether commands are killed at once.
    Cancel(Option<String>, Kill),
    /// Start no new model call: why.
    Pause(Option<String>),
    /// Go on: why.
    Resume(Option<String>),
    /// Take no more input: why, also while a turn runs.
    Close(Option<String>, bool),
    /// Remove, also while a turn runs.
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

/// A session on which the order was carried out.
#[derive(Debug, Serialize)]
struct DoneRow {
    session: SessionId,
    seq: Seq,
}

impl Order {
    pub(crate) const fn cancel(reason: Option<String>, at_once: bool) -> Self {
        Self::Cancel(reason, if at_once { Kill::AtOnce } else { Kill::Gently })
    }

    /// The order and its past tense.
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

    /// What a person might not expect, with so many inputs in the queue.
    fn remark(&self, queued: usize) -> String {
        match self {
            Self::Cancel(..) if queued > 0 => {
                let inputs = count(u64::try_from(queued).unwrap_or(u64::MAX), "queued input");
                format!("; the session goes on with {inputs} (pause it first to hold them)")
            }
            Self::Cancel(..) | Self::Pause(_) | Self::Resume(_) | Self::Close(..) | Self::Remove(_) => {
                String::new()
            }
        }
    }

    /// Whether the order changes anything there. Closed sessions are left to the daemon's own words.
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

    /// What was said to be done, or that there was nothing to do.
    fn told(&self, row: &Summary) -> String {
        let called = format!("{} ({})", row.session.short(), one_line(&row.name, 60));
        match self {
            Self::Pause(_) if !self.fits(row) => format!("{called} was paused before"),
            Self::Resume(_) if !self.fits(row) => format!("{called} was not paused"),
            _ => format!("{} {called}{}", self.words().1, self.remark(row.queue.len())),
        }
    }

    /// Whether a person confirms it first. A pause loses nothing, so it needs nobody where nobody can be asked.
    const fn asks(&self, person: bool) -> bool {
        match self {
            Self::Cancel(..) | Self::Close(..) | Self::Remove(_) => true,
            Self::Pause(_) => person,
            Self::Resume(_) => false,
        }
    }

    /// Those of all sessions on which it is carried out.
    fn chosen_of(&self, rows: &[Summary]) -> Vec<String> {
        let fitting: Vec<&Summary> = rows.iter().filter(|row| self.fits(row)).collect();
        // A sub-agent is paused with its parent and goes on with it.
        let follows = |row: &Summary| {
            matches!(self, Self::Pause(_) | Self::Resume(_))
                && fitting.iter().any(|above| Some(above.session) == row.parent)
        };
        let led = fitting.iter().filter(|row| !follows(row));
        led.map(|row| row.session.to_string()).collect()
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

/// Whether it waits for somebody to let it go on.
const fn stopped(state: RunState) -> bool {
    matches!(
        state,
        RunState::Paused
            | RunState::Faulted
            | RunState::Waiting(WaitReason::RateLimit | WaitReason::Quota | WaitReason::Credentials)
    )
}

/// Carries the order out on each session; a failure does not stop the rest, the first one decides the exit code.
pub(crate) async fn each(ctx: &mut Ctx, targets: &TargetArgs, order: &Order) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let verb = order.words().0;
    let sessions = chosen(ctx, &client, targets, order).await?;
    let (mut exit, mut done) = (Exit::OK, Vec::new());
    for asked in sessions {
        match one(&client, &asked, order).await {
            Ok((row, seq)) => {
                ctx.out.talk(&order.told(&row));
                done.push(DoneRow {
                    session: row.session,
                    seq,
                });
            }
            Err(error) => {
                let mut fault = agentd_protocol::Fault::from(error);
                fault.message = format!("cannot {verb} {asked}: {}", fault.message);
                if fault.code == "session_running" || fault.code == "turn_running" {
                    fault.hint = Some(format!(
                        "cancel it first, or: agentctl {} -f {asked}",
                        order.verb()
                    ));
                }
                exit = exit.or(ctx.out.failure(&fault.into()));
            }
        }
    }
    if ctx.out.quiet || ctx.out.format == Format::Name {
        done.iter()
            .try_for_each(|row| ctx.out.line(&row.session.to_string()))?;
    } else if !ctx.out.human() {
        ctx.out.value(&done)?;
    }
    Ok(exit)
}

/// Carries the order out on the session that the words mean, as it was just before.
async fn one(client: &Client, asked: &str, order: &Order) -> Result<(Summary, Seq), ClientError> {
    let row = client.get(asked).await?;
    let Done { seq } = order.carry_out(client, &row.session.to_string()).await?;
    Ok((row, seq))
}

async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    targets: &TargetArgs,
    order: &Order,
) -> Result<Vec<String>, Failure> {
    if !targets.all {
        return Ok(targets.sessions.clone());
    }
    let params = ListParams {
        all: matches!(order, Order::Remove(_)),
        states: targets.state.clone(),
        labels: values::selector(&targets.labels),
        ..ListParams::default()
    };
    let rows = client.list(&params).await?;
    let ids = order.chosen_of(&rows);
    if ids.is_empty() {
        ctx.out.talk("no session matches");
    } else if !targets.yes && order.asks(ctx.out.terminal.stdin && ctx.out.terminal.stderr) {
        let sessions = count(u64::try_from(ids.len()).unwrap_or(u64::MAX), "session");
        confirm(ctx, &format!("{} {sessions}?", order.words().0))?;
    }
    Ok(ids)
}

/// Asks on a terminal; without one, `--yes` is needed.
pub(crate) fn confirm(ctx: &mut Ctx, question: &str) -> Result<(), Failure> {
    if !(ctx.out.terminal.stdin && ctx.out.terminal.stderr) {
        return Err(Failure::invalid(
            format!("without a terminal nobody can be asked: {question}"),
            "confirm it with --yes",
        ));
    }
    if matches!(
        ask(ctx, &format!("{question} [y/N] "))?.as_str(),
        "y" | "Y" | "yes"
    ) {
        return Ok(());
    }
    Err(agentd_protocol::Fault::conflict("not_confirmed", "not confirmed; nothing was done").into())
}

/// A line that a person types.
pub(crate) fn ask(ctx: &mut Ctx, question: &str) -> Result<String, Failure> {
    ctx.out.talk_always(question);
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::file(std::path::Path::new("-"), &error))?;
    Ok(line.trim().to_owned())
}
