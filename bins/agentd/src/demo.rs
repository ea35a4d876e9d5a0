//! `--demo`: real sessions over the real socket, narrated line by line. Only the model's answers are scripted.

mod repository;
mod story;

use agentd_client::{Client, ClientError, ConnectOptions, Push};
use agentd_protocol::{
    ApplyParams, AttachParams, Block, BranchParams, CreateParams, DecideParams, Decision, EndReason, Event,
    EventBody, LinkTokenParams, PermissionMode, Scope,
};
use agentd_provider::demo::{self as script, Demo, Pace};
use anyhow::{Context as _, Result};
use repository::Repository;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use story::{Teller, Titles};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a user may consider an approval before the demo answers it.
const LOOK: Duration = Duration::from_secs(8);
/// The same without a terminal.
const GLANCE: Duration = Duration::from_millis(500);
/// How long the demo waits if a user is connected.
const PATIENCE: Duration = Duration::from_secs(180);

/// A demo at the right pace: fast without a terminal, because no user reads along.
pub(crate) fn paced(sessions: u32, fast: bool) -> Demo {
    let pace = if fast || !std::io::stdout().is_terminal() {
        Pace::Fast
    } else {
        Pace::Watched
    };
    Demo { sessions, pace }
}

/// Runs the demo against the daemon on `socket` and narrates it on stdout. `ctl` is the matching `agentctl` command.
pub(crate) async fn show(demo: Demo, socket: PathBuf, ctl: String) {
    let teller = Teller::new(demo.sessions, ctl);
    if let Err(error) = run(demo, &socket, &teller).await {
        teller.line(0, &format!("the demo failed: {error:#}"));
    }
}

async fn run(demo: Demo, socket: &Path, teller: &Teller) -> Result<()> {
    teller.banner();
    let client = Client::connect(socket, &ConnectOptions::default())
        .await
        .context("cannot connect to the daemon")?;
    // Without HTTP there is no page.
    if let Ok(link) = client.link_token(&LinkTokenParams::default()).await {
        teller.page(link.url.expose());
    }
    let work = tempfile::Builder::new()
        .prefix("agentd-demo-work-")
        .tempdir()
        .context("cannot create a temporary directory")?;
    let repository = Arc::new(Repository::create(work.path()).await?);
    let mut running = JoinSet::new();
    for number in 1..=demo.sessions {
        let (client, teller, repository) = (client.clone(), teller.clone(), Arc::clone(&repository));
        running.spawn(async move {
            if demo.is_large() {
                tokio::time::sleep(Duration::from_millis(demo.pace.begins_ms(number))).await;
            }
            one(number, demo.pace, &client, &repository, &teller).await
        });
    }
    let mut done = Vec::new();
    while let Some(ended) = running.join_next().await {
        done.push(ended.context("a session of the demo panicked")??);
    }
    done.sort_by_key(|done| done.number);
    for done in &done {
        teller.diff(done.number, &repository.diff(&done.workdir)?);
    }
    // Without git, nothing was recorded.
    if let Some(first) = done.first()
        && repository.has_git
        && let Err(error) = fetch(&client, first, &repository, teller).await
    {
        teller.line(first.number, &format!("its work was not fetched: {error:#}"));
    }
    let good = done
        .iter()
        .filter(|done| done.end == EndReason::Completed)
        .count();
    teller.closing(good);
    // Keep the repository as long as the daemon runs: the user may want to inspect them, or to continue a session.
    std::future::pending::<()>().await;
    drop(work);
    Ok(())
}

/// A session whose turn is over.
struct Finished {
    number: u32,
    session: String,
    /// Where it worked.
    workdir: PathBuf,
    end: EndReason,
}

/// Brings the work of one session into the repository: as a branch, and into the files.
async fn fetch(client: &Client, done: &Finished, repository: &Repository, teller: &Teller) -> Result<()> {
    let params = BranchParams {
        session: done.session.clone(),
        name: format!("demo-{}", done.number),
        ..BranchParams::default()
    };
    let made = client.branch(&params).await.context("cannot make a branch")?;
    teller.branched(done.number, &made);
    let params = ApplyParams {
        session: done.session.clone(),
        to: repository.dir().display().to_string(),
        ..ApplyParams::default()
    };
    let applied = client.apply(&params).await.context("cannot apply the work")?;
    teller.applied(done.number, &applied);
    Ok(())
}

/// The session that repairs the script of this number.
fn order(number: u32, repository: &Repository) -> CreateParams {
    CreateParams {
        prompt: Some(vec![Block::text(script::prompt(number))]),
        title: Some(format!("demo {number}")),
        workdir: repository.dir().display().to_string(),
        workspace: Some(repository.workspace()),
        model: Some(script::model(number).to_owned()),
        mode: Some(PermissionMode::AcceptEdits),
        labels: [("demo", "true"), ("team", script::team(number))]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        rules: script::rules(number),
        ..CreateParams::default()
    }
}

/// Runs one session from creation to the end of its turn.
async fn one(
    number: u32,
    pace: Pace,
    client: &Client,
    repository: &Repository,
    teller: &Teller,
) -> Result<Finished> {
    let created = client.create(&order(number, repository)).await?;
    let session = created.session.to_string();
    let mut viewer = client
        .attach(&AttachParams {
            session: session.clone(),
            deltas: false,
            decides: true,
            ..AttachParams::default()
        })
        .await?;
    let (mut titles, mut workdir) = (Titles::new(), PathBuf::new());
    let mut open: Option<Open> = None;
    loop {
        let push = tokio::select! {
            push = viewer.next() => push,
            () = until(open.as_ref().map(|open| open.look_again)) => {
                open = later(client, open).await?;
                continue;
            }
        };
        let Some(push) = push else { break };
        let Push::Event(stored) = push else { continue };
        let event: Event = serde_json::from_slice(&stored.json).context("cannot parse a stored event")?;
        teller.event(number, &event, &mut titles);
        match &event.body {
            EventBody::SessionCreated(created) => workdir = PathBuf::from(&created.workdir),
            EventBody::ApprovalAsked(asked) => {
                let asked = Open::new(asked.approval.to_string(), pace);
                if pace == Pace::Watched {
                    teller.how_to_answer(number, &asked.approval, asked.look);
                }
                open = Some(asked);
            }
            EventBody::ApprovalDecided(_) => open = None,
            EventBody::TurnFinished(end) => {
                return Ok(Finished {
                    number,
                    session,
                    workdir,
                    end: end.reason,
                });
            }
            _ => {}
        }
    }
    anyhow::bail!("the event stream of session {number} ended early")
}

/// An open approval.
struct Open {
    approval: String,
    look: Duration,
    asked: Instant,
    look_again: Instant,
}

impl Open {
    fn new(approval: String, pace: Pace) -> Self {
        let look = match pace {
            Pace::Watched => LOOK,
            Pace::Fast => GLANCE,
        };
        let asked = Instant::now();
        Self {
            approval,
            look,
            asked,
            look_again: asked + look,
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Handles an approval that is due: waits longer if a user is connected, else answers it.
async fn later(client: &Client, open: Option<Open>) -> Result<Option<Open>> {
    let Some(mut open) = open else { return Ok(None) };
    // One connection is the demo itself.
    let connected = client.status().await?.connections > 1;
    if connected && open.asked.elapsed() < PATIENCE {
        open.look_again += open.look;
        return Ok(Some(open));
    }
    answer(client, &open.approval).await?;
    Ok(None)
}

/// Allows the call, unless a user in another terminal has already answered.
async fn answer(client: &Client, approval: &str) -> Result<()> {
    let params = DecideParams {
        approval: approval.to_owned(),
        decision: Some(Decision::Allow),
        scope: Scope::Once,
        policy: true,
        ..DecideParams::default()
    };
    match client.decide(&params).await {
        Ok(_) => Ok(()),
        Err(error) if conflict(&error) => Ok(()),
        Err(error) => Err(error).context("cannot answer the approval"),
    }
}

fn conflict(error: &ClientError) -> bool {
    agentd_protocol::Fault::from(error.clone()).class == agentd_protocol::FaultClass::Conflict
}
