//! `config view`: the settings of the running daemon, or else those that a daemon started here would have.

use crate::cli::ConfigVerb;
use crate::ctx::Ctx;
use crate::dial::Chosen;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::clean;
use agentd_client::Client;
use agentd_protocol::Fault;
use agentd_settings::{Loaded, Shown, Sources, load};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The JSON shape of `config view`.
#[derive(Debug, Serialize)]
struct View<'a> {
    settings: &'a toml::Table,
    #[serde(skip_serializing_if = "Option::is_none")]
    origins: Option<&'a BTreeMap<String, String>>,
}

pub(crate) async fn config(ctx: &mut Ctx, verb: ConfigVerb) -> Result<Exit, Failure> {
    let ConfigVerb::View { show_origin, config } = verb;
    let shown = match config {
        Some(file) => loaded(ctx, Some(file))?.shown(),
        None => in_use(ctx).await?,
    };
    if ctx.out.human() {
        let text = shown.text(show_origin);
        let text = if ctx.out.terminal.stdout {
            clean(&text).into_owned()
        } else {
            text
        };
        ctx.out.raw(text.as_bytes())?;
    } else {
        ctx.out.value(&View {
            settings: &shown.settings,
            origins: show_origin.then_some(&shown.origins),
        })?;
    }
    Ok(Exit::OK)
}

/// The settings of the running daemon. If none answers and none was named, the settings of one started here.
async fn in_use(ctx: &mut Ctx) -> Result<Shown, Failure> {
    let failure = match ctx.connect().await {
        Ok(client) => match of_daemon(&client).await {
            Ok(shown) => return Ok(shown),
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    let fault = failure.fault();
    let named = ctx.dial()?.chosen == Chosen::Named;
    let why = match fault.code.as_str() {
        "daemon_unreachable" if !named => "no daemon answers",
        "unknown_method" => "the daemon is too old to report its settings",
        _ => return Err(failure),
    };
    let shown = loaded(ctx, None)?.shown();
    ctx.out.status(&format!(
        "{why}; showing the settings that a daemon started here would use"
    ));
    Ok(shown)
}

/// The settings of the connected daemon.
pub(crate) async fn of_daemon(client: &Client) -> Result<Shown, Failure> {
    let told = client.config().await?;
    serde_json::from_value(told).map_err(|error| {
        let message = format!("cannot parse the daemon's settings: {error}");
        Fault::version("bad_answer", message)
            .hint("upgrade the older program")
            .into()
    })
}

/// The settings as `agentd` would load them in this environment.
pub(crate) fn loaded(ctx: &Ctx, file: Option<PathBuf>) -> Result<Loaded, Failure> {
    let sources = Sources {
        environment: ctx.environment.all(),
        ..Sources::standard(ctx.environment.config_home().as_deref(), file)
    };
    load(&sources).map_err(|error| {
        let fault = Fault::invalid("bad_config", error.to_string());
        fault.hint("check the fix with `agentd --check-config`").into()
    })
}
