//! Tables on terminals of several widths.

use super::*;
use crate::render::{ModelRow, SessionRow, UsageListRow, fleet_line};
use crate::verbs::tree;
use agentd_protocol::{ModelStatus, RunState, SessionId, Summary, Timestamp, UsageRow};
use serde_json::json;

const NOW: Timestamp = Timestamp(1_763_629_200_123);
const PLAIN: Paint = Paint::new(false);

fn cells(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter()
        .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
        .collect()
}

fn session(n: u8, parent: Option<SessionId>, name: &str) -> SessionRow {
    let summary: Summary = serde_json::from_value(json!({
        "session": SessionId::from_parts(NOW.0, [n; 10]), "name": name, "state": "waiting(approval)",
        "reason": "Bash: cargo test -p agentd-scheduler -- --nocapture", "since": NOW,
        "model": "claude-sonnet-5-5", "mode": "default", "workdir": "/home/ana/projects/agentd", "labels": {},
        "seq": 9, "steps": 312, "cost_usd": 12.5, "created_at": NOW, "updated_at": NOW, "parent": parent,
        "usage": {"input": 100_000, "output": 200, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        "budget": {"tokens": 0, "usd": 0.0, "time_ms": 0, "steps": 0}
    }))
    .unwrap();
    summary.into()
}

fn shown<R: crate::output::Row>(rows: &[R], wide: bool, width: Option<usize>) -> String {
    let cells: Vec<_> = rows.iter().map(|row| row.cells(wide, NOW)).collect();
    table(&R::columns(wide), &cells, width, PLAIN)
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.width()).max().unwrap()
}

#[test]
fn texts_are_cut_and_ids_are_not() {
    let columns = [Column::whole("id", 0), Column::text("what", 0, 6)];
    let rows = cells(&[&["1", "short"], &["22", "a much longer cell\nwith a second line"]]);
    assert_eq!(
        table(&columns, &rows, None, PLAIN),
        "ID  WHAT\n1   short\n22  a much longer cell with a second line\n"
    );
    assert_eq!(
        table(&columns, &rows, Some(18), PLAIN),
        "ID  WHAT\n1   short\n22  a much longer…\n"
    );
    assert_eq!(
        table(&columns, &rows, Some(5), PLAIN),
        "ID  WHAT\n1   short\n22  a muc…\n",
        "no column gets narrower than it can be read"
    );
}

#[test]
fn wide_letters_count_double() {
    let rows = cells(&[&["日本語日本語", "x"]]);
    let columns = [Column::text("a", 0, 3), Column::whole("b", 0)];
    assert_eq!(
        table(&columns, &rows, Some(10), PLAIN),
        "A        B\n日本語…  x\n"
    );
}

#[test]
fn the_least_important_columns_are_left_out_first() {
    let columns = [
        Column::whole("a", 0),
        Column::whole("b", 2),
        Column::whole("c", 1),
    ];
    let rows = cells(&[&["aaaa", "bbbb", "cccc"]]);
    let at = |width| table(&columns, &rows, Some(width), PLAIN);
    assert_eq!(at(16), "A     B     C\naaaa  bbbb  cccc\n");
    assert_eq!(at(15), "A     C\naaaa  cccc\n");
    assert_eq!(at(9), "A\naaaa\n");
}

#[test]
fn the_tables_fit_into_eighty_columns() {
    let name = "fix the flaky test of the scheduler and say why it was flaky";
    let ps = shown(&[session(1, None, name)], false, Some(80));
    assert!(widest(&ps) <= 80, "{ps}");
    for part in [
        "SESSION",
        "fix the flaky",
        "waiting(approval)",
        "Bash: car",
        "$12.50",
    ] {
        assert!(ps.contains(part), "{part}: {ps}");
    }
    let model: ModelStatus = serde_json::from_value(json!({
        "name": "a-model-with-a-long-name", "provider": "openrouter", "model": "anthropic/claude-sonnet-5-5-20260101",
        "dialect": "openai-chat", "usable": false, "default": true, "running": 0, "waiting": 0,
        "note": "no key: set OPENROUTER_API_KEY, or add credentials to [providers.openrouter]"
    }))
    .unwrap();
    let models = shown(&[ModelRow(model)], false, Some(80));
    assert!(widest(&models) <= 80, "{models}");
    assert!(models.contains("no key: set OPENROUT"), "{models}");
    let usage: UsageRow = serde_json::from_value(json!({
        "group": SessionId::from_parts(NOW.0, [7; 10]), "sessions": 1, "steps": 1000, "cost_usd": 1234.5,
        "usage": {"input": 10_000_000, "output": 20_000_000, "cache_read": 99_000_000, "cache_write": 99_000_000, "reasoning": 0}
    }))
    .unwrap();
    let usage = shown(
        &[UsageListRow {
            row: usage,
            saved_usd: Some(267.3),
        }],
        false,
        Some(80),
    );
    assert!(widest(&usage) <= 80, "{usage}");
    assert!(
        usage.contains("070707070707 ") && usage.contains("$1234.50"),
        "{usage}"
    );
}

#[test]
fn ps_keeps_its_reason_longer_than_its_cost() {
    let row = session(1, None, "fix the flaky test of the scheduler");
    let headings = |width| {
        let text = shown(std::slice::from_ref(&row), false, Some(width));
        assert!(widest(&text) <= width, "{text}");
        text.lines()
            .next()
            .unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let all = [
        "SESSION", "NAME", "STATE", "REASON", "AGE", "MODEL", "STEPS", "TOKENS", "COST",
    ];
    assert_eq!(headings(120), all);
    assert_eq!(
        headings(80),
        ["SESSION", "NAME", "STATE", "REASON", "AGE", "COST"]
    );
    assert_eq!(headings(76), ["SESSION", "NAME", "STATE", "REASON", "AGE"]);
    assert_eq!(headings(70), ["SESSION", "NAME", "STATE", "REASON"]);
}

#[test]
fn a_colour_takes_no_width_and_ends_with_its_cell() {
    let columns = [
        Column::whole("a", 0).tinted(Paint::good),
        Column::asked("team", 8).tinted(Paint::bad),
    ];
    let rows = cells(&[&["x", "infra"], &["yyy", ""]]);
    assert_eq!(
        table(&columns, &rows, Some(10), Paint::new(true)),
        "\x1b[1mA    TEAM\x1b[0m\n\x1b[32mx  \x1b[0m  \x1b[31minfra\x1b[0m\n\x1b[32myyy\x1b[0m\n"
    );
}

#[test]
fn a_fleet_is_summed_up_in_one_line() {
    assert_eq!(fleet_line(&[]), "0 sessions");
    let mut rows: Vec<SessionRow> = (1..=6).map(|n| session(n, None, "one")).collect();
    let states = [
        "running(model)",
        "running(tool)",
        "waiting(child)",
        "idle",
        "failed",
        "waiting(question)",
    ];
    for (row, state) in rows.iter_mut().zip(states) {
        row.state = RunState::parse(state).unwrap();
        row.cost_usd = 0.07;
    }
    assert_eq!(
        fleet_line(&rows),
        "6 sessions: 2 running, 1 waiting for a person, 1 waiting, 1 failed, $0.42"
    );
    rows.truncate(1);
    rows[0].cost_usd = 0.0;
    assert_eq!(fleet_line(&rows), "1 session: 1 running");
    rows[0].state = RunState::Idle;
    assert_eq!(fleet_line(&rows), "1 session");
}

#[test]
fn an_untested_server_is_not_called_usable() {
    let row = |more: serde_json::Value| {
        let mut row = json!({
            "name": "llama", "provider": "ollama", "model": "llama3", "dialect": "ollama", "usable": true,
            "default": false, "running": 0, "waiting": 0, "note": "needs no credential"
        });
        row.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let row: ModelStatus = serde_json::from_value(row).unwrap();
        shown(&[ModelRow(row)], false, None)
    };
    assert!(row(json!({})).contains("  yes "));
    let untried = row(json!({ "untried": true }));
    assert!(
        untried.contains("  not tried ") && untried.contains("agentctl run --model llama hi"),
        "{untried}"
    );
    let failed = row(json!({ "last_call": { "at": Timestamp(NOW.0 - 120_000), "failed": "transient" } }));
    assert!(
        failed.contains("  failed ") && failed.contains("failed 2m ago: transient; needs no credential"),
        "{failed}"
    );
    assert!(row(json!({ "last_call": { "at": NOW } })).contains("  yes "));
}

#[test]
fn wide_and_pipes_have_everything() {
    let name = "fix the flaky test of the scheduler and say why it was flaky";
    for text in [
        shown(&[session(1, None, name)], false, None),
        shown(&[session(1, None, name)], true, None),
    ] {
        for part in [name, "--nocapture", "claude-sonnet-5-5", "312"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn the_lines_of_a_tree_are_aligned() {
    let top = session(1, None, "top");
    let id = |row: &SessionRow| Some(row.session);
    let first = session(2, id(&top), "first");
    let second = session(4, id(&top), "second");
    let rows = vec![
        session(3, id(&first), "below first"),
        session(5, id(&second), "below second"),
        first,
        second,
        top,
    ];
    let rows = tree::tree(rows);
    let text = shown(&rows, false, Some(100));
    let names: Vec<&str> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split("  waiting").next()?.get(14..))
        .map(str::trim_end)
        .collect();
    assert_eq!(
        names,
        [
            "top",
            "├─ first",
            "│  └─ below first",
            "└─ second",
            "   └─ below second"
        ]
    );
    assert!(widest(&text) <= 100, "{text}");
}
