//! `top`: the fleet, live or as one frame.

use crate::cli::TopArgs;
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::fullscreen::fleet::show;
use crate::fullscreen::snapshot::{Shown, snapshot};
use crate::fullscreen::{theme, wanted};
use crate::render::{SessionRow, tidy_usd};
use crate::values;
use agentd_protocol::{FleetCounts, SortBy};
use agentd_tui::{FleetView, Snapshot, printed};
use serde::Serialize;

/// The size of a frame that is printed where no terminal says its own.
const COLUMNS: usize = 160;
/// Rows of a printed frame that show no session.
const FRAME: usize = 4;

/// One frame, for programs.
#[derive(Debug, Serialize)]
struct Fleet {
    counts: FleetCounts,
    open_approvals: usize,
    steps: u64,
    cost_usd: f64,
    sessions: Vec<SessionRow>,
}

impl From<Snapshot> for Fleet {
    fn from(shot: Snapshot) -> Self {
        let spent = shot.spent.unwrap_or_default();
        Self {
            counts: shot.counts,
            open_approvals: shot.approvals,
            steps: spent.steps,
            cost_usd: tidy_usd(spent.usd),
            sessions: shot.rows.into_iter().map(SessionRow::from).collect(),
        }
    }
}

pub(crate) async fn top(ctx: &mut Ctx, args: &TopArgs) -> Result<Exit, Failure> {
    let labels = values::selector(&args.labels);
    let once = args.once || !ctx.out.human();
    if !once && !wanted(ctx, false) {
        return Err(Failure::invalid(
            "top draws on a whole terminal",
            "for one frame: agentctl top --once; for programs: agentctl top -o json",
        ));
    }
    let client = ctx.connect().await?;
    if !once {
        let dial = ctx.dial()?;
        show(ctx, dial, client, labels).await?;
        return Ok(Exit::OK);
    }
    let shown = Shown {
        sort: SortBy::State,
        ascending: false,
        search: String::new(),
        labels,
        rows: 0,
        spent: true,
    };
    let shot = snapshot(&client, &shown).await?;
    if !ctx.out.human() {
        ctx.out.value(&Fleet::from(shot))?;
        return Ok(Exit::OK);
    }
    let columns = ctx.out.terminal.width().unwrap_or(COLUMNS);
    let rows = shot.rows.len().max(1) + FRAME;
    let mut view = FleetView::new(theme(&ctx.environment, ctx.global.color), now());
    let _ = view.refresh(shot, now());
    for line in printed(&mut view, columns, rows, now()) {
        ctx.out.line(&line)?;
    }
    Ok(Exit::OK)
}
