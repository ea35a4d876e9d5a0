//! `context`: the daemons that `--context` names.

use crate::cli::{AddContextArgs, ContextVerb};
use crate::contexts::{Address, Contexts};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, clean};
use agentd_protocol::{Fault, Timestamp};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One row of `context ls`.
#[derive(Debug, Serialize)]
struct ContextRow {
    name: String,
    current: bool,
    address: String,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl Row for ContextRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("", 0),
            Column::whole("name", 0),
            Column::text("address", 0, 20),
        ];
        if wide {
            columns.extend([Column::text("token file", 1, 20), Column::text("ca file", 2, 20)]);
        }
        columns
    }

    fn cells(&self, wide: bool, _now: Timestamp) -> Vec<String> {
        let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let mark = if self.current { "*" } else { "" };
        let mut cells = vec![mark.to_owned(), self.name.clone(), self.address.clone()];
        if wide {
            cells.extend([&self.token_file, &self.ca_file].map(|path| shown(path).unwrap_or_default()));
        }
        cells.iter().map(|cell| clean(cell).into_owned()).collect()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

pub(crate) fn contexts(ctx: &mut Ctx, verb: &ContextVerb) -> Result<Exit, Failure> {
    let mut contexts = Contexts::load(&ctx.environment)?;
    match verb {
        ContextVerb::Add(args) => add(ctx, contexts, args),
        ContextVerb::Ls => {
            let current = contexts.current;
            let rows: Vec<ContextRow> = contexts
                .contexts
                .into_iter()
                .map(|it| row(it, current.as_deref()))
                .collect();
            if rows.is_empty() && ctx.out.human() {
                ctx.out.status("there are no contexts; to add one: agentctl context add NAME https://HOST:7433 --token-file FILE");
            } else {
                ctx.out.list(&rows)?;
            }
            Ok(Exit::OK)
        }
        ContextVerb::Use { name } => {
            if let Some(name) = name {
                contexts.known(name)?;
            }
            contexts.current.clone_from(name);
            contexts.save(&ctx.environment)?;
            ctx.out.status(&match name {
                Some(name) => format!("agentctl now uses the context {name}"),
                None => "agentctl now uses the daemon of this machine".to_owned(),
            });
            Ok(Exit::OK)
        }
        ContextVerb::Rm { name } => {
            contexts.known(name)?;
            contexts.contexts.remove(name);
            contexts.current = contexts.current.filter(|current| current != name);
            contexts.save(&ctx.environment)?;
            ctx.out.status(&format!(
                "removed: {}; its token file was not deleted",
                clean(name)
            ));
            Ok(Exit::OK)
        }
    }
}

fn row((name, address): (String, Address), current: Option<&str>) -> ContextRow {
    let (token_file, ca_file) = match &address {
        Address::Socket { .. } => (None, None),
        Address::Web {
            token_file, ca_file, ..
        } => (Some(token_file.clone()), ca_file.clone()),
    };
    ContextRow {
        current: current == Some(name.as_str()),
        name,
        address: address.to_string(),
        token_file,
        ca_file,
    }
}

/// Checks the address and the files; it does not connect, so the daemon may come later.
fn add(ctx: &mut Ctx, mut contexts: Contexts, args: &AddContextArgs) -> Result<Exit, Failure> {
    let name = args.name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::invalid(
            "a context needs a name",
            "agentctl context add NAME ADDRESS",
        ));
    }
    if contexts.contexts.contains_key(name) {
        let message = format!("the context {name:?} already exists");
        let fault = Fault::conflict("context_exists", message);
        return Err(fault
            .hint(format!("to remove it: agentctl context rm {name}"))
            .into());
    }
    let address = address(args)?;
    address.remote()?;
    contexts.contexts.insert(name.to_owned(), address);
    contexts.save(&ctx.environment)?;
    ctx.out.status(&format!(
        "try it: agentctl --context {name} ps; for all commands: agentctl context use {name}"
    ));
    Ok(Exit::OK)
}

fn address(args: &AddContextArgs) -> Result<Address, Failure> {
    if args.address.contains("://") {
        let token_file = args.token_file.as_deref().ok_or_else(|| {
            let hint = "on the daemon's machine: agentctl token create NAME --scope read,steer > FILE";
            Failure::invalid("a daemon on another machine needs --token-file FILE", hint)
        })?;
        return Ok(Address::Web {
            url: args.address.clone(),
            token_file: whole(token_file)?,
            ca_file: args.ca_file.as_deref().map(whole).transpose()?,
        });
    }
    if args.token_file.is_some() || args.ca_file.is_some() {
        let hint = "write https://HOST:7433, or omit the files: a socket needs neither";
        return Err(Failure::invalid(
            format!("{:?} is the path of a socket", args.address),
            hint,
        ));
    }
    let socket = whole(Path::new(&args.address))?;
    Ok(Address::Socket { socket })
}

/// The path from the root, so that it holds wherever agentctl runs.
fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::file(path, &error))
}
