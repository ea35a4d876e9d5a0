//! `workspace`: the workspaces of sessions.

use crate::cli::{WorkspacePruneArgs, WorkspaceVerb};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, age, clean};
use agentd_protocol::{Timestamp, WorkspaceListParams, WorkspacePruneParams, WorkspaceRow};

impl Row for WorkspaceRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("session", 0),
            Column::text("name", 1, 20),
            Column::whole("state", 0),
            Column::whole("kind", 0),
            Column::whole("age", 1),
            Column::whole("size", 0),
            Column::text("not fetched", 0, 28),
            Column::text("source", 2, 30),
        ];
        if wide {
            columns.push(Column::whole("base", 3));
            columns.push(Column::text("path", 4, 60));
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let mut cells = vec![
            self.session.short(),
            clean(self.name.as_deref().unwrap_or_default()).into_owned(),
            self.state.clone(),
            self.workspace.kind.to_string(),
            age(self.made_at, now),
            self.bytes.map(size).unwrap_or_default(),
            clean(self.unfetched.as_deref().unwrap_or_default()).into_owned(),
            clean(&self.workspace.source).into_owned(),
        ];
        if wide {
            let base = self.workspace.base.as_deref().unwrap_or_default();
            cells.push(base.chars().take(12).collect());
            cells.push(clean(&self.workspace.path).into_owned());
        }
        cells
    }

    fn name(&self) -> String {
        self.session.to_string()
    }
}

pub(crate) async fn workspace(ctx: &mut Ctx, verb: WorkspaceVerb) -> Result<Exit, Failure> {
    let measure = match verb {
        WorkspaceVerb::Ls => false,
        WorkspaceVerb::Du => true,
        WorkspaceVerb::Prune(args) => return prune(ctx, args).await,
    };
    let rows = ctx
        .connect()
        .await?
        .workspaces(&WorkspaceListParams { measure })
        .await?;
    ctx.out.list(&rows)?;
    if measure {
        let total: u64 = rows.iter().filter_map(|row| row.bytes).sum();
        let s = if rows.len() == 1 { "" } else { "s" };
        ctx.out
            .status(&format!("{} workspace{s}: {}", rows.len(), size(total)));
    }
    Ok(Exit::OK)
}

async fn prune(ctx: &mut Ctx, args: WorkspacePruneArgs) -> Result<Exit, Failure> {
    let dry_run = args.dry_run;
    let params = WorkspacePruneParams {
        sessions: args.sessions,
        days: args.days,
        force: args.force,
        dry_run,
    };
    let pruned = ctx.connect().await?.prune(&params).await?;
    ctx.out.list(&pruned.removed)?;
    for kept in &pruned.kept {
        let reason = clean(&kept.reason).into_owned();
        ctx.out
            .status(&format!("{} stays: {reason}", kept.session.short()));
    }
    let what = if dry_run { "would be removed" } else { "removed" };
    let count = pruned.removed.len();
    let s = if count == 1 { "" } else { "s" };
    ctx.out.status(&format!("{count} workspace{s} {what}"));
    Ok(if pruned.kept.is_empty() || args.force {
        Exit::OK
    } else {
        Exit::CONFLICT
    })
}

/// `1.4 GB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 9_995 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if tenths < 100 {
        return format!("{}.{} {name}", tenths / 10, tenths % 10);
    }
    format!("{} {name}", tenths / 10)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        let shown = [0, 999, 1_000, 9_900, 12_345, 1_500_000, 2_000_000_000].map(size);
        assert_eq!(
            shown,
            ["0 B", "999 B", "1.0 kB", "9.9 kB", "12 kB", "1.5 MB", "2.0 GB"]
        );
    }
}
