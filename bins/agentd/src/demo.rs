//! `--demo`: real sessions over the real socket, told line by line. Only the model's words are scripted.

mod project;
mod story;

use agentd_client::{Client, ClientError, ConnectOptions, Push};
use agentd_protocol::{
    AttachParams, Block, CreateParams, DecideParams, Decision, EndReason, Event, EventBody, PermissionMode,
    Scope,
};
use agentd_provider::demo as script;
use anyhow::{Context as _, Result};
use project::Project;
use std::path::{Path, PathBuf};
use std::time::Duration;
use story::{Teller, Titles};
use tokio::task::JoinSet;

/// How long a person may look at an approval before the demo answers it itself.
const LOOK: Duration = Duration::from_millis(1_500);

/// Runs the demo against the daemon on `socket` and tells it on stdout; `ctl` is how to call `agentctl` for it.
pub(crate) async fn show(n: u32, socket: PathBuf, ctl: String) {
    let teller = Teller::new(n);
    if let Err(error) = run(n, &socket, &teller, &ctl).await {
        teller.line(0, &format!("the demo failed: {error:#}"));
    }
}

async fn run(n: u32, socket: &Path, teller: &Teller, ctl: &str) -> Result<()> {
    teller.banner();
    let client = Client::connect(socket, &ConnectOptions::default())
        .await
        .context("the daemon does not answer")?;
    let work = tempfile::Builder::new()
        .prefix("agentd-demo-work-")
        .tempdir()
        .context("no temporary directory")?;
    let mut running = JoinSet::new();
    for number in 1..=n {
        let project = Project::create(work.path(), number)?;
        let (client, teller) = (client.clone(), teller.clone());
        running.spawn(async move {
            one(number, &client, &project, &teller)
                .await
                .map(|end| (number, end, project))
        });
    }
    let mut done = Vec::new();
    while let Some(ended) = running.join_next().await {
        done.push(ended.context("a session of the demo panicked")??);
    }
    done.sort_by_key(|(number, ..)| *number);
    for (number, _, project) in &done {
        teller.diff(*number, &project.diff()?);
    }
    let good = done
        .iter()
        .filter(|(_, end, _)| *end == EndReason::Completed)
        .count();
    teller.closing(good, ctl);
    // The projects stay while the daemon stays: the person may want to look, or to go on in a session.
    std::future::pending::<()>().await;
    drop(work);
    Ok(())
}

/// One session from creation to the end of its turn.
async fn one(number: u32, client: &Client, project: &Project, teller: &Teller) -> Result<EndReason> {
    let created = client
        .create(&CreateParams {
            prompt: Some(vec![Block::text(project.prompt())]),
            title: Some(project.name()),
            workdir: project.dir().display().to_string(),
            model: Some(script::MODEL.to_owned()),
            mode: Some(PermissionMode::AcceptEdits),
            labels: [("demo".to_owned(), "true".to_owned())].into(),
            rules: script::rules(),
            ..CreateParams::default()
        })
        .await?;
    let session = created.session.to_string();
    let mut viewer = client
        .attach(&AttachParams {
            session,
            deltas: false,
            decides: true,
            ..AttachParams::default()
        })
        .await?;
    let mut titles = Titles::new();
    while let Some(push) = viewer.next().await {
        let Push::Event(stored) = push else { continue };
        let event: Event = serde_json::from_slice(&stored.json).context("a stored event does not parse")?;
        teller.event(number, &event, &mut titles);
        match &event.body {
            EventBody::ApprovalAsked(asked) => {
                tokio::time::sleep(LOOK).await;
                answer(client, &asked.approval.to_string()).await?;
            }
            EventBody::TurnFinished(end) => return Ok(end.reason),
            _ => {}
        }
    }
    anyhow::bail!("the viewer of session {number} ended early")
}

/// Allows it, unless somebody in another terminal was faster.
async fn answer(client: &Client, approval: &str) -> Result<()> {
    let params = DecideParams {
        approval: approval.to_owned(),
        decision: Some(Decision::Allow),
        scope: Scope::Once,
        ..DecideParams::default()
    };
    match client.decide(&params).await {
        Ok(_) => Ok(()),
        Err(error) if conflict(&error) => Ok(()),
        Err(error) => Err(error).context("the approval could not be answered"),
    }
}

fn conflict(error: &ClientError) -> bool {
    agentd_protocol::Fault::from(error.clone()).class == agentd_protocol::FaultClass::Conflict
}
