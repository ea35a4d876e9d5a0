//! `cancel`, `kill`, `pause`, `resume`, `close`, `rm`: one operation on many sessions.

use crate::cli::{Format, LifecycleArgs, ResumeArgs, TargetArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{count, one_line};
use crate::values;
use agentd_client::Client;
use agentd_protocol::{
    BulkAction, BulkParams, Done, Fault, ListParams, ResumeParams, RunState, Seq, SessionId, Summary,
    WaitReason,
};
use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use std::collections::BTreeSet;

/// Sessions per request: few enough that the first results show soon.
const AT_ONCE: usize = 500;
/// Concurrent lookups of typed names.
const LOOKUPS: usize = 32;

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
    fn failed(&self, asked: &str, mut fault: Fault) -> Failure {
        fault.message = format!("cannot {} {asked}: {}", self.words().0, fault.message);
        if fault.code == "session_running" || fault.code == "turn_running" {
            fault.hint = Some(format!(
                "cancel it first, or: agentctl {} -f {asked}",
                self.verb()
            ));
        }
        fault.into()
    }

    /// The request for these sessions.
    fn request(&self, sessions: Vec<String>) -> BulkParams {
        let (action, reason, force) = match self {
            Self::Cancel(reason, Kill::Gently) => (BulkAction::Cancel, reason, false),
            Self::Cancel(reason, Kill::AtOnce) => (BulkAction::Kill, reason, false),
            Self::Pause(reason) => (BulkAction::Pause, reason, false),
            Self::Resume(reason) => (BulkAction::Resume, reason, false),
            Self::Close(reason, force) => (BulkAction::Close, reason, *force),
            Self::Remove(force) => (BulkAction::Delete, &None, *force),
        };
        BulkParams {
            action: Some(action),
            sessions,
            reason: reason.clone(),
            force,
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

/// Resumes sessions, or has one go on in another directory.
pub(crate) async fn resume(ctx: &mut Ctx, args: ResumeArgs) -> Result<Exit, Failure> {
    let LifecycleArgs {
        targets,
        reason,
        force,
    } = args.lifecycle;
    let Some(workdir) = &args.workdir else {
        return each(ctx, &targets, &Order::Resume(reason)).await;
    };
    let [session] = targets.sessions.as_slice() else {
        let what = "-C moves one session at a time";
        return Err(Failure::invalid(
            what,
            "name one session: agentctl resume ID -C DIR",
        ));
    };
    let workdir = values::workdir(Some(workdir))?;
    let client = ctx.connect().await?;
    let params = ResumeParams {
        session: session.clone(),
        reason,
        force,
        workdir: Some(workdir.clone()),
    };
    let Done { seq, pending } = client.resume(&params).await?;
    let row = client.get(session).await?;
    ctx.out
        .status(&format!("{} goes on in {workdir}", row.session.short()));
    if !ctx.out.human() {
        ctx.out.value(&[DoneRow {
            session: row.session,
            seq,
            pending,
        }])?;
    }
    Ok(Exit::OK)
}

/// Performs the operation on each session. A failure does not stop the rest; the first one determines the exit code.
pub(crate) async fn each(ctx: &mut Ctx, targets: &TargetArgs, order: &Order) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let sessions = chosen(ctx, &client, targets, order).await?;
    let (mut exit, mut done) = (Exit::OK, Vec::new());
    for targets in sessions.chunks(AT_ONCE) {
        for outcome in carry_out(&client, order, targets).await? {
            match outcome {
                Ok((row, Done { seq, pending })) => {
                    ctx.out.status(&order.told(row));
                    if pending {
                        ctx.out.status(PENDING);
                    }
                    done.push(DoneRow {
                        session: row.session,
                        seq,
                        pending,
                    });
                }
                Err((asked, fault)) => exit = exit.or(ctx.out.failure(&order.failed(asked, fault))),
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

/// A target as typed, with the session's state just before the operation, or why it was not found.
type Target = (String, Result<Summary, Fault>);

/// Carries the operation out on all of them in one request.
async fn carry_out<'a>(
    client: &Client,
    order: &Order,
    targets: &'a [Target],
) -> Result<Vec<Result<(&'a Summary, Done), (&'a str, Fault)>>, Failure> {
    let found = targets.iter().filter_map(|(_, found)| found.as_ref().ok());
    let sessions: Vec<String> = found.map(|row| row.session.to_string()).collect();
    let mut outcomes = if sessions.is_empty() {
        Vec::new().into_iter()
    } else {
        client.bulk(&order.request(sessions)).await?.outcomes.into_iter()
    };
    let mut outcome_of = |(asked, found): &'a Target| {
        let row = found.as_ref().map_err(|fault| (asked.as_str(), fault.clone()))?;
        let outcome = outcomes.next();
        let fault = outcome.as_ref().and_then(|outcome| outcome.fault.clone());
        match outcome.and_then(|outcome| outcome.done) {
            Some(done) => Ok((row, done)),
            None => Err((asked.as_str(), fault.unwrap_or_else(no_outcome))),
        }
    };
    Ok(targets.iter().map(&mut outcome_of).collect())
}

fn no_outcome() -> Fault {
    Fault::internal(
        "no_outcome",
        "the daemon answered without an outcome for this session",
    )
}

async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    targets: &TargetArgs,
    order: &Order,
) -> Result<Vec<Target>, Failure> {
    if !targets.all {
        let get = |asked: String| async move {
            let found = client.get(&asked).await.map_err(Fault::from);
            (asked, found)
        };
        let words = stream::iter(targets.sessions.clone());
        return Ok(words.map(get).buffered(LOOKUPS).collect().await);
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
