//! The work of daemons when a fault hits. Each scenario can be restarted at any point: its commands have keys, or check
//! first whether they were carried out.

use super::world::{World, log, over, text};
use super::{destroyed, fetched};
use agentd_client::Client;
use agentd_protocol::{
    Block, CancelTurnParams, CreateParams, DecideParams, Decision, Event, EventBody, ForkParams,
    LifecycleParams, PermissionMode, RewindParams, SendParams, SessionParams, ToolStatus, UndoParams,
    WorkspaceChoice, WorkspaceListParams, WorkspacePruneParams, WorkspaceRequest,
};
use agentd_tests::{git, tool_server, tool_servers};
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The current activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Three commands.
    Commands,
    /// A command that needs an approval, with a hook before it and a webhook.
    Approval,
    /// A turn that is cancelled while its model answers.
    Cancel,
    /// Files are written, a change is undone, the conversation goes back.
    History,
    /// A command destroys files, and that is undone.
    Destroyed,
    /// Work is applied and branched; a lost workspace is made again.
    Fetched,
    /// A conversation becomes shorter.
    Compaction,
    /// A session leaves memory, comes back for another turn, is forked and closed.
    Cold,
    /// A session gets a worktree, works in it, is closed, and the worktree is removed.
    Workspaces,
    /// A tool of a server is called.
    Servers,
}

/// Writes a file and changes it.
const WRITES: &str = r#"
[[turn]]
calls = [{ name = "Write", input = { file_path = "a.txt", content = "one\n" } }]
[[turn]]
calls = [{ name = "Edit", input = { file_path = "a.txt", old_string = "one", new_string = "two" } }]
[[turn]]
text = "Written."
"#;

const CALLS_A_SERVER: &str = "[[turn]]\ncalls = [{ name = \"mcp__all__echo\", input = { message = \"hi\" } }]\n\
                              [[turn]]\ntext = \"Called.\"\n";

impl Scenario {
    /// The settings it needs.
    pub(super) async fn config(self, dir: &Path) -> String {
        let base =
            "[model]\ndefault = \"claude\"\n[retry]\nbase_ms = 10\n[node]\nidle_passivate = \"100ms\"\n";
        let more = match self {
            Self::Commands | Self::Cancel | Self::Cold | Self::Workspaces => String::new(),
            Self::Approval => {
                let hook = "{ name = \"see\", event = \"PreToolUse\", command = [\"/bin/true\"] }";
                let url = receiver().await;
                format!("[hooks]\nrun = [{hook}]\n[permission.webhook]\nurl = \"{url}\"\n")
            }
            Self::History => played(dir, WRITES),
            Self::Destroyed => format!(
                "[workspace]\ncheckpoint = \"step\"\n{}",
                played(dir, destroyed::SCRIPT)
            ),
            Self::Fetched => fetched::CONFIG.to_owned(),
            Self::Compaction => "[context]\nkeep_recent_tokens = 1000\n".to_owned(),
            Self::Servers => {
                let servers = tool_servers("the fault matrix").expect("looked at before");
                format!(
                    "[permission]\nrules = [{{ allow = \"mcp__*\" }}]\n[mcp]\nready_within = \"25s\"\n[mcp.servers.all]\n\
                     command = [\"node\", {:?}, \"stdio\"]\nread = [{servers:?}]\nstart_timeout = \"60s\"\n{}",
                    tool_server(&servers, "everything"),
                    played(dir, CALLS_A_SERVER)
                )
            }
        };
        format!("{base}{more}")
    }

    /// Whether its turn is meant to end early.
    pub(super) const fn cancels(self) -> bool {
        matches!(self, Self::Cancel)
    }

    /// Plays it, as often as needed. Returns the sessions that it made.
    pub(super) async fn play(self, world: &mut World) -> Vec<String> {
        match self {
            Self::Commands => {
                let plan = "plan:main steps=3 command=echo_{n}_>>_marks;";
                let session = world.create("main", plan, |_| {}).await;
                world.turns(&session, 1).await;
                vec![session]
            }
            Self::Approval => approval(world).await,
            Self::Cancel => cancel(world).await,
            Self::History => history(world).await,
            Self::Destroyed => destroyed::play(world).await,
            Self::Fetched => fetched::play(world).await,
            Self::Compaction => compaction(world).await,
            Self::Cold => cold(world).await,
            Self::Workspaces => workspaces(world).await,
            Self::Servers => {
                let session = world.create("main", "go", on_script).await;
                world.turns(&session, 1).await;
                vec![session]
            }
        }
    }
}

fn played(dir: &Path, script: &str) -> String {
    let path = dir.join("script.toml");
    std::fs::write(&path, script).expect("a script can be written");
    format!(
        "[models.played]\nprovider = \"scripted\"\nmodel = \"{}\"\n",
        path.display()
    )
}

pub(super) fn on_script(params: &mut CreateParams) {
    params.model = Some("played".to_owned());
}

/// A program that accepts every webhook.
async fn receiver() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/asked", listener.local_addr().expect("it is bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut some = [0; 4096];
                // Errors of a sender that disconnects do not matter here.
                let _ = stream.read(&mut some).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            });
        }
    });
    url
}

async fn approval(world: &mut World) -> Vec<String> {
    let plan = "plan:main steps=1 command=echo_{n}_>>_marks;";
    let asked = |params: &mut CreateParams| params.mode = Some(PermissionMode::Default);
    let session = world.create("main", plan, asked).await;
    let decided = world
        .reach("the question is answered", async |client| {
            answer(client, &session).await
        })
        .await;
    let log = world.turns(&session, 1).await;
    if let Some(decided) = decided {
        world.promise(decided.session, decided.seq, "approval.decided");
        let marks = std::fs::read_to_string(world.workdir("main").join("marks"));
        let denied = log.iter().any(|event| match &event.body {
            EventBody::ToolFinished(done) => done.outcome.status != ToolStatus::Ok,
            _ => false,
        });
        assert!(denied || marks.is_ok(), "I1: what was allowed is done");
    }
    vec![session]
}

/// Allows the open approval; does nothing if the turn ended without one or another client has answered.
async fn answer(client: &Client, session: &str) -> Result<Option<agentd_protocol::Decided>, String> {
    let row = client.get(session).await.map_err(text)?;
    let Some(open) = row.open_approvals.first() else {
        let events = log(client, session).await?;
        let decided = |event: &Event| {
            matches!(
                event.body,
                EventBody::ApprovalDecided(_) | EventBody::TurnFinished(_)
            )
        };
        return match events.iter().any(decided) {
            true => Ok(None),
            false => Err("nothing is asked yet".to_owned()),
        };
    };
    let params = DecideParams {
        approval: open.approval.to_string(),
        decision: Some(Decision::Allow),
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&params).await.map(Some).map_err(text)
}

async fn cancel(world: &mut World) -> Vec<String> {
    let plan = "plan:main steps=2 hang=1 command=echo_{n}_>>_marks;";
    let session = world.create("main", plan, |_| {}).await;
    world
        .reach("the turn is cancelled", async |client| {
            let events = log(client, &session).await?;
            if events.iter().any(|event| event.body.kind() == "turn.finished") {
                return Ok(());
            }
            let asked = events.iter().filter(|event| event.body.kind() == "model.started");
            if asked.count() < 2 {
                return Err("the model is not asked a second time yet".to_owned());
            }
            let params = CancelTurnParams {
                session: session.clone(),
                ..CancelTurnParams::default()
            };
            client.cancel_turn(&params).await.map_err(text)?;
            Err("it is being cancelled".to_owned())
        })
        .await;
    world.turns(&session, 1).await;
    vec![session]
}

pub(super) fn has(events: &[Event], kind: &str) -> bool {
    events.iter().any(|event| event.body.kind() == kind)
}

/// A key for this try: with the key of a failed try, its failure would be returned again.
pub(super) fn tried(what: &str, events: &[Event]) -> String {
    let failed = events
        .iter()
        .filter(|event| event.body.kind() == "history.failed");
    format!("{what} {}", failed.count())
}

async fn history(world: &mut World) -> Vec<String> {
    let session = world.create("main", "go", on_script).await;
    world.turns(&session, 1).await;
    let file = world.workdir("main").join("a.txt");
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(read(), "two\n");
    world
        .reach("the change is undone", async |client| {
            let events = over(client, &session, 1).await?;
            if has(&events, "undo.applied") {
                return Ok(());
            }
            let params = UndoParams {
                session: session.clone(),
                key: Some(tried("undo", &events)),
                ..UndoParams::default()
            };
            client.undo(&params).await.map(drop).map_err(text)
        })
        .await;
    assert_eq!(read(), "one\n", "I4: one change is undone, and no more");
    world
        .reach("the conversation goes back", async |client| {
            let events = over(client, &session, 1).await?;
            if has(&events, "session.rewound") {
                return Ok(());
            }
            let input = events.iter().find(|event| event.body.kind() == "input.accepted");
            let params = RewindParams {
                session: session.clone(),
                at: input.map_or(1, |event| event.seq),
                files: true,
                key: Some(tried("rewind", &events)),
                ..RewindParams::default()
            };
            client.rewind(&params).await.map(drop).map_err(text)
        })
        .await;
    assert!(!file.exists(), "I4: the files are as before the turn");
    vec![session]
}

async fn compaction(world: &mut World) -> Vec<String> {
    let plan = "plan:main steps=3 command=seq_1_3000_&&_echo_{n}_>>_marks;";
    let session = world.create("main", plan, |_| {}).await;
    for turn in 1..=3 {
        world.turns(&session, turn).await;
        send(world, &session, turn + 1).await;
    }
    world.turns(&session, 4).await;
    world
        .reach("the conversation is shorter", async |client| {
            let events = over(client, &session, 4).await?;
            if has(&events, "context.compacted") {
                return Ok(());
            }
            let params = SessionParams {
                session: session.clone(),
            };
            client.compact(&params).await.map_err(text)?;
            Err("it is being compacted".to_owned())
        })
        .await;
    vec![session]
}

async fn send(world: &mut World, session: &str, turn: usize) {
    let params = SendParams {
        session: session.to_owned(),
        content: vec![Block::text(format!(
            "plan:more{turn} steps=1 command=echo_more{turn}_>>_marks;"
        ))],
        key: Some(format!("send {turn}")),
        ..SendParams::default()
    };
    let sent = world
        .reach("an input is taken", async |client| {
            // A faulted session is resumed first.
            over(client, session, 1).await?;
            client.send(&params).await.map_err(text)
        })
        .await;
    let session = session.parse().expect("our id");
    world.promise(session, sent.seq, "input.accepted");
}

async fn cold(world: &mut World) -> Vec<String> {
    let session = world.create("main", "plan:main text=first;", |_| {}).await;
    world.turns(&session, 1).await;
    world
        .reach("no session is in memory", async |client| {
            let hot = client.status().await.map_err(text)?.hot;
            if hot == 0 {
                Ok(())
            } else {
                Err(format!("{hot} are"))
            }
        })
        .await;
    send(world, &session, 2).await;
    world.turns(&session, 2).await;
    let params = ForkParams {
        session: session.clone(),
        key: Some("fork".to_owned()),
        ..ForkParams::default()
    };
    let fork = world
        .reach("it is forked", async |client| {
            client.fork(&params).await.map_err(text)
        })
        .await;
    world
        .reach("it is closed", async |client| {
            let events = over(client, &session, 2).await?;
            if has(&events, "session.closed") {
                return Ok(());
            }
            let params = LifecycleParams {
                session: session.clone(),
                ..LifecycleParams::default()
            };
            client.close(&params).await.map_err(text)?;
            Err("it is being closed".to_owned())
        })
        .await;
    vec![session, fork.session.to_string()]
}

async fn workspaces(world: &mut World) -> Vec<String> {
    let app = world.workdir("main");
    git(&app, &["init", "-q"]);
    git(&app, &["commit", "-q", "--allow-empty", "-m", "one"]);
    let own = |params: &mut CreateParams| {
        params.workspace = Some(WorkspaceRequest {
            kind: Some(WorkspaceChoice::Worktree),
            ..WorkspaceRequest::default()
        });
    };
    let session = world.create("main", "plan:main text=done;", own).await;
    world.turns(&session, 1).await;
    let owners = async |client: &Client| {
        let rows = client
            .workspaces(&WorkspaceListParams::default())
            .await
            .map_err(text)?;
        Ok::<_, String>(rows.iter().map(|row| row.session.to_string()).collect::<Vec<_>>())
    };
    let own = session.clone();
    world
        .reach("only the session has a workspace", async |client| {
            let found = owners(client).await?;
            if found == [own.clone()] {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 2);
    world
        .reach("it is closed", async |client| {
            let events = over(client, &session, 1).await?;
            if has(&events, "session.closed") {
                return Ok(());
            }
            let params = LifecycleParams {
                session: session.clone(),
                ..LifecycleParams::default()
            };
            client.close(&params).await.map_err(text)?;
            Err("it is being closed".to_owned())
        })
        .await;
    world
        .reach("its workspace is removed", async |client| {
            if owners(client).await?.is_empty() {
                return Ok(());
            }
            let pruned = client
                .prune(&WorkspacePruneParams::default())
                .await
                .map_err(text)?;
            Err(format!("{pruned:?}"))
        })
        .await;
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(
        git(&app, &["branch", "--list", "agentd/*"]),
        "",
        "nothing is left in the repository"
    );
    vec![session]
}
