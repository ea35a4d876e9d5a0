//! The load tool with small numbers: each mode measures something and leaves complete logs behind. No figure is
//! compared with a target here: this machine is busy with tests.

use agentd_process_tests::Postgres;
use agentd_tests::{Heavy, binaries, skipped, within};
use serde_json::Value;
use tokio::process::Command;

/// Runs a mode; returns its figures.
#[expect(clippy::disallowed_methods, reason = "the harness starts the load tool")]
async fn measure(args: &str) -> Value {
    let _heavy = Heavy::begin().await;
    let binaries = binaries();
    let output = Command::new(&binaries.bench)
        .arg("--json")
        .arg("--agentd")
        .arg(&binaries.agentd)
        .args(args.split(' '))
        .kill_on_drop(true)
        .output();
    let output = within("the measurement ends", output).await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(figures: &Value, name: &str) -> f64 {
    let value = figures.get(name).and_then(Value::as_f64);
    value
        .ok_or_else(|| format!("no figure {name} in {figures}"))
        .unwrap()
}

#[track_caller]
fn positive(figures: &Value, names: &[&str]) {
    for name in names {
        assert!(number(figures, name) > 0.0, "{name} in {figures}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_measured_and_its_logs_are_whole() {
    let figures = measure("fleet --sessions 3 --steps 2 --waves 1 --open-seconds 1 --viewers 1").await;
    positive(
        &figures,
        &[
            "steps_per_second",
            "sessions_per_second",
            "rss_mb.active",
            "helpers.active",
            "fds.active",
            "open_loop.steps_measured",
            "overhead_per_step_ms.p99",
            "store.changes",
            "store.batch_us_p50",
        ],
    );
    // On a busy machine an answer can be complete before its first delta is due, so there may be no measurement.
    let measured = number(&figures, "first_delta.measured") > 0.0;
    assert_eq!(number(&figures, "first_delta_ms.from_model.p50") > 0.0, measured);
    assert_eq!(number(&figures, "logs_checked"), 3.0);
    assert_eq!(number(&figures, "failed_tool_calls"), 0.0);
    let target = figures
        .pointer("/targets/steps_per_second")
        .and_then(Value::as_str);
    assert!(
        target.is_some_and(|target| target.starts_with(">= 600")),
        "{target:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_are_measured() {
    if Postgres::database("several nodes are measured").is_none() {
        return;
    }
    let figures =
        measure("cluster --sessions 10 --active 6 --steps 2 --waves 1 --followed 4 --ttl 6 --idle 6").await;
    positive(
        &figures,
        &[
            "one_node_to_sqlite",
            "all_nodes_to_one",
            "other_node.events_per_second",
            "kill.taken_over_seconds",
            "stop.taken_over_seconds",
            "idle.rss_mb.node2",
            "list_100_ms.p99",
            "drain.seconds",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_measured_in_every_dialect() {
    let dialects = [
        "openai-chat",
        "openai-responses",
        "gemini",
        "ollama",
        "llama-completion",
    ];
    for dialect in dialects {
        let args = format!(
            "--tools mix --dialect {dialect} fleet --sessions 2 --steps 2 --waves 1 --open-seconds 0"
        );
        let figures = measure(&args).await;
        assert_eq!(number(&figures, "logs_checked"), 2.0, "{dialect}");
        assert_eq!(number(&figures, "failed_tool_calls"), 0.0, "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_of_idle_and_active_sessions_is_measured() {
    let figures = measure("idle --sessions 20 --burst 2").await;
    positive(&figures, &["rss_mb.1_idle", "start_ms", "create_per_second"]);
    let figures = measure("--tools read active --sessions 5 --think-ms 300 --steps 1").await;
    positive(&figures, &["rss_mb.most", "open_at_once"]);
    assert_eq!(number(&figures, "logs_checked"), 5.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_is_measured_and_a_longer_one_is_attached_to() {
    let figures = measure("--tools read long --steps 20 --turn 5").await;
    positive(&figures, &["step_ms.first", "step_ratio", "logs_checked"]);
    let figures = measure("--tools read attach --events 500 --rounds 3").await;
    positive(&figures, &["attach_ms.p99", "attach_ms.after_start"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_a_storm_leaves_whole_logs() {
    let figures = measure("--tools read storm --sessions 4 --steps 2 --rate-529 0.2 --rate-cut 0.2").await;
    assert_eq!(number(&figures, "turns_completed"), 4.0);
    assert_eq!(number(&figures, "logs_checked"), 4.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_are_measured_also_those_that_do_not_read() {
    let figures = measure("--tools read viewers --viewers 4 --stalled 1 --steps 5 --rounds 1").await;
    positive(&figures, &["step_ms.watched.p50", "frames_seen", "logs_checked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_is_measured_beside_the_socket() {
    let figures = measure(
        "--tools read http --inputs 3 --sessions 20 --requests 8 --connections 2 --idle 20 --viewers 4 --stalled 1 \
         --steps 3 --rounds 1",
    )
    .await;
    positive(
        &figures,
        &[
            "first_text_ms.socket.p50",
            "first_text_ms.http.p99",
            "step_ratio",
            "list_per_second",
            "list_ms.p99",
        ],
    );
    assert_eq!(number(&figures, "logs_checked"), 3.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_turns_that_were_open_at_a_kill_go_on_and_are_measured() {
    let figures = measure("resume --sessions 4").await;
    positive(&figures, &["resumed_seconds", "start_ms"]);
    assert_eq!(number(&figures, "logs_checked"), 4.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancels_are_measured_under_load() {
    let figures = measure("cancel --sessions 2 --steps 2 --waves 1 --open-seconds 10").await;
    positive(&figures, &["cancelled", "cancel_ms.in_model_call.p99"]);
    positive(&figures, &["logs_checked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i3_a_soak_with_kills_leaves_whole_logs() {
    let figures = measure("--seed 3 soak --seconds 2 --sessions 4 --steps 2").await;
    positive(&figures, &["rounds", "turns", "logs_checked"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_sessions_on_a_file_system_that_stands_still_are_measured() {
    for case in ["frozen", "fsfreeze"] {
        let args = format!("hostile --case {case} --frozen 4 --healthy 2 --steps 2 --rounds 1");
        let figures = measure(&args).await;
        let name = |figure: &str| format!("{case}.{figure}");
        if let Some(why) = figures.get(name("skipped")).and_then(Value::as_str) {
            skipped("a file system that stands still under the load tool", why);
            continue;
        }
        positive(
            &figures,
            &[&name("ratio"), &name("ps_ms.with_frozen.p99"), &name("stop_ms")],
        );
        for after in ["thaw", "restart"] {
            assert_eq!(number(&figures, &name(&format!("go_on_after_{after}"))), 4.0);
            let failed = number(&figures, &name(&format!("failed_calls_after_{after}")));
            assert_eq!(failed, 0.0, "{case} after {after}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_billed_in_every_dialect_and_caches_hold_behind_any_host() {
    let figures = measure("--sandbox none cost").await;
    for case in [
        "anthropic",
        "anthropic-gateway",
        "chat-claude",
        "openai-chat",
        "openai-responses",
        "gemini",
        "ollama",
    ] {
        let cached = figures
            .pointer(&format!("/{case}/cached_percent"))
            .and_then(Value::as_u64);
        assert!(cached >= Some(90), "{case}: {figures}");
        assert!(number(&figures, &format!("{case}.bill_usd")) <= 0.28, "{figures}");
        assert!(
            number(&figures, &format!("{case}.shared_percent")) >= 80.0,
            "{figures}"
        );
    }
    assert_eq!(number(&figures, "failed_tool_calls"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_full_screen_mode_is_measured_in_a_terminal() {
    let ctl = binaries().agentctl.display().to_string();
    let figures = measure(&format!(
        "terminal --megabytes 1 --events 600 --sessions 60 --changes 20 --keys 20 --seconds 2 --agentctl {ctl}"
    ))
    .await;
    positive(
        &figures,
        &[
            "key_to_screen_ms.p99",
            "attach.rss_mb",
            "top.changes_per_second",
            "top.rss_mb",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_are_measured_beside_plain_git() {
    let figures =
        measure("workspaces --files 50 --sessions 2 --steps 1 --small-files 20 --small-sessions 4").await;
    positive(
        &figures,
        &[
            "clone.ratio_of_medians",
            "worktree.ratio_of_medians",
            "clone.disk_mb_each",
            "small.median_ms",
            "small.four_at_once_ms.p50",
            "record.ms.p50",
            "record.disk_kb",
            "small.branch_ms.p50",
            "small.apply_ms.p50",
        ],
    );
    assert_eq!(figures["clone.original_untouched"], true);
    assert_eq!(number(&figures, "small.sessions"), 4.0);
}
