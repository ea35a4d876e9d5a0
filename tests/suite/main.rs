//! The end-to-end tests, one binary: real daemons, real commands, a model server on loopback.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "these are tests; the lints' own exception for tests does not reach their support functions"
)]

mod aimock;
mod asking;
mod backups;
mod bad_input;
mod bench;
mod beside;
mod calls_in_text;
mod cancel;
mod checkpoints;
mod clients;
mod cluster;
mod commands;
mod conditions;
mod context;
mod cuts;
mod damage;
mod demo;
mod disk;
mod faults;
mod fleet;
mod frozen;
mod fullscreen;
mod golden;
mod herd;
mod history;
mod hooks;
mod http;
mod idempotency;
mod inheriting;
mod jobs;
mod large_results;
mod leaving;
mod long_life;
mod lost_files;
mod matrix;
mod mcp;
mod migrations;
mod model_faults;
mod model_trouble;
mod moving;
mod no_model;
mod operator;
mod orphans;
mod page;
mod parsing;
mod patch;
mod people;
mod played;
mod policy;
mod postgres;
mod prompt;
mod questions;
mod queue;
mod reconnect;
mod redteam;
mod reload;
mod reminders;
mod remote;
mod requests;
mod sandbox;
mod screen_fleet;
mod screen_looks;
mod screen_session;
mod screens;
mod search;
mod secrets;
mod self_approval;
mod stage;
mod strays;
mod subagents;
mod terminals;
mod tokens;
mod tree_files;
mod typed_answers;
mod upgrade;
mod verbs;
mod viewers;
mod workspaces;
mod workspaces_fetched;
mod workspaces_kept;

use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, EventBody, PermissionMode};
use agentd_tests::{Daemon, DaemonOptions, Follower};

/// All calls run unless a rule denies them.
const YOLO: &str = "[model]\ndefault = \"claude\"\n[permission]\nmode = \"yolo\"\n";
/// Commands need an approval.
const ASKING: &str = "[model]\ndefault = \"claude\"\n";

/// A daemon on a model server.
async fn daemon(server: &ModelServer, config: &str) -> Daemon {
    Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: config.to_owned(),
        ..DaemonOptions::default()
    })
    .await
}

/// A session whose conversation follows `plan`; returns its id.
async fn session(daemon: &Daemon, client: &Client, plan: &str) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text(plan)]),
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    client
        .create(&params)
        .await
        .expect("the session is created")
        .session
        .to_string()
}

/// A session at rest in mode default, whose one call waits for a person; returns its id.
async fn asks(daemon: &Daemon, client: &Client) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:asks steps=1 command=echo_hi;")]),
        workdir: daemon.workdir("asks"),
        mode: Some(PermissionMode::Default),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.expect("the session is created");
    let session = session.session.to_string();
    Follower::attach(client, &session)
        .await
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    session
}

/// Every file of the suite is a module: a forgotten one would test nothing.
#[test]
fn no_test_file_is_forgotten() {
    let text = include_str!("main.rs");
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if name == "snapshots" {
            continue;
        }
        let name = name.trim_end_matches(".rs");
        assert!(
            name == "main" || text.contains(&format!("\nmod {name};")),
            "{name}.rs is not in main.rs"
        );
    }
}
