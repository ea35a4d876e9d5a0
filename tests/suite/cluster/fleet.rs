//! Daemons that share a database, a model server and working directories.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::postgres::session;
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_process_tests::Postgres;
use agentd_protocol::{Fault, FaultClass, SendParams};
use agentd_tests::{
    Daemon, DaemonOptions, Heavy, Line, Link, Server, check_effects, check_log, clock_of, found,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Calls that hang do so until their node is gone, and sessions stay where they begin, also on a slow machine.
const LASTING: &str = "[retry]\nidle_ms = 1200000\n[tools]\nmax_running = 10000\n";

/// The connections and the clock of a node that a test disturbs.
pub(crate) struct Links {
    /// To the database.
    pub(crate) database: Link,
    /// From other nodes.
    pub(crate) peers: Link,
    /// The shift of its wall clock.
    clock: PathBuf,
    env: Vec<(String, String)>,
}

impl Links {
    pub(crate) fn heal(&self) {
        self.database.set(Line::Whole);
        self.peers.set(Line::Whole);
    }

    /// Shifts the clock of the node, such as by `+3600`.
    pub(crate) fn shift_clock(&self, by: &str) {
        std::fs::write(&self.clock, by).unwrap();
    }

    /// Tells the other nodes' link where the node listens now.
    pub(crate) async fn lead_to(&self, node: &Daemon) {
        let address = node.http().await;
        let address = address.trim_start_matches("http://").to_owned();
        self.peers.lead_to(Server::Tcp(address));
    }
}

/// Sends an input, which has a key, until it is accepted: the lease of a node that is gone may outlast the patience of one
/// request.
pub(crate) async fn accepted(client: &Client, params: &SendParams) {
    use FaultClass::{Busy, Conflict, Timeout, Unavailable};
    found("the input is accepted", async || {
        let Err(fault) = client.send(params).await.map_err(Fault::from) else {
            return Some(());
        };
        assert!(
            matches!(fault.class, Busy | Conflict | Timeout | Unavailable),
            "{fault}"
        );
        None
    })
    .await;
}

/// Daemons, and what they share.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<Daemon>,
    /// One for each node, or none.
    pub(crate) links: Vec<Links>,
    pub(crate) server: Postgres,
    url: String,
    shared: TempDir,
    /// Directories that count as those of one node.
    local: TempDir,
    pub(crate) model: ModelServer,
    /// The lease of a node: 4 s, or longer on a machine that starts a database slowly; half an hour if nodes are steady.
    lease: Duration,
    /// The most model calls at once, if limited.
    calls: Option<u32>,
    /// More settings.
    config: String,
    _heavy: Heavy,
}

impl Fleet {
    /// Starts nodes. `None`: PostgreSQL is not installed, which is reported.
    pub(crate) async fn start(test: &str, nodes: usize) -> Option<Self> {
        Self::begin(test, nodes, None, "").await
    }

    /// The same with more settings.
    pub(crate) async fn with_config(test: &str, nodes: usize, config: &str) -> Option<Self> {
        Self::begin(test, nodes, None, config).await
    }

    /// Starts nodes of which none is killed or stopped, with more settings: no delay costs one its lease.
    pub(crate) async fn steady(test: &str, nodes: usize, config: &str) -> Option<Self> {
        Self::begin(test, 0, None, config).await?.steadily(nodes).await
    }

    /// The same, with a provider that may have this many calls at once.
    pub(crate) async fn limited(test: &str, nodes: usize, calls: u32, config: &str) -> Option<Self> {
        Self::begin(test, 0, Some(calls), config)
            .await?
            .steadily(nodes)
            .await
    }

    async fn steadily(mut self, nodes: usize) -> Option<Self> {
        self.lease = Duration::from_secs(1_800);
        self.add(nodes).await;
        Some(self)
    }

    /// Starts nodes that know a standby of their database, too.
    pub(crate) async fn with_standby(test: &str, nodes: usize) -> Option<(Self, Postgres)> {
        let mut fleet = Self::begin(test, 0, None, "").await?;
        let standby = fleet.server.standby();
        let hosts = [&fleet.server, &standby].map(Postgres::host).join(",");
        fleet.url = format!("postgres://agentd@{hosts}/fleet?target_session_attrs=read-write");
        fleet.add(nodes).await;
        Some((fleet, standby))
    }

    /// Starts nodes whose connections and clocks can be disturbed.
    pub(crate) async fn disturbed(test: &str, nodes: usize) -> Option<Self> {
        let mut fleet = Self::begin(test, 0, None, "").await?;
        for number in 0..nodes {
            let clock = fleet.shared.path().join(format!("clock{number}"));
            let links = Links {
                database: Link::new(Some(Server::Socket(fleet.server.socket()))).await,
                peers: Link::new(None).await,
                env: clock_of(test, &clock).unwrap_or_default(),
                clock,
            };
            links.shift_clock("+0");
            let options = fleet.options_behind(&format!("node{number}"), &links);
            let mut node = Daemon::launch(Arc::new(tempfile::tempdir().unwrap()), options);
            assert!(node.ready_or_over().await, "{}", node.said());
            links.lead_to(&node).await;
            fleet.nodes.push(node);
            fleet.links.push(links);
        }
        Some(fleet)
    }

    async fn begin(test: &str, nodes: usize, calls: Option<u32>, config: &str) -> Option<Self> {
        let heavy = Heavy::begin().await;
        let begun = Instant::now();
        let server = Postgres::own(test)?;
        let lease = (begun.elapsed() * 2).max(Duration::from_secs(4));
        let url = server.create("fleet").url;
        let mut fleet = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            server,
            url,
            shared: tempfile::tempdir().unwrap(),
            local: tempfile::tempdir().unwrap(),
            model: ModelServer::start(false).await.unwrap(),
            lease,
            calls,
            config: config.to_owned(),
            _heavy: heavy,
        };
        fleet.add(nodes).await;
        Some(fleet)
    }

    async fn add(&mut self, nodes: usize) {
        for number in 0..nodes {
            let mut node = self.launch(&format!("node{number}"));
            assert!(node.ready_or_over().await, "{}", node.said());
            self.nodes.push(node);
        }
    }

    fn options_behind(&self, name: &str, links: &Links) -> DaemonOptions {
        let (database, peers) = (links.database.address(), links.peers.address());
        let url = format!("postgres://agentd@{database}/fleet?sslmode=disable");
        let options = self.options(name);
        let config = options.config.replacen(&self.url, &url, 1);
        let address = format!("[node]\naddress = \"http://{peers}\"\n");
        DaemonOptions {
            config: config.replacen("[node]\n", &address, 1),
            env: links.env.clone(),
            ..options
        }
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
                "[store]\nurl = \"{}\"\n[node]\nname = \"{name}\"\nttl = \"{}s\"\nshared_paths = [{:?}]\n\
                 labels = {{ name = \"{name}\" }}\n[model]\ndefault = \"{default}\"\n\
                 [permission]\nmode = \"yolo\"\n{LASTING}{}{}",
                self.url,
                self.lease.as_secs_f64().ceil(),
                self.shared.path().canonicalize().unwrap(),
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

    /// A working directory that counts as one of a single node.
    pub(crate) fn local(&self, name: &str) -> String {
        let dir = self.local.path().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir.canonicalize().unwrap().display().to_string()
    }

    /// A session on a node in a directory of that node; returns its id.
    pub(crate) async fn local_session(&self, node: usize, name: &str, words: &str) -> String {
        session(&self.nodes[node], &self.local(name), words).await
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
