//! Daemons that share a database, a model server and working directories.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::postgres::session;
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_process_tests::Postgres;
use agentd_tests::{Daemon, DaemonOptions, check_effects, check_log};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Daemons, and what they share.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<Daemon>,
    pub(crate) server: Postgres,
    url: String,
    shared: TempDir,
    pub(crate) model: ModelServer,
    /// The most model calls at once, if limited.
    calls: Option<u32>,
    /// More settings.
    config: String,
}

impl Fleet {
    /// Starts nodes with a lease of 2 s. `None`: PostgreSQL is not installed, which is reported.
    pub(crate) async fn start(test: &str, nodes: usize) -> Option<Self> {
        Self::begin(test, nodes, None, "").await
    }

    /// The same with more settings.
    pub(crate) async fn with_config(test: &str, nodes: usize, config: &str) -> Option<Self> {
        Self::begin(test, nodes, None, config).await
    }

    /// The same, with a provider that may have this many calls at once.
    pub(crate) async fn limited(test: &str, nodes: usize, calls: Option<u32>) -> Option<Self> {
        Self::begin(test, nodes, calls, "").await
    }

    async fn begin(test: &str, nodes: usize, calls: Option<u32>, config: &str) -> Option<Self> {
        let server = Postgres::own(test)?;
        let url = server.create("fleet").url;
        let mut fleet = Self {
            nodes: Vec::new(),
            server,
            url,
            shared: tempfile::tempdir().unwrap(),
            model: ModelServer::start(false).await.unwrap(),
            calls,
            config: config.to_owned(),
        };
        for number in 0..nodes {
            let mut node = fleet.launch(&format!("node{number}"));
            assert!(node.ready_or_over().await, "{}", node.said());
            fleet.nodes.push(node);
        }
        Some(fleet)
    }

    fn options(&self, name: &str) -> DaemonOptions {
        let model_url = self.model.url();
        let limited = self.calls.map(|calls| {
            format!(
                "[providers.limited]\ndialect = \"anthropic\"\nbase_url = \"{model_url}\"\nmax_concurrent = {calls}\n\
                 credentials = [{{ name = \"main\", env = \"AGENTD_TEST_KEY\" }}]\n\
                 [models.limited]\nprovider = \"limited\"\nmodel = \"claude-test\"\n"
            )
        });
        let default = if limited.is_some() { "limited" } else { "claude" };
        DaemonOptions {
            model_url: Some(model_url),
            config: format!(
                "[store]\nurl = \"{}\"\n[node]\nname = \"{name}\"\nttl = \"2s\"\n[model]\ndefault = \"{default}\"\n\
                 [permission]\nmode = \"yolo\"\n{}{}",
                self.url,
                limited.unwrap_or_default(),
                self.config
            ),
            ..DaemonOptions::default()
        }
    }

    /// Starts a node in a directory of its own, without waiting.
    pub(crate) fn launch(&self, name: &str) -> Daemon {
        Daemon::launch(Arc::new(tempfile::tempdir().unwrap()), self.options(name))
    }

    /// A working directory that all nodes have.
    pub(crate) fn workdir(&self, name: &str) -> PathBuf {
        let dir = self.shared.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// A session on a node; returns its id.
    pub(crate) async fn session(&self, node: usize, name: &str, words: &str) -> String {
        let workdir = self.workdir(name).display().to_string();
        session(&self.nodes[node], &workdir, words).await
    }

    /// What `agentctl nodes` says of each node.
    pub(crate) async fn rows(&self) -> serde_json::Value {
        let listed = self.nodes[1].agentctl(&["nodes", "-o", "json"]).await;
        serde_json::from_str(&listed.stdout).unwrap()
    }

    pub(crate) async fn client(&self, node: usize) -> Client {
        self.nodes[node].client().await
    }

    /// The log file of a node.
    pub(crate) fn log(&self, node: usize) -> String {
        std::fs::read_to_string(self.nodes[node].data_dir().join("logs/agentd.log")).unwrap_or_default()
    }

    /// I4: no command of the session ran twice.
    pub(crate) async fn check_marks(&self, client: &Client, id: &str, name: &str) {
        let events = check_log(client, id).await;
        check_effects(&events, &self.workdir(name).join("marks"));
    }
}
