//! A model whose answers depend on the length of the conversation; and the results of its calls.

use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, Event, EventBody, ToolStatus};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{FaultServer, Say, Speech};
use agentd_tests::{Daemon, DaemonOptions, skipped};

/// A server whose answers depend on a request and on the number of answers in the conversation.
pub(crate) async fn model(script: impl Fn(&str, usize) -> Say + Send + Sync + 'static) -> FaultServer {
    FaultServer::start(move |asked| {
        let body = String::from_utf8_lossy(&asked.body);
        let step = body.matches("\"role\":\"assistant\"").count();
        Speech(Dialect::Anthropic).answer(&script(&body, step))
    })
    .await
}

/// A daemon on such a server.
pub(crate) async fn daemon(server: &FaultServer, config: &str) -> Daemon {
    Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: config.to_owned(),
        ..DaemonOptions::default()
    })
    .await
}

/// The same at exactly this level of the sandbox; `None` where the machine lacks it.
pub(crate) async fn daemon_at(server: &FaultServer, config: &str, level: &str) -> Option<Daemon> {
    let config = format!("{config}[sandbox]\nlevel = \"{level}\"\nrequire = \"{level}\"\n");
    let daemon = daemon(server, &config).await;
    let params = CreateParams {
        workdir: daemon.workdir("probe"),
        ..CreateParams::default()
    };
    let Err(error) = daemon.client().await.create(&params).await else {
        return Some(daemon);
    };
    let said = error.to_string();
    assert!(
        said.contains("the sandbox that the settings require is not available"),
        "{said}"
    );
    let kind = if said.contains("on the PATH") {
        ""
    } else {
        "kernel: "
    };
    skipped("jobs", &format!("{kind}{level}: {said}"));
    None
}

/// A session with this first prompt; returns its id.
pub(crate) async fn session(daemon: &Daemon, client: &Client, words: &str) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text(words)]),
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    client.create(&params).await.unwrap().session.to_string()
}

/// The results in a log, in order.
pub(crate) fn results(log: &[Event]) -> Vec<(ToolStatus, String)> {
    let result = |event: &Event| match &event.body {
        EventBody::ToolFinished(done) => Some((done.outcome.status, done.outcome.llm_text.clone())),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}
