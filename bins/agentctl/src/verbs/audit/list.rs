//! `audit ls`: who did what, newest first.

use crate::cli::AuditListArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, age, clean};
use crate::values;
use agentd_protocol::{AuditLine, AuditParams, Timestamp};

/// The most lines of one request.
const PAGE: usize = 1_000;

impl Row for AuditLine {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("age", 0),
            Column::text("who", 0, 24),
            Column::whole("event", 0),
            Column::text("session", 1, 13),
            Column::text("what", 1, 60),
        ];
        if wide {
            columns.extend([Column::text("why", 2, 60), Column::whole("place", 3)]);
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let more = |key: &str| self.more.get(key).map(ToString::to_string).unwrap_or_default();
        let mut cells = vec![
            age(self.at, now),
            clean(&self.who).into_owned(),
            clean(&self.event).into_owned(),
            clean(self.session.as_deref().unwrap_or_default()).into_owned(),
            clean(&more("what")).into_owned(),
        ];
        if wide {
            cells.extend([clean(&more("why")).into_owned(), clean(&self.place).into_owned()]);
        }
        cells
    }

    fn name(&self) -> String {
        self.place.clone()
    }
}

pub(super) async fn list(ctx: &mut Ctx, args: &AuditListArgs) -> Result<Exit, Failure> {
    let example = "agentctl audit ls --since 24h";
    let mut params = AuditParams {
        who: args.who.clone(),
        event: args.event.clone(),
        session: args.session.clone(),
        since: values::since_flag(args.since.as_deref(), example)?,
        until: values::since_flag(args.until.as_deref(), example)?,
        ..AuditParams::default()
    };
    let client = ctx.connect().await?;
    let (wanted, mut lines) = (args.number, Vec::new());
    loop {
        let left = wanted.saturating_sub(lines.len()).min(PAGE);
        params.limit = u32::try_from(left).ok();
        let page = client.audit(&params).await?;
        lines.extend(page.items);
        params.before = page.next;
        if params.before.is_none() || lines.len() >= wanted {
            break;
        }
    }
    ctx.out.list(&lines)?;
    Ok(Exit::OK)
}
