//! Requests from a view to the daemon. They run as tasks and send their outcomes back to the view.

use crate::images;
use agentd_client::{Client, ClientError};
use agentd_protocol::{
    ApprovalId, ApprovalQuestion, ApprovalQuestionParams, Block, CancelInputParams, CancelTurnParams,
    DecideParams, Delivery, Event, EventBody, ExportParams, Fault, ImageSource, InputId, PermissionMode,
    ResumeParams, SendParams, Seq, SessionParams, TurnId, UpdateParams,
};
use agentd_text::one_line;
use agentd_tui::{Action, Branch, Proposal};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::Sender;

/// News that waits for the screen.
pub(crate) const LIVELY: usize = 1_024;
/// Events of a page.
const PAGE: u32 = 400;
/// The most sub-agents of a tree that are read.
const FAMILY: usize = 100;
/// The most files that are proposed.
const FILES: usize = 200;

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A message for the person.
    Told(String),
    /// It failed.
    Failed(String),
    /// A page of the log, and the log's head.
    Page(Action, Vec<Event>, Seq),
    /// The lines of a question; or why they cannot be shown.
    Question(ApprovalId, Result<Box<ApprovalQuestion>, String>),
    /// A question could not be answered.
    Refused(ApprovalId, Fault),
    /// The sessions around this one.
    Family(Vec<Branch>),
    /// Files that begin like this.
    Files(String, Vec<Proposal>),
}

/// Sends requests about one session.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) session: String,
    pub(crate) outcomes: Sender<Outcome>,
}

impl Requests {
    fn start(&self, work: impl Future<Output = Option<Outcome>> + Send + 'static) {
        let outcomes = self.outcomes.clone();
        tokio::spawn(async move {
            if let Some(outcome) = work.await {
                // Fails if the view is closed.
                let _ = outcomes.send(outcome).await;
            }
        });
    }

    pub(crate) fn send(&self, text: String, delivery: Option<Delivery>) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let mut content = vec![Block::text(text.clone())];
            content.extend(images::pasted(&text).into_iter().map(|(_, image)| image));
            let params = SendParams {
                session,
                content,
                delivery,
                commands: true,
                ..SendParams::default()
            };
            let sent = match client.send(&params).await {
                Ok(sent) => sent,
                Err(error) => return Some(failed(error.into())),
            };
            let mut told: Vec<String> = sent.said.into_iter().collect();
            told.extend(sent.notices);
            (!told.is_empty()).then(|| Outcome::Told(told.join("; ")))
        });
    }

    pub(crate) fn decide(&self, approval: ApprovalId, params: DecideParams) {
        let client = self.client.clone();
        self.start(async move {
            let refused = client.decide(&params).await.err()?;
            Some(Outcome::Refused(approval, refused.into()))
        });
    }

    /// Asks for the lines of a question.
    pub(crate) fn question(&self, approval: ApprovalId) {
        let client = self.client.clone();
        self.start(async move { Some(Outcome::Question(approval, question(&client, approval).await)) });
    }

    pub(crate) fn cancel(&self, turn: Option<TurnId>) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let params = CancelTurnParams {
                session,
                expect_turn: turn,
                reason: Some("cancelled by Esc".to_owned()),
                kill: false,
            };
            client
                .cancel_turn(&params)
                .await
                .err()
                .map(|error| failed(error.into()))
        });
    }

    pub(crate) fn resume(&self) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let params = ResumeParams {
                session,
                reason: Some("resumed by /resume".to_owned()),
                force: false,
                workdir: None,
            };
            client
                .resume(&params)
                .await
                .err()
                .map(|error| failed(error.into()))
        });
    }

    pub(crate) fn compact(&self) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let done = client.compact(&SessionParams { session }).await;
            done.err().map(|error| failed(error.into()))
        });
    }

    pub(crate) fn mode(&self, mode: PermissionMode) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let params = UpdateParams {
                session,
                mode: Some(mode),
                ..UpdateParams::default()
            };
            client
                .update(&params)
                .await
                .err()
                .map(|error| failed(error.into()))
        });
    }

    pub(crate) fn withdraw(&self, input: InputId) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            let params = CancelInputParams {
                session,
                input: Some(input),
            };
            client
                .cancel_input(&params)
                .await
                .err()
                .map(|error| failed(error.into()))
        });
    }

    /// Loads a page of the log: before or after an event, or its end.
    pub(crate) fn page(&self, wanted: Action, head: Seq) {
        let (client, session) = (self.client.clone(), self.session.clone());
        let (after, limit) = if let Action::Older(first) = wanted {
            let after = first.saturating_sub(1 + u64::from(PAGE));
            let limit = first.saturating_sub(1 + after);
            (after, u32::try_from(limit).unwrap_or(PAGE))
        } else if let Action::Newer(last) = wanted {
            (last, PAGE)
        } else {
            (head.saturating_sub(u64::from(PAGE)), PAGE)
        };
        self.start(async move {
            let params = ExportParams {
                session,
                after_seq: after,
                limit,
            };
            let page = match client.export(&params).await {
                Ok(page) => page,
                Err(error) => return Some(failed(error.into())),
            };
            let lines = page.lines;
            #[expect(
                clippy::disallowed_methods,
                reason = "a page may have megabytes, and keys must not wait for them"
            )]
            let read = tokio::task::spawn_blocking(move || {
                let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
                events.collect()
            });
            Some(Outcome::Page(wanted, read.await.unwrap_or_default(), page.head))
        });
    }

    /// The images of an event, in Base64; or why there are none.
    pub(crate) async fn images(&self, seq: Seq) -> Result<Vec<String>, String> {
        let params = ExportParams {
            session: self.session.clone(),
            after_seq: seq.saturating_sub(1),
            limit: 1,
        };
        let page = self.client.export(&params).await;
        let page = page.map_err(|error| Fault::from(error).message)?;
        let event = page
            .lines
            .first()
            .and_then(|line| serde_json::from_str(line).ok());
        Ok(event.as_ref().map(images_of).unwrap_or_default())
    }

    /// Reads the session's row and those of its parent and its sub-agents.
    pub(crate) fn family(&self) {
        let (client, session) = (self.client.clone(), self.session.clone());
        self.start(async move {
            // Without an answer, what is shown stays.
            Some(Outcome::Family(
                family(&client, &session).await.unwrap_or_default(),
            ))
        });
    }

    /// Finds files of a directory of this machine.
    pub(crate) fn files(&self, workdir: &str, of: String) {
        let folder = PathBuf::from(workdir);
        self.start(async move {
            let found = proposals(&folder, &of).await;
            Some(Outcome::Files(of, found))
        });
    }
}

/// The lines of a question, as the daemon renders them for every face; or why there are none.
pub(crate) async fn question(client: &Client, approval: ApprovalId) -> Result<Box<ApprovalQuestion>, String> {
    let params = ApprovalQuestionParams {
        approval: approval.to_string(),
    };
    let question = client.approval_question(&params).await;
    question.map(Box::new).map_err(|error| Fault::from(error).message)
}

/// The tree in the order in which it is shown. Sub-agents that have ended are not part of it.
async fn family(client: &Client, session: &str) -> Result<Vec<Branch>, ClientError> {
    let mut rows = Vec::new();
    let row = client.get(session).await?;
    if let Some(parent) = row.parent
        && let Ok(row) = client.get(&parent.to_string()).await
    {
        rows.push(Branch { depth: 0, row });
    }
    let mut next = vec![Branch {
        depth: rows.len(),
        row,
    }];
    while let Some(branch) = next.pop() {
        for child in branch.row.children.iter().rev() {
            // One that ends meanwhile may be gone.
            if rows.len() + next.len() < FAMILY
                && let Ok(row) = client.get(&child.to_string()).await
            {
                let depth = branch.depth + 1;
                next.push(Branch { depth, row });
            }
        }
        rows.push(branch);
    }
    Ok(rows)
}

fn images_of(event: &Event) -> Vec<String> {
    let in_block = |block: &Block| match block {
        Block::Image {
            source: ImageSource::Data(data),
            ..
        } => Some(data.clone()),
        _ => None,
    };
    if let EventBody::InputAccepted(input) = &event.body {
        return input.content.iter().filter_map(in_block).collect();
    }
    let EventBody::ToolFinished(call) = &event.body else {
        return Vec::new();
    };
    let media = call.outcome.media.iter();
    let data = media.filter_map(|media| media.get("data")?.as_str().map(str::to_owned));
    data.collect()
}

fn failed(fault: Fault) -> Outcome {
    let hint = fault.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    Outcome::Failed(one_line(&format!("{}{hint}", fault.message), 400))
}

async fn proposals(workdir: &Path, of: &str) -> Vec<Proposal> {
    let (folder, beginning) = of
        .rsplit_once('/')
        .map_or(("", of), |(folder, name)| (folder, name));
    let Ok(mut entries) = tokio::fs::read_dir(workdir.join(folder)).await else {
        return Vec::new();
    };
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next_entry().await {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let hidden = name.starts_with('.') && !beginning.starts_with('.');
        if hidden || !name.starts_with(beginning) || found.len() >= FILES {
            continue;
        }
        let is_folder = entry.file_type().await.is_ok_and(|kind| kind.is_dir());
        let slash = if folder.is_empty() { "" } else { "/" };
        let end = if is_folder { "/" } else { "" };
        found.push(Proposal {
            text: format!("@{folder}{slash}{name}{end}"),
            help: if is_folder { "directory" } else { "" }.to_owned(),
        });
    }
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found
}
