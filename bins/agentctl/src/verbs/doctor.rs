//! `doctor`: what works, what does not, and how to fix it.

mod cache;
mod checks;
mod hooks;
mod programs;
mod sandbox;

use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::Column;
use agentd_protocol::Timestamp;
use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Level {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) fix: Option<String>,
}

impl Check {
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            message: message.into(),
            fix: None,
        }
    }

    pub(crate) fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Warn,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }

    pub(crate) fn fail(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Fail,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Warnings about models whose conversations read nothing from the prompt cache, each with its fix.
pub(crate) async fn unread_models(client: &agentd_client::Client) -> Vec<String> {
    let line = |check: Check| match check.fix {
        Some(fix) => format!("{}: {fix}", check.message),
        None => check.message,
    };
    cache::checks(client).await.into_iter().map(line).collect()
}

impl Row for Check {
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::whole("check", 0),
            Column::whole("level", 0),
            Column::text("message", 0, 20),
            Column::text("fix", 1, 20),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let level = crate::render::word(&self.level);
        vec![
            self.check.to_owned(),
            level,
            self.message.clone(),
            self.fix.clone().unwrap_or_default(),
        ]
    }

    fn name(&self) -> String {
        self.check.to_owned()
    }
}

pub(crate) async fn doctor(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let checks = checks::all(ctx).await;
    if ctx.out.human() {
        let text = text(ctx, &checks);
        ctx.out.raw(text.as_bytes())?;
    } else {
        ctx.out.list(&checks)?;
    }
    let failed = checks.iter().any(|check| check.level == Level::Fail);
    Ok(if failed { Exit::FAILURE } else { Exit::OK })
}

/// The output for people: messages and fixes are too long for a table.
fn text(ctx: &Ctx, checks: &[Check]) -> String {
    let paint = ctx.out.paint();
    let mut text = String::new();
    for check in checks {
        let level = match check.level {
            Level::Ok => paint.good("OK  "),
            Level::Warn => paint.warn("WARN"),
            Level::Fail => paint.bad("FAIL"),
        };
        let message = crate::render::clean(&check.message).replace('\n', "\n                 ");
        text.push_str(&format!("{level} {:<11} {message}\n", check.check));
        if let Some(fix) = &check.fix {
            text.push_str(&format!(
                "{:>16} {}\n",
                paint.dim("fix:"),
                crate::render::clean(fix)
            ));
        }
    }
    text
}
