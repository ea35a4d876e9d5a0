//! The services of a node: children of the root that are not part of the session path.

use crate::audit_log::Audit;
use crate::audit_writer::AuditWriter;
use crate::children::{ChildArgs, Handles};
use crate::error::NodeError;
use crate::fleet_log::FleetLog;
use crate::log_follower::LogFollower;
use crate::node::NodeArgs;
use crate::reload::Reloader;
use crate::rotated::Rotated;
use crate::service::{Phase, Service};
use crate::shares::Shares;
use crate::start::Opened;
use crate::usage_counter::{self, UsageCounter};
use crate::webhook_notifier::WebhookNotifier;
use agentd_actor_kit::{Clock, Traced};
use agentd_api::{Api, DailyUsage, StopRequest};
use agentd_control::{Connections, Listener};
use agentd_http::Bound;
use agentd_mcp::Pool;
use agentd_protocol::Fault;
use agentd_settings::Settings;
use agentd_store::Backend;
use agentd_webhook::Webhooks;
use agentd_workspace::Workspaces;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// How often the fleet is counted.
const MINUTE: Duration = Duration::from_secs(60);
/// How often the tokens of the fleet are read.
const SECOND: Duration = Duration::from_secs(1);

/// What works on the API: the servers of the control socket and of HTTP, if it is on, and the counter of the fleet. The
/// servers share the limit of connections.
pub(crate) fn servers(
    listener: Listener,
    socket: PathBuf,
    http: Option<Bound>,
    api: &Arc<Api>,
) -> Vec<Service> {
    let connections = Arc::new(Connections::new(Arc::clone(api)));
    let http = http.map(|bound| crate::http::server(bound, Arc::clone(api), Arc::clone(&connections)));
    std::iter::once(control(listener, socket, connections))
        .chain(http)
        .chain([counts(api)])
        .collect()
}

/// The control server. Another one after it opens the socket again.
fn control(listener: Listener, socket: PathBuf, connections: Arc<Connections>) -> Service {
    let state = (Some(listener), socket, connections);
    Service::new(
        "the control server",
        Phase::Front,
        state,
        |(listener, socket, connections), stopped| {
            Box::pin(async move {
                let opened = match listener.take() {
                    Some(opened) => Ok(opened),
                    None => agentd_control::bind(socket).await,
                };
                match opened {
                    Ok(listener) => agentd_control::serve(listener, Arc::clone(connections), stopped).await,
                    Err(error) => tracing::error!(%error, "could not open the control socket again"),
                }
            })
        },
    )
}

/// Counts the fleet each minute, for its history.
fn counts(api: &Arc<Api>) -> Service {
    let name = "the fleet counter";
    repeated(name, Phase::Last, MINUTE, api, |api| Box::pin(api.count_minute()))
}

/// Takes note of tokens that were created or revoked on other nodes, also while this node stops.
fn tokens(api: &Arc<Api>) -> Service {
    let name = "the reader of the fleet's tokens";
    repeated(name, Phase::Log, SECOND, api, |api| Box::pin(api.reread_tokens()))
}

type Called<'a> = BoxFuture<'a, Result<(), Fault>>;

/// Calls the API again and again.
fn repeated(
    name: &'static str,
    phase: Phase,
    every: Duration,
    api: &Arc<Api>,
    call: for<'a> fn(&'a Api) -> Called<'a>,
) -> Service {
    Service::new(name, phase, Arc::clone(api), move |api, _| {
        Box::pin(async move {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(fault) = call(api).await {
                    tracing::debug!(service = name, %fault, "a call failed; it will be repeated");
                }
            }
        })
    })
}

/// What a fleet needs, if there is one: takes over and gives up sessions, divides the limits of providers, reports this
/// node's load, and reads what other nodes write and which tokens there are.
pub(crate) fn of_fleet(
    opened: &Opened,
    (handles, api): (&Handles, &Arc<Api>),
    stop: &mpsc::Sender<StopRequest>,
    settings: &Settings,
) -> Vec<Service> {
    let Some(member) = &opened.member else {
        return Vec::new();
    };
    let placement = member.placement(handles.supervisor.clone(), stop.clone());
    let (feed, gate) = (handles.feed.clone(), handles.gate.clone());
    let shares = Shares {
        fleet: Arc::clone(&member.fleet),
        models: handles.models.clone(),
    };
    let log = FleetLog::new(Arc::clone(&opened.backend), feed, gate);
    vec![
        Service::new(
            "the placement of sessions",
            Phase::Last,
            placement,
            |placement, _| Box::pin(placement.run()),
        ),
        Service::new(
            "the shares of provider limits",
            Phase::Last,
            shares,
            |shares, _| Box::pin(shares.run()),
        ),
        Service::new(
            "the report of this node's load",
            Phase::Last,
            member.loads(handles, settings),
            |loads, _| Box::pin(loads.run()),
        ),
        Service::new("the reader of the fleet's log", Phase::Log, log, |log, _| {
            Box::pin(log.run())
        }),
        tokens(api),
    ]
}

/// The counter of usage by day, and what keeps its file.
pub(crate) fn usage(
    data_dir: &Path,
    handles: &Handles,
    api: &Arc<Api>,
    daily: &Arc<DailyUsage>,
) -> [Service; 2] {
    let (feed, store) = (handles.feed.clone(), handles.store.clone());
    let counter = UsageCounter(Arc::clone(daily));
    let after = Some(daily.cursor());
    let kept = (
        Arc::clone(api),
        Arc::clone(daily),
        data_dir.join(usage_counter::FILE),
    );
    [
        following(LogFollower::new(counter, feed, store, after)),
        Service::new(
            "the file of usage by day",
            Phase::Last,
            kept,
            |(api, daily, path), _| Box::pin(usage_counter::keep(api, daily, path)),
        ),
    ]
}

/// The triggers of automatic reloads: SIGHUP, and changed key files. With `leaves`, SIGHUP drains instead: a demo ends
/// with its terminal.
pub(crate) fn reloads(
    reloader: &Arc<Reloader>,
    hangup: Signal,
    leaves: Option<mpsc::Sender<StopRequest>>,
) -> [Service; 2] {
    let state = (hangup, Arc::clone(reloader), leaves);
    [
        Service::new(
            "the SIGHUP handler",
            Phase::Last,
            state,
            |(hangup, reloader, leaves), _| {
                Box::pin(crate::reload::on_hangup(hangup, reloader, leaves.as_ref()))
            },
        ),
        Service::new(
            "the monitor of key files",
            Phase::Log,
            Arc::clone(reloader),
            |reloader, _| Box::pin(reloader.watch_keys()),
        ),
    ]
}

/// Removes workspaces that nobody needs.
pub(crate) fn workspaces(all: Workspaces, of: &ChildArgs) -> Service {
    let (clock, settings) = (of.clock, of.present.settings.clone());
    let parts = (all, Arc::clone(&of.backend), settings);
    Service::new(
        "upkeep of workspaces",
        Phase::Log,
        parts,
        move |(all, backend, settings), _| {
            let upkeep = crate::workspaces::upkeep(all.clone(), Arc::clone(backend), settings.clone(), clock);
            Box::pin(upkeep)
        },
    )
}

/// The readers of the log, the upkeep of the store, the pool of tool servers, and the watch over the modes of private files.
pub(crate) fn beside(
    args: &NodeArgs,
    tool_servers: Option<Pool>,
    (handles, backend, clock): (&Handles, &Arc<dyn Backend>, Clock),
    (stages, audits): (Option<mpsc::Receiver<Traced>>, mpsc::Receiver<Value>),
) -> Result<Vec<Service>, NodeError> {
    let committed = *backend.committed().borrow();
    let modes = crate::modes::required(&args.paths.data_dir, &args.paths.socket);
    let mut services = vec![
        Service::new(
            "store maintenance",
            Phase::Log,
            Arc::clone(backend),
            move |backend, _| Box::pin(crate::upkeep::upkeep(Arc::clone(backend), clock)),
        ),
        Service::new("the monitor of file modes", Phase::Log, modes, |modes, _| {
            Box::pin(crate::modes::watch(modes))
        }),
    ];
    services.extend(tool_servers.map(|pool| {
        Service::new("the pool of tool servers", Phase::Log, pool, |pool, _| {
            Box::pin(pool.tend())
        })
    }));
    services.extend(notifier(args, handles, (committed, clock))?);
    services.extend(audit_writer(args, handles, (committed, stages, audits))?);
    Ok(services)
}

/// The webhook notifier, if the configuration names any webhook.
fn notifier(
    args: &NodeArgs,
    handles: &Handles,
    (committed, clock): (u64, Clock),
) -> Result<Option<Service>, NodeError> {
    let secret = |name: &str| args.environment.get(name).cloned();
    let webhooks = Webhooks::new(&args.loaded.settings.permission, secret, move || clock.stamp().at)?;
    let (feed, store) = (handles.feed.clone(), handles.store.clone());
    Ok(webhooks.map(|webhooks| {
        let notifier = WebhookNotifier::new(webhooks, store.clone());
        let follower = LogFollower::new(notifier, feed, store, Some(committed));
        following(follower)
    }))
}

/// The audit writer, if the configuration asks for any of its files.
fn audit_writer(
    args: &NodeArgs,
    handles: &Handles,
    (committed, stages, audits): (u64, Option<mpsc::Receiver<Traced>>, mpsc::Receiver<Value>),
) -> Result<Option<Service>, NodeError> {
    let (log, logs) = (&args.loaded.settings.log, args.paths.logs());
    let (trace, audit) = (logs.join("trace.jsonl"), logs.join("audit.jsonl"));
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error| NodeError::path(&path, error)
    };
    let trace_file = log.trace.then(|| Rotated::open(&trace, log.max_bytes, log.files));
    let trace = trace_file.transpose().map_err(of(&trace))?;
    let audit_file = log
        .audit
        .then(|| Audit::open(&audit, log.max_bytes, log.audit_files));
    let audit = audit_file.transpose().map_err(of(&audit))?;
    if trace.is_none() && audit.is_none() {
        return Ok(None);
    }
    // The file is never ahead of the log: this was checked, or the log is in memory. An audit file without lines lacks
    // all events: the daemon may have been killed before it wrote the first.
    let after = audit
        .as_ref()
        .map_or(committed, |audit| audit.cursor().unwrap_or(0).min(committed));
    let writer = AuditWriter::new(trace, audit, stages, audits);
    let (feed, store) = (handles.feed.clone(), handles.store.clone());
    Ok(Some(following(LogFollower::new(
        writer,
        feed,
        store,
        Some(after),
    ))))
}

fn following<R: crate::log_follower::LogReader + 'static>(follower: LogFollower<R>) -> Service {
    Service::new(R::NAME, Phase::Log, follower, |follower, _| {
        Box::pin(follower.run())
    })
}
