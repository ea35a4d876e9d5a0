//! The checks of `doctor`, in the order in which a new user needs them.

use crate::autostart::GET_AGENTD;
use crate::clock::now;
use crate::ctx::Ctx;
use crate::dial::Chosen;
use crate::failure::Failure;
use crate::render::{count, hanging, word};
use crate::verbs::config::{loaded, of_daemon};
use crate::verbs::doctor::Check;
use agentd_client::{Client, ClientError};
use agentd_protocol::{FailureClass, HangingFiles, ModelStatus, NodeStatus, Timestamp};
use agentd_settings::{Loaded, RuleConfig, Settings, ways_to_a_model};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;
/// With less free space the store will soon refuse to append.
const DISK_FAIL: u64 = GIB / 10;
const DISK_WARN: u64 = GIB;
/// 2025-01-01T00:00:00Z: no build of this program is older, so an earlier clock is wrong.
const NOT_BEFORE: Timestamp = Timestamp(1_735_689_600_000);

/// All checks, whether or not a daemon is running.
pub(super) async fn all(ctx: &mut Ctx) -> Vec<Check> {
    let mut checks = vec![program(ctx)];
    let settings = loaded(ctx, None);
    let (mut status, mut theirs) = (None, None);
    match ctx.connect().await {
        Ok(client) => {
            status = client.status().await.ok();
            theirs = Theirs::of(&client).await;
            checks.push(theirs.as_ref().map_or_else(|| config(&settings), Theirs::check));
            checks.extend(with_daemon(ctx, &client, status.as_ref()).await);
        }
        Err(failure) => checks.extend([config(&settings), unreachable(ctx, &failure)]),
    }
    let dir = data_dir(ctx, settings.as_ref().ok(), status.as_ref());
    checks.extend(dir.iter().flat_map(|dir| [permissions(dir), disk(dir)]));
    let found = dir.as_deref().and_then(crate::recorded::findings);
    // A running daemon may use other settings than this program reads.
    let in_use = dir
        .as_deref()
        .filter(|_| status.is_some())
        .and_then(crate::recorded::choice);
    let theirs = theirs.as_ref().map(|theirs| &theirs.settings);
    let in_force = theirs.or_else(|| settings.as_ref().ok().map(|loaded| &loaded.settings));
    let level = in_use.as_ref().and_then(|level| level.as_ref().ok()).copied();
    checks.extend(super::sandbox::checks(
        in_use,
        in_force.map(|settings| &settings.sandbox),
        found.as_ref(),
    ));
    if let (Some(level), Some(settings)) = (level, in_force) {
        let permission = &settings.permission;
        let rules = permission.builtin.iter().chain(&permission.rules);
        let rules: Vec<String> = rules.map(RuleConfig::text).collect();
        let home = ctx.environment.get("HOME").map(Path::new);
        checks.extend(super::sandbox::reading(home, &rules, level));
    }
    checks.extend(in_force.and_then(|settings| super::hooks::check(&settings.hooks)));
    checks.extend(super::programs::checks(&ctx.environment));
    checks.push(clock(now()));
    checks
}

fn program(ctx: &Ctx) -> Check {
    match ctx.environment.find_program("agentd") {
        Some(path) => Check::ok("agentd", format!("found: {}", path.display())),
        None => Check::warn(
            "agentd",
            "`agentd` is neither next to `agentctl` nor on PATH",
            GET_AGENTD,
        ),
    }
}

/// The settings of the running daemon, which may differ from those this program reads.
#[derive(Debug)]
struct Theirs {
    files: Vec<String>,
    settings: Settings,
}

impl Theirs {
    /// `None` for an older daemon, which does not report its settings.
    async fn of(client: &Client) -> Option<Self> {
        let shown = of_daemon(client).await.ok()?;
        Some(Self {
            files: shown.files,
            settings: shown.settings.try_into().ok()?,
        })
    }

    fn check(&self) -> Check {
        let message = match self.files.as_slice() {
            [] => "the daemon uses the shipped settings; it read no configuration file".to_owned(),
            files => format!("the daemon read {}", files.join(", ")),
        };
        Check::ok("config", message)
    }
}

/// Checks the settings as this program reads them.
fn config(settings: &Result<Loaded, Failure>) -> Check {
    match settings {
        Ok(loaded) => Check::ok(
            "config",
            format!(
                "valid, as read by agentctl (no daemon reports its own): {}; default model {:?}",
                count(u64::try_from(loaded.origins.len()).unwrap_or(u64::MAX), "key"),
                loaded.settings.model.default
            ),
        ),
        Err(failure) => {
            let fix = "fix these lines; `agentctl config view --show-origin` shows the result";
            Check::fail("config", failure.to_string(), fix)
        }
    }
}

fn unreachable(ctx: &Ctx, failure: &Failure) -> Check {
    let fault = failure.fault();
    let own = ctx.dial().is_ok_and(|dial| dial.chosen == Chosen::Local);
    let startable =
        own && fault.code == "daemon_unreachable" && ctx.environment.find_program("agentd").is_some();
    if startable {
        return Check::warn(
            "daemon",
            fault.message,
            "not needed: `agentctl run \"TASK\"` starts a daemon; or start `agentd` yourself",
        );
    }
    Check::fail(
        "daemon",
        fault.message,
        fault.hint.unwrap_or_else(|| GET_AGENTD.to_owned()),
    )
}

async fn with_daemon(ctx: &Ctx, client: &Client, status: Option<&NodeStatus>) -> Vec<Check> {
    let welcome = client.welcome();
    let socket = ctx
        .dial()
        .map(|dial| dial.address.to_string())
        .unwrap_or_default();
    let mut checks = vec![Check::ok(
        "daemon",
        format!("node {} answers {} on {socket}", welcome.node, welcome.principal),
    )];
    let ours = env!("CARGO_PKG_VERSION");
    checks.push(match status {
        Some(status) if status.version == ours => Check::ok(
            "protocol",
            format!("version {}; both programs are version {ours}", welcome.protocol),
        ),
        Some(status) => Check::warn(
            "protocol",
            format!(
                "version {}; agentd is {}, agentctl is {ours}",
                welcome.protocol, status.version
            ),
            "upgrade the older program",
        ),
        None => Check::fail(
            "protocol",
            "the daemon does not report its status",
            "see logs/agentd.log in its data directory",
        ),
    });
    checks.extend(status.map(|status| {
        Check::ok(
            "store",
            format!("{}, {}", status.store, count(status.sessions, "session")),
        )
    }));
    checks.extend(
        status
            .iter()
            .flat_map(|status| &status.hanging)
            .map(hanging_files),
    );
    let found = client.check_store().await;
    checks.extend(found.iter().flat_map(database));
    checks.push(damage(found));
    match client.models().await {
        Ok(models) => {
            checks.push(model(&models));
            checks.extend(refused(&models));
        }
        Err(error) => checks.push(Check::fail(
            "model",
            error.to_string(),
            "see logs/agentd.log in its data directory",
        )),
    }
    checks.extend(super::cache::checks(client).await);
    checks
}

fn hanging_files(files: &HangingFiles) -> Check {
    let fix = "check the mount (dead server, frozen disk, stopped FUSE program); its sessions continue when it responds";
    Check::fail("files", hanging(files), fix)
}

/// The settings that a database server needs.
fn database(found: &Value) -> Vec<Check> {
    let warnings = found.get("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    let check = |text: &str| {
        let (what, fix) = text.split_once("; ").unwrap_or((text, "see docs/operations.md"));
        Check::warn("database", what, fix)
    };
    warnings.map(check).collect()
}

/// Checks the store for damaged data.
fn damage(found: Result<Value, ClientError>) -> Check {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let fix = "retry; an old daemon does not support this check: upgrade it";
            return Check::warn("damage", error.to_string(), fix);
        }
    };
    let problems = found.get("problems").and_then(Value::as_array);
    let problems: Vec<&str> = problems.into_iter().flatten().filter_map(Value::as_str).collect();
    if problems.is_empty() {
        let number = |name: &str| found.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (events, sessions) = (number("events"), number("sessions"));
        let message = format!(
            "none in {} of {}",
            count(events, "event"),
            count(sessions, "session")
        );
        return Check::ok("damage", message);
    }
    let fix = "damaged data is lost: restore a backup of the data directory, or export other sessions and check the disk";
    Check::fail("damage", problems.join("; "), fix)
}

/// Checks the default model and its credential.
pub(super) fn model(models: &[ModelStatus]) -> Check {
    let add = ways_to_a_model(&Settings::default());
    match models.iter().find(|model| model.default) {
        Some(model) if model.dialect == "scripted" => Check::warn(
            "model",
            format!(
                "the default {} plays a script: it calls no language model",
                model.name
            ),
            add,
        ),
        Some(model) if model.usable && model.untried => Check::warn(
            "model",
            format!(
                "{} ({}) was not tested: its server did not answer when agentd checked, or is on another host",
                model.name, model.provider
            ),
            "start that server, then test it with `agentctl run hi`",
        ),
        Some(model) if model.usable => Check::ok(
            "model",
            format!("{} ({}): {}", model.name, model.provider, model.note),
        ),
        Some(model) => Check::fail(
            "model",
            format!("{} cannot be used: {}", model.name, model.note),
            "fix it, or set another model in model.default (`agentctl models` lists them), then restart agentd",
        ),
        None => Check::fail("model", "no default model", add),
    }
}

/// Credentials that need a person's attention.
fn refused(models: &[ModelStatus]) -> Option<Check> {
    let told = models.iter().flat_map(|model| {
        model.credentials.iter().filter_map(|credential| {
            let class = credential
                .class
                .filter(|class| matches!(class, FailureClass::Auth | FailureClass::QuotaExhausted))?;
            let (name, provider) = (&credential.name, &model.provider);
            Some(format!("{name} of {provider} ({})", word(&class)))
        })
    });
    let told: BTreeSet<String> = told.collect();
    (!told.is_empty()).then(|| {
        Check::warn(
            "credentials",
            format!("currently unusable: {}", Vec::from_iter(told).join(", ")),
            "fix the account or key (new key: agentctl daemon reload, or restart agentd), then agentctl resume SESSION",
        )
    })
}

fn data_dir(ctx: &Ctx, loaded: Option<&Loaded>, status: Option<&NodeStatus>) -> Option<PathBuf> {
    let told = status.map(|status| PathBuf::from(&status.data_dir));
    let configured = || {
        let dir = &loaded?.settings.node.data_dir;
        (!dir.is_empty()).then(|| PathBuf::from(dir))
    };
    told.or_else(configured).or_else(|| ctx.environment.data_dir())
}

/// Checks that no other user can read the data of sessions.
pub(super) fn permissions(dir: &Path) -> Check {
    match std::fs::metadata(dir) {
        Ok(meta) if meta.permissions().mode() & 0o077 == 0 => {
            Check::ok("data", format!("{} is accessible only to you", dir.display()))
        }
        Ok(meta) => Check::fail(
            "data",
            format!(
                "{} has mode {:03o}: others can read sessions",
                dir.display(),
                meta.permissions().mode() & 0o777
            ),
            format!("chmod 700 {}", dir.display()),
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Check::ok(
            "data",
            format!("{} will be created at the first start", dir.display()),
        ),
        Err(error) => Check::fail(
            "data",
            format!("{}: {error}", dir.display()),
            "change the owner of the directory to yourself",
        ),
    }
}

fn disk(dir: &Path) -> Check {
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir);
    match rustix::fs::statvfs(there) {
        Ok(facts) => free(there, facts.f_bavail.saturating_mul(facts.f_frsize)),
        Err(error) => Check::warn(
            "disk",
            format!("{}: {error}", there.display()),
            "check it with df",
        ),
    }
}

/// Rates the free space of a directory.
pub(super) fn free(dir: &Path, bytes: u64) -> Check {
    let text = format!(
        "{}.{} GiB free at {}",
        bytes / GIB,
        bytes % GIB * 10 / GIB,
        dir.display()
    );
    let fix = "free some space, or move the data with node.data_dir";
    match bytes {
        0..DISK_FAIL => Check::fail("disk", text, fix),
        DISK_FAIL..DISK_WARN => Check::warn("disk", text, fix),
        DISK_WARN.. => Check::ok("disk", text),
    }
}

/// Checks the clock: a large error breaks TLS, ids and deadlines.
pub(super) fn clock(moment: Timestamp) -> Check {
    if moment < NOT_BEFORE {
        Check::fail(
            "clock",
            format!("the clock says {moment}"),
            "set the clock, for example with timedatectl set-ntp true",
        )
    } else {
        Check::ok("clock", moment.to_string())
    }
}

#[cfg(test)]
mod tests;
