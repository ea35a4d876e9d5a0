//! The fault matrix: each fault point is hit by a panic, an error and `kill -9` while a real daemon passes it and
//! other sessions work at the same time. Afterwards one checker proves I1 to I6: on the logs from the protocol, on the
//! database when the daemon is gone, and on processes, files and the audit chain.
//!
//! The tables are the tests: a cell whose point is never reached fails.

mod destroyed;
mod fetched;
mod long;
mod scenarios;
mod world;

use agentd_tests::Heavy;
use futures_util::{FutureExt as _, StreamExt as _};
use scenarios::Scenario;
use std::panic::AssertUnwindSafe;
use world::World;

/// The action of a point when it is hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Panic,
    Error,
    Kill,
}

impl Action {
    const ALL: [Self; 3] = [Self::Panic, Self::Error, Self::Kill];

    const fn word(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Error => "error",
            Self::Kill => "kill",
        }
    }
}

/// One daemon, one fault.
#[derive(Debug, Clone)]
struct Cell {
    scenario: Scenario,
    point: String,
    action: Action,
    hit: u64,
}

impl Cell {
    fn faults(&self) -> String {
        format!("{}={}@{}", self.point, self.action.word(), self.hit)
    }

    fn name(&self) -> String {
        format!("{:?}: {}", self.scenario, self.faults())
    }

    async fn run(self) {
        let mut world = World::begin(&self).await;
        let sessions = self.scenario.play(&mut world).await;
        world.end(&self, &sessions).await;
    }
}

/// Cells that run at the same time. The tests of the scenarios run in parallel, too.
const AT_ONCE: usize = 2;

/// Runs all cells, and then reports which failed and how.
async fn run(cells: Vec<Cell>) {
    let _heavy = Heavy::begin().await;
    let count = cells.len();
    let one = |cell: Cell| async move {
        let name = cell.name();
        let why = AssertUnwindSafe(cell.run()).catch_unwind().await.err()?;
        let text = why.downcast_ref::<String>().cloned();
        let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Some(format!("{name}: {}", text.unwrap_or_default()))
    };
    let done: Vec<Option<String>> = futures_util::stream::iter(cells.into_iter().map(one))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let failed: Vec<String> = done.into_iter().flatten().collect();
    assert!(
        failed.is_empty(),
        "{} of {count} cells failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Each point with each action, at each of its hits.
fn cells(scenario: Scenario, points: Points) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (point, hits) in points {
        for hit in *hits {
            for action in Action::ALL {
                let point = (*point).to_owned();
                cells.push(Cell {
                    scenario,
                    point,
                    action,
                    hit: *hit,
                });
            }
        }
    }
    cells
}

/// Points, each with its hits.
type Points = &'static [(&'static str, &'static [u64])];

/// The first transaction of a daemon registers its node.
const COMMANDS: Points = &[
    ("store.before_append", &[4]),
    ("store.in_batch", &[6]),
    ("store.after_commit", &[6]),
    ("fact.before:session.created", &[1]),
    ("fact.after:session.created", &[1]),
    ("fact.before:model.finished", &[2]),
    ("fact.after:model.finished", &[2]),
    ("fact.before:tool.finished", &[1]),
    ("fact.after:tool.finished", &[3]),
    ("fact.before:turn.finished", &[1]),
    ("fact.after:turn.finished", &[1]),
    ("session.create", &[1]),
];
const CALLS: Points = &[
    ("gate.judge", &[1]),
    ("model.start", &[3]),
    ("model.first_delta", &[3]),
    ("model.answer", &[3]),
    ("tool.before_spawn", &[1]),
    ("tool.after_spawn", &[1]),
    ("tool.before_store", &[3]),
    ("audit.write", &[5]),
    ("feed.publish", &[7]),
];
const APPROVAL: Points = &[
    ("fact.before:approval.asked", &[1]),
    ("fact.after:approval.asked", &[1]),
    ("fact.before:approval.decided", &[1]),
    ("fact.after:approval.decided", &[1]),
    ("webhook.send", &[1]),
    ("webhook.note", &[3]),
    ("hook.run", &[1]),
    ("fact.before:hook.finished", &[1]),
];
const CANCEL: Points = &[
    ("session.cancel", &[1]),
    ("fact.before:model.failed", &[1]),
    ("fact.after:model.failed", &[1]),
];
const HISTORY: Points = &[
    ("fact.before:history.started", &[1, 2]),
    ("fact.after:history.started", &[1, 2]),
    ("rework.before", &[1]),
    ("rework.after", &[1]),
    ("fact.before:undo.applied", &[1]),
    ("fact.after:undo.applied", &[1]),
    ("fact.before:session.rewound", &[1]),
    ("fact.after:session.rewound", &[1]),
];
const DESTROYED: Points = &[
    ("checkpoint.write", &[1, 3]),
    ("checkpoint.written", &[2, 4]),
    ("fact.before:workspace.checkpointed", &[2]),
    ("fact.after:workspace.checkpointed", &[3]),
    ("restore.file", &[1, 3]),
    ("restore.done", &[1]),
];
const FETCHED: Points = &[
    ("files.packed", &[1, 2]),
    ("apply.noted", &[1]),
    ("restore.file", &[2]),
    ("apply.done", &[1]),
    ("branch.written", &[1]),
    ("branch.made", &[1]),
    ("files.brought", &[1]),
    ("fact.before:workspace.restored", &[1]),
    ("fact.after:workspace.restored", &[1]),
];
const COMPACTION: Points = &[
    ("fact.before:context.compacted", &[1]),
    ("fact.after:context.compacted", &[1]),
];
const COLD: Points = &[
    ("session.cold", &[1]),
    ("session.load", &[1]),
    ("fact.before:session.forked", &[1]),
    ("fact.after:session.forked", &[1]),
    ("fact.before:session.closed", &[1]),
    ("fact.after:session.closed", &[1]),
];
const WORKSPACES: Points = &[
    ("workspace.begun", &[1]),
    ("workspace.branched", &[1]),
    ("workspace.filled", &[1]),
    ("workspace.made", &[1]),
    ("session.create", &[3]),
    ("fact.before:session.created", &[3]),
    ("fact.after:session.created", &[3]),
    ("workspace.removing", &[1]),
    ("workspace.unlinked", &[1]),
    ("workspace.emptied", &[1]),
];
const SERVERS: Points = &[("mcp.before_call", &[1]), ("mcp.after_call", &[1])];

/// All tables, for tests with other hits.
const TABLES: [(Scenario, Points); 11] = [
    (Scenario::Commands, COMMANDS),
    (Scenario::Commands, CALLS),
    (Scenario::Approval, APPROVAL),
    (Scenario::Cancel, CANCEL),
    (Scenario::History, HISTORY),
    (Scenario::Destroyed, DESTROYED),
    (Scenario::Fetched, FETCHED),
    (Scenario::Compaction, COMPACTION),
    (Scenario::Cold, COLD),
    (Scenario::Workspaces, WORKSPACES),
    (Scenario::Servers, SERVERS),
];

macro_rules! matrix {
    ($($name:ident: $scenario:ident, $points:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            run(cells(Scenario::$scenario, $points)).await;
        })*
    };
}

matrix! {
    i1_i2_i3_i4_i6_faults_on_the_way_of_facts: Commands, COMMANDS;
    i3_i4_i5_i6_faults_on_the_way_of_calls: Commands, CALLS;
    i1_i3_i7_faults_while_a_person_is_asked: Approval, APPROVAL;
    i3_faults_while_a_turn_is_cancelled: Cancel, CANCEL;
    i1_i4_faults_while_files_and_conversation_go_back: History, HISTORY;
    i1_i4_faults_while_files_are_recorded_and_a_command_is_undone: Destroyed, DESTROYED;
    i1_i4_faults_while_work_is_fetched_and_a_lost_workspace_is_made_again: Fetched, FETCHED;
    i1_i2_faults_while_a_conversation_is_compacted: Compaction, COMPACTION;
    i1_i2_faults_while_sessions_come_and_go: Cold, COLD;
    i1_i2_faults_while_workspaces_come_and_go: Workspaces, WORKSPACES;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i6_faults_while_a_tool_server_is_called() {
    if agentd_tests::tool_servers("i3_i6_faults_while_a_tool_server_is_called").is_some() {
        run(cells(Scenario::Servers, SERVERS)).await;
    }
}

#[test]
fn no_fault_point_is_left_out_of_the_matrix() {
    let all = || TABLES.iter().flat_map(|(_, points)| points.iter());
    let left: Vec<&str> = agentd_fault_points::POINTS
        .into_iter()
        .filter(|name| !all().any(|(point, _)| point.split(':').next() == Some(name)))
        .collect();
    assert_eq!(left, [""; 0]);
}
