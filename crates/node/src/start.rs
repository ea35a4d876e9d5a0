//! Creates the parts of a node from settings.

use crate::children::{ChildArgs, Handles};
use crate::error::NodeError;
use crate::fleet::Member;
use crate::node::{NodeArgs, end_orphans};
use crate::paths::Paths;
use crate::reload::Present;
use agentd_actor_kit::{Clock, Tracer};
use agentd_api::Peers;
use agentd_checkpoint::Keeper;
use agentd_file_work::FileWork;
use agentd_hooks::{Hooks, Setup, SetupArgs, SetupCommands, WardenLaunch};
use agentd_http::Bound;
use agentd_permission_gate::RuleProblem;
use agentd_prompt::Places;
use agentd_provider::{Registry as Models, client_with_certificate, demo, http_client, probe_local, resolve};
use agentd_sandbox::Environment;
use agentd_settings::{Indexing, Loaded, Origin, RuleExamples, SandboxChoice, Settings, ToolsConfig};
use agentd_store::{Backend, Joining, Mirror};
use agentd_tool_executor::ExecutorArgs;
use agentd_tools::Registry as Tools;
use agentd_workspace::Workspaces;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;

/// How long a directory may take to be as before.
const REVERT_WITHIN: Duration = Duration::from_secs(60);

/// Effectively unlimited, because nothing renews the registration: an embedded store has only one node.
const REGISTRATION: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Parses every configured permission rule and checks it against its examples. The built-in rules were checked at build
/// time.
///
/// # Errors
/// The problems, with file and line.
pub fn check_rules(loaded: &Loaded, environment: &BTreeMap<String, String>) -> Result<(), NodeError> {
    let home = environment.get("HOME").map(String::as_str);
    let mut rules = loaded.settings.permission.clone();
    if let Some(Origin::Shipped(_)) = loaded.origins.get("permission.builtin") {
        for rule in &mut rules.builtin {
            rule.examples = RuleExamples::default();
        }
    }
    let problems = agentd_permission_gate::check_rules(&rules, home);
    let line = |problem: &RuleProblem| {
        let list = problem.key.split('[').next().unwrap_or_default();
        let origin = loaded
            .origins
            .get(&problem.key)
            .or_else(|| loaded.origins.get(list));
        let origin = origin.map(|origin| format!("{origin}: ")).unwrap_or_default();
        format!("{origin}{}: {}", problem.key, problem.what)
    };
    if problems.is_empty() {
        return Ok(());
    }
    Err(NodeError::Rules(
        problems.iter().map(line).collect::<Vec<_>>().join("\n"),
    ))
}

/// The parts on which everything else depends.
pub(crate) struct Opened {
    pub(crate) backend: Arc<dyn Backend>,
    /// The HTTP client of all model calls.
    pub(crate) http: reqwest::Client,
    /// The HTTP client of requests to other nodes.
    of_nodes: reqwest::Client,
    /// The membership in a fleet, if the store can have one.
    pub(crate) member: Option<Member>,
}

impl Opened {
    /// Opens the store and reads the root certificates in parallel: both are slow, and neither needs the other.
    #[expect(clippy::disallowed_methods, reason = "no session works yet")]
    pub(crate) async fn open(
        args: &NodeArgs,
        settings: &Arc<Settings>,
        bound: Option<&Bound>,
    ) -> Result<Self, NodeError> {
        let (paths, accept_loss) = (&args.paths, args.accept_loss);
        let of_http = Arc::clone(settings);
        let http = tokio::task::spawn_blocking(move || http(&of_http));
        let backend = crate::database::open(args, &settings.store).await?;
        let (of_check, of_store, logs) = (Arc::clone(&backend), Arc::clone(settings), paths.logs());
        let now = agentd_store::Clock::system().now();
        let check = move || crate::lost::check(&of_store, &logs, of_check.as_ref(), accept_loss, now);
        joined(tokio::task::spawn_blocking(check).await)??;
        let member = Member::join(
            &backend,
            joining(settings, &crate::http::url(bound)),
            &paths.data_dir,
            Clock::System,
        )
        .await?;
        if member.is_none() {
            end_orphans(&paths.data_dir).await?;
            backend.register_node(&node_name(settings), REGISTRATION).await?;
        }
        let http = joined(http.await)??;
        Ok(Self {
            backend,
            of_nodes: of_nodes(settings).await?.unwrap_or_else(|| http.clone()),
            http,
            member,
        })
    }
}

/// The client that shows the certificate of this node to other nodes, if they need one.
async fn of_nodes(settings: &Settings) -> Result<Option<reqwest::Client>, NodeError> {
    let files = &settings.http.tls;
    if files.nodes.is_empty() {
        return Ok(None);
    }
    let read = async |path: &str| {
        let path = Path::new(path);
        tokio::fs::read(path)
            .await
            .map_err(|error| NodeError::path(path, error))
    };
    let mut identity = read(&files.cert).await?;
    identity.push(b'\n');
    identity.extend(read(&files.key).await?);
    let connect = Duration::from_millis(settings.retry.connect_ms);
    let client = client_with_certificate(connect, &identity, &read(&files.nodes).await?);
    let client = client.map_err(|error| NodeError::Unsupported(format!("http.tls: {error}")))?;
    Ok(Some(client))
}

/// What the node says of itself to other nodes; `address` is where it serves HTTP.
fn joining(settings: &Settings, address: &str) -> Joining {
    let address = match settings.node.address.as_str() {
        "" if address == "off" => "",
        "" => address,
        configured => configured,
    };
    Joining {
        name: node_name(settings),
        address: address.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ttl: settings.node.ttl,
        shared_paths: settings.node.shared_paths.clone(),
        labels: settings.node.labels.clone(),
        ..Joining::default()
    }
}

impl Opened {
    /// The other nodes, as the API sees them.
    pub(crate) fn peers(&self, handles: &Handles, settings: &Settings) -> Option<Arc<dyn Peers>> {
        let member = self.member.as_ref()?;
        Some(member.peers(&self.of_nodes, handles.feed.clone(), &settings.fleet))
    }
}

pub(crate) fn joined<T>(done: Result<T, JoinError>) -> Result<T, NodeError> {
    done.map_err(|error| NodeError::Unsupported(format!("a startup task failed: {error}")))
}

/// The mirror of the log into JSONL files, if one is configured.
pub(crate) fn mirror(
    settings: &Settings,
    paths: &Paths,
    backend: &Arc<dyn Backend>,
) -> Result<Option<Mirror>, NodeError> {
    let dir = &settings.store.jsonl_dir;
    if dir.is_empty() {
        return Ok(None);
    }
    Ok(Some(Mirror::start(
        Arc::clone(backend),
        &paths.data_dir.join(dir),
    )?))
}

/// The models that this node may use. Registers their secrets for redaction in logs.
pub(crate) async fn models(
    settings: &Settings,
    environment: &BTreeMap<String, String>,
    demo: Option<demo::Demo>,
    http: &reqwest::Client,
) -> Models {
    let local = probe_local(http, settings).await;
    let mut models = resolve(settings, &|name| environment.get(name).cloned(), &local);
    for secret in models.secrets() {
        agentd_text::register_secret(secret.expose());
    }
    if let Some(demo) = demo {
        let (script, why) = (demo::script(demo), "the demo's script");
        if demo.is_large() {
            models.insert_scripted(demo::LIMITED, demo::LIMITED, script.clone(), why);
        }
        models.insert_scripted_default(demo::MODEL, script, why);
    }
    models
}

/// Where agentd finds instructions, custom agents, skills and commands.
pub(crate) fn places(settings: &Settings, environment: &BTreeMap<String, String>) -> Places {
    let path = |name: &str| {
        environment
            .get(name)
            .filter(|value| !value.is_empty())
            .map(Path::new)
    };
    Places::new(&settings.agents, path("XDG_CONFIG_HOME"), path("HOME"))
}

/// The limits of tools, and the locations of skills.
fn with_skills(settings: &Settings, places: &Places) -> ToolsConfig {
    ToolsConfig {
        operator_directory: places.operator.as_ref().map(|path| path.display().to_string()),
        project_skills: places.project,
        search: settings.index.enabled != Indexing::Off,
        ..settings.tools.clone()
    }
}

pub(crate) fn http(settings: &Settings) -> Result<reqwest::Client, NodeError> {
    http_client(Duration::from_millis(settings.retry.connect_ms))
        .map_err(|e| NodeError::Unsupported(e.to_string()))
}

/// The arguments of the singletons.
pub(crate) async fn child_args(
    args: &NodeArgs,
    settings: &Arc<Settings>,
    Opened {
        backend,
        http,
        member,
        ..
    }: &Opened,
    (present, workspaces): (&Present, &Workspaces),
    (clock, stages): (Clock, Tracer),
) -> Result<ChildArgs, NodeError> {
    let executor = executor(settings, args).await?;
    let executor = crate::parsing::with_helper(executor, &args.paths)?;
    let setup = setup(settings, &executor)?;
    let servers = crate::tool_servers::pool(&settings.mcp, &args.environment, &executor)?;
    let indexer = crate::indexing::args(args, settings, http, (clock, &executor))?;
    Ok(ChildArgs {
        present: present.clone(),
        backend: Arc::clone(backend),
        http: http.clone(),
        tools: Tools::builtin(&executor.tools),
        indexer,
        servers,
        executor,
        clock,
        stages,
        subagents: Arc::default(),
        checkpoints: checkpoints(settings, args, workspaces),
        workspaces: Some(workspaces.clone()),
        setup,
        lease: member
            .as_ref()
            .map(|member| member.lease.clone())
            .unwrap_or_default(),
        home: args.environment.get("HOME").cloned(),
    })
}

/// The operator's hooks, which run in the same sandbox as a session's commands.
pub(crate) fn hooks(args: &ChildArgs) -> Hooks {
    let executor = args.executor.clone();
    let launch = WardenLaunch::new(
        executor.exe,
        executor.environment,
        executor.sandboxing,
        executor.spill_dir,
    );
    Hooks::new(&args.settings().settings.hooks, Arc::new(launch))
}

/// The commands that set up workspaces, in the sandbox of commands.
fn setup(settings: &Settings, executor: &ExecutorArgs) -> Result<Arc<dyn Setup>, NodeError> {
    let workspace = &settings.workspace;
    Ok(Arc::new(SetupCommands::new(SetupArgs {
        commands: workspace.setup.clone(),
        within: workspace.setup_limit,
        exe: executor.exe.clone(),
        environment: executor.environment.clone(),
        sandboxing: executor.sandboxing.clone(),
        bounds: executor.bounds,
        network: crate::sandboxing::network("workspace.setup_network", &workspace.setup_network)?,
        spill_dir: executor.spill_dir.clone(),
    })))
}

/// Keeps the recorded files of working directories, and begins to revert what a killed daemon was applying.
fn checkpoints(settings: &Settings, args: &NodeArgs, workspaces: &Workspaces) -> Keeper {
    let workspace = &settings.workspace;
    let limits = agentd_checkpoint::Limits {
        max_file_bytes: workspace.checkpoint_file_bytes,
        max_files: workspace.checkpoint_files,
        max_bytes: workspace.checkpoint_bytes,
    };
    let keeper = Keeper::new(&args.paths.data_dir.join("checkpoints"), limits)
        .with_git(crate::workspaces::environment(&args.environment))
        .with_workspaces(workspaces.root());
    let keeper = keeper.without(|bytes| agentd_text::redact_known_bytes(bytes.to_vec()) != bytes);
    revert_interrupted(&keeper);
    keeper
}

/// Reverts what a killed daemon was applying to directories, each in its own time.
fn revert_interrupted(keeper: &Keeper) {
    for directory in keeper.interrupted() {
        let archive = keeper.archive(&directory);
        tokio::spawn(async move {
            let files = FileWork::of_directory(&directory);
            let done = files
                .run(&directory, REVERT_WITHIN, move || archive.recover())
                .await;
            match done
                .map_err(|failed| failed.to_string())
                .and_then(|done| done.map_err(|error| error.to_string()))
            {
                Ok(()) => {
                    tracing::warn!(dir = %directory.display(), "reverted what was half applied when the daemon was killed");
                }
                Err(why) => {
                    tracing::error!(dir = %directory.display(), why, "cannot revert what was half applied");
                }
            }
        });
    }
}

/// The arguments of the tool executor.
async fn executor(settings: &Settings, args: &NodeArgs) -> Result<ExecutorArgs, NodeError> {
    let NodeArgs {
        environment,
        paths,
        sources,
        ..
    } = args;
    let spill_dir = paths.data_dir.join("spill");
    // A killed daemon leaves incomplete spill files; their results are lost.
    match std::fs::remove_dir_all(&spill_dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(NodeError::path(&spill_dir, error));
        }
        _ => {}
    }
    // Likewise a backup whose download was interrupted.
    let _ = std::fs::remove_dir_all(paths.data_dir.join(agentd_api::STAGING));
    let variables = environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let places = places(settings, environment);
    let home = environment.get("HOME").map(String::as_str);
    let within = settings.sandbox.history_limit;
    let hidden = crate::sandboxing::hidden(&settings.permission, environment, within)?;
    let protected = settings.permission.protected();
    let protected = protected.map_err(|bad| NodeError::Rules(format!("permission.unprotected: {bad}")))?;
    let protected = protected
        .with_places(crate::sandboxing::protected_places(environment, paths, sources))
        .with_denied(crate::sandboxing::denied_writes(&settings.permission, home)?)
        .keeping_git(settings.sandbox.keep_git);
    let environment =
        Environment::allowed(variables, &settings.sandbox.env).unattended(&settings.sandbox.env);
    // Without a sandbox, a command can read these settings anyway.
    let environment = if settings.sandbox.level == SandboxChoice::None {
        environment
    } else {
        environment.without_secret_settings()
    };
    Ok(ExecutorArgs {
        // Not the path of the program: an upgrade may replace that file while we run.
        exe: "/proc/self/exe".into(),
        protected: protected.clone(),
        sandboxing: crate::sandboxing::decide(&settings.sandbox, (protected, hidden), &environment, paths)
            .await?,
        bounds: crate::sandboxing::bounds(&settings.sandbox),
        network: crate::sandboxing::network("sandbox.network", &settings.sandbox.network)?,
        environment,
        spill_dir,
        map_dir: agentd_tools::map_dir(&paths.data_dir),
        search: None,
        parsers: None,
        tools: with_skills(settings, &places),
    })
}

/// The name of this node for other nodes and for users.
pub(crate) fn node_name(settings: &Settings) -> String {
    if !settings.node.name.is_empty() {
        return settings.node.name.clone();
    }
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
