//! `config view`: the settings that a daemon started here would have.

use crate::cli::ConfigVerb;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::clean;
use agentd_protocol::Fault;
use agentd_settings::{Loaded, Sources, load};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The JSON shape of `config view`.
#[derive(Debug, Serialize)]
struct View<'a> {
    settings: &'a agentd_settings::Settings,
    #[serde(skip_serializing_if = "Option::is_none")]
    origins: Option<BTreeMap<&'a str, String>>,
}

pub(crate) fn config(ctx: &mut Ctx, verb: ConfigVerb) -> Result<Exit, Failure> {
    let ConfigVerb::View { show_origin, config } = verb;
    let loaded = loaded(ctx, config)?;
    if ctx.out.human() {
        let text = loaded.view(show_origin);
        let text = if ctx.out.terminal.stdout {
            clean(&text).into_owned()
        } else {
            text
        };
        ctx.out.raw(text.as_bytes())?;
    } else {
        let origins = loaded
            .origins
            .iter()
            .map(|(key, origin)| (key.as_str(), origin.to_string()))
            .collect();
        ctx.out.value(&View {
            settings: &loaded.settings,
            origins: show_origin.then_some(origins),
        })?;
    }
    Ok(Exit::OK)
}

/// The settings as `agentd` would load them in this environment.
pub(crate) fn loaded(ctx: &Ctx, file: Option<PathBuf>) -> Result<Loaded, Failure> {
    let sources = Sources {
        environment: ctx.environment.all(),
        ..Sources::standard(ctx.environment.config_home().as_deref(), file)
    };
    load(&sources).map_err(|error| {
        let fault = Fault::invalid("bad_config", error.to_string());
        fault
            .hint("`agentd --check-config` says whether it is mended")
            .into()
    })
}
