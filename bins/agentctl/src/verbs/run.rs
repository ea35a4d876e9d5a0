//! `run`: a session from its first input to the end of its turn.

mod each;
mod full;

use crate::cli::{Format, RunArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, Wanted};
use crate::fullscreen;
use crate::interactive::{
    Conversation, Held, Interrupt, Manner, RunResult, Screen, Signals, Streams, TurnWatch, Unattended,
};
use crate::render::{clean, one_line};
use crate::values;
use crate::verbs::before_run::{check_size, name_is_free, say_if_text};
use agentd_client::Client;
use agentd_protocol::{
    Block, CreateParams, Event, EventBody, ExportParams, Fault, InputId, PermissionMode, RunState,
    SendParams, Seq, SessionId, WaitReason,
};
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

const USAGE: &str = "agentctl run \"fix the failing test\", or --input-file FILE (or - for stdin)";
/// The most lines of a tool's output that are shown while watching.
const OUTPUT_LINES: usize = 5;

/// An input that was sent to a session.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) input: InputId,
    pub(crate) seq: Seq,
    /// Only events after this one are shown.
    pub(crate) after: Seq,
    /// How the session handles approvals while no client is attached.
    pub(crate) unattended: Unattended,
    /// The output of a command, in which case there is no input.
    pub(crate) said: Option<String>,
    /// Notices for the author of the input.
    pub(crate) notices: Vec<String>,
}

/// The output of `run -d` and `send`.
#[derive(Debug, Serialize)]
pub(crate) struct EnteredRow<'a> {
    session: SessionId,
    name: &'a str,
    input: InputId,
    seq: Seq,
}

impl Entered {
    pub(crate) fn row(&self) -> EnteredRow<'_> {
        EnteredRow {
            session: self.session,
            name: &self.name,
            input: self.input,
            seq: self.seq,
        }
    }

    /// Shows the notices to the author.
    pub(crate) fn tell(&self, ctx: &mut Ctx) {
        for notice in &self.notices {
            ctx.out.status(&format!("note: {}", clean(notice)));
        }
    }
}

pub(crate) async fn run(ctx: &mut Ctx, args: &RunArgs) -> Result<Exit, Failure> {
    if let Some(file) = &args.each {
        return each::each(ctx, args, file).await;
    }
    let prompt = values::prompt(
        args.prompt.as_deref(),
        args.input_file.as_deref(),
        &args.images,
        USAGE,
    )?;
    let watching = Watching {
        fails_on_deny: args.fail_on_deny,
        thinking: args.show_thinking,
        full: args.timeout.is_none() && !args.json && fullscreen::wanted(ctx, args.no_tui),
        ..Watching::of(ctx, args.json, args.timeout)
    };
    let created = match args.session {
        None => Some(create_params(
            args,
            prompt.clone(),
            !args.detach && !watching.person,
        )?),
        Some(_) => None,
    };
    if args.mode.map(PermissionMode::from) == Some(PermissionMode::Yolo) {
        ctx.out.status(agentd_policy::YOLO_LIMITS);
    }
    let client = ctx.connect_or_start().await?;
    check_size(&client, &prompt)?;
    say_if_text(ctx, &prompt, args.commands);
    // With a key, a session of this name may come from an earlier run with the same key.
    if let (Some(name), None) = (&args.name, &args.key) {
        name_is_free(&client, name).await?;
    }
    let entered = match (created, &args.session) {
        (Some(params), _) => create(&client, &params).await?,
        (None, session) => {
            let session = session.clone().unwrap_or_default();
            let params = SendParams {
                session,
                content: prompt,
                model: args.model.clone(),
                key: args.key.clone(),
                commands: args.commands,
                ..SendParams::default()
            };
            enter(&client, params).await?
        }
    };
    if let Some(said) = &entered.said {
        ctx.out.line(&clean(said))?;
        return Ok(Exit::OK);
    }
    entered.tell(ctx);
    if args.detach {
        return detached(ctx, &entered);
    }
    watch_own(ctx, client, &entered, watching).await
}

/// Watches the turn of `run`, in the chosen mode.
async fn watch_own(
    ctx: &mut Ctx,
    client: Client,
    entered: &Entered,
    watching: Watching,
) -> Result<Exit, Failure> {
    ctx.out.status(&format!(
        "session {} ({})",
        entered.session.short(),
        one_line(&entered.name, 60)
    ));
    if watching.full {
        return full::watch(ctx, client, entered, watching).await;
    }
    watch(ctx, client, entered, watching).await
}

/// The options for watching a turn.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Watching {
    /// Whether a person is here to answer.
    pub(crate) person: bool,
    /// Print the stored lines instead of a transcript.
    exact: bool,
    deadline: Option<Instant>,
    /// Whether a denied call counts as a failure.
    fails_on_deny: bool,
    /// Whether to show the model's reasoning too.
    thinking: bool,
    /// Whether to use the whole screen.
    full: bool,
}

impl Watching {
    fn exit(self, result: &RunResult) -> Exit {
        if self.fails_on_deny {
            result.exit_on_deny()
        } else {
            result.exit()
        }
    }

    pub(crate) fn of(ctx: &Ctx, json: bool, timeout: Option<Duration>) -> Self {
        let exact = json || ctx.out.format == Format::Jsonl;
        Self {
            person: ctx.out.terminal.interactive() && ctx.out.human() && !exact,
            exact,
            deadline: timeout.map(|timeout| Instant::now() + timeout),
            fails_on_deny: false,
            thinking: false,
            full: false,
        }
    }
}

fn create_params(args: &RunArgs, prompt: Vec<Block>, headless: bool) -> Result<CreateParams, Failure> {
    Ok(CreateParams {
        prompt: Some(prompt),
        title: args.name.clone(),
        workdir: values::workdir(args.workdir.as_deref())?,
        model: args.model.clone(),
        mode: args.mode.map(Into::into),
        labels: values::labels(&args.labels),
        requires: values::labels(&args.requires),
        preset: args.preset.map(Into::into),
        max_turns: args.max_turns,
        thinking: args.thinking.map(Into::into),
        budget: args.budget,
        tools: args.tools.clone(),
        rules: values::rules(&args.allow, &args.deny),
        agent: args.agent.clone(),
        system_prompt: args.system_prompt.as_deref().map(values::text_of).transpose()?,
        append_system_prompt: args.append_system_prompt.clone(),
        headless,
        commands: args.commands,
        key: args.key.clone(),
        workspace: args.place.request(),
        force: args.force,
        ..CreateParams::default()
    })
}

async fn create(client: &Client, params: &CreateParams) -> Result<Entered, Failure> {
    let created = client.create(params).await?;
    let input = created
        .input
        .ok_or_else(|| Fault::version("bad_answer", "the daemon created the session without its input"))?;
    let unattended = if params.headless {
        Unattended::Denies
    } else {
        Unattended::Waits
    };
    Ok(Entered {
        session: created.session,
        name: created.name,
        input,
        seq: created.seq,
        after: 0,
        unattended,
        said: None,
        notices: created.notices,
    })
}

/// Sends an input to an existing session.
pub(crate) async fn enter(client: &Client, mut params: SendParams) -> Result<Entered, Failure> {
    let row = client.get(&params.session).await?;
    params.session = row.session.to_string();
    let sent = client.send(&params).await?;
    let unattended = if is_headless(client, row.session).await? {
        Unattended::Denies
    } else {
        Unattended::Waits
    };
    // Other events may lie in between; with a reused key, the input itself may be older than the row.
    let after = sent.seq.saturating_sub(1).min(row.seq);
    Ok(Entered {
        session: row.session,
        name: row.name,
        input: sent.input,
        seq: sent.seq,
        after,
        unattended,
        said: sent.said,
        notices: sent.notices,
    })
}

/// Whether the session was created headless: `session.created` is its first event, or its second after an import.
async fn is_headless(client: &Client, session: SessionId) -> Result<bool, Failure> {
    let first = ExportParams {
        session: session.to_string(),
        after_seq: 0,
        limit: 2,
    };
    let page = client.export(&first).await?;
    let mut events = page
        .lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(events.any(
        |event: Event| matches!(event.body, EventBody::SessionCreated(created) if created.limits.headless),
    ))
}

fn detached(ctx: &mut Ctx, entered: &Entered) -> Result<Exit, Failure> {
    let id = entered.session.to_string();
    ctx.out.object(&entered.row(), &id, |_| format!("{id}\n"))?;
    let short = entered.session.short();
    ctx.out.status(&format!(
        "watch it with: agentctl attach {short}\nstop it with:  agentctl cancel {short}\n\
         approvals and questions at its limits wait for `agentctl approvals`, as long as permission.ask_timeout says"
    ));
    Ok(Exit::OK)
}

/// Watches the turn that takes the input, prints the requested output, and returns the exit code.
pub(crate) async fn watch(
    ctx: &mut Ctx,
    client: Client,
    entered: &Entered,
    watching: Watching,
) -> Result<Exit, Failure> {
    let wanted = Wanted {
        session: entered.session.to_string(),
        after: entered.after,
        tail: None,
        deltas: true,
        decides: watching.person,
    };
    // From here on Ctrl-C cancels the turn; it must not end this program while the turn goes on.
    let signals = Signals::listen().map_err(Failure::Output)?;
    let follower = Follower::attach(ctx.dial()?, client, wanted).await?;
    let place = if ctx.out.human() {
        Streams::Split
    } else {
        Streams::StderrOnly
    };
    let manner = Manner {
        answers: watching.person,
        sends: false,
        status: (watching.person && !ctx.out.quiet && ctx.out.terminal.canvas().is_some()).then(now),
        exact: watching.exact,
        leaves_when: (!watching.person).then_some(entered.unattended),
        deadline: watching.deadline,
        interrupt: Interrupt::Cancel,
    };
    let watch = TurnWatch::new(entered.session, entered.input);
    let screen = Screen::new(place, OUTPUT_LINES, false).thinking(watching.thinking);
    let held = Conversation::new(&mut ctx.out, follower, screen, Some(watch), manner)
        .hold(signals)
        .await?;
    match held {
        Held::Turn(result) => {
            report(ctx, watching, &result)?;
            Ok(watching.exit(&result))
        }
        Held::TimedOut(result) => after_leaving(ctx, watching, entered, result.as_ref(), Exit::TIMEOUT),
        Held::Interrupted(result) => {
            after_leaving(ctx, watching, entered, result.as_ref(), Exit::INTERRUPTED)
        }
        Held::Blocked(status) => {
            let message = format!("blocked: {}: {}", status.state, status.reason);
            let short = entered.session.short();
            let hint = match status.state {
                RunState::Waiting(WaitReason::Quota | WaitReason::Credentials) => {
                    format!("the session waits; after fixing the cause: agentctl resume {short}")
                }
                _ => format!("the session waits: agentctl attach {short}"),
            };
            Err(Fault::busy("blocked", message).hint(hint).into())
        }
        Held::Detached => {
            let message = format!("the session {} is gone", entered.session.short());
            Err(Fault::not_found("session_gone", message).into())
        }
    }
}

fn after_leaving(
    ctx: &mut Ctx,
    watching: Watching,
    entered: &Entered,
    result: Option<&RunResult>,
    exit: Exit,
) -> Result<Exit, Failure> {
    match result {
        Some(result) => report(ctx, watching, result)?,
        None => ctx.out.status(&format!(
            "detached; the session continues: agentctl attach {}",
            entered.session.short()
        )),
    }
    Ok(exit)
}

fn report(ctx: &mut Ctx, watching: Watching, result: &RunResult) -> Result<(), Failure> {
    if let Some(note) = result.about_denied().filter(|_| !watching.person) {
        ctx.out.status(&note);
    }
    if watching.exact || ctx.out.human() {
        return Ok(());
    }
    if ctx.out.format == Format::Name {
        return ctx.out.line(&result.session.to_string());
    }
    ctx.out.value(result)
}
