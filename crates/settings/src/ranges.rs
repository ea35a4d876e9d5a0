//! The valid ranges of numbers.

use crate::settings::Settings;

/// A key, its value, its minimum and its maximum.
pub(crate) type Row = (&'static str, u64, u64, u64);

/// All ranges.
pub(crate) fn ranges(settings: &Settings) -> Vec<Row> {
    [
        turns(settings),
        deadlines(settings),
        scheduler(settings),
        context(settings),
        tools(settings),
        limits(settings),
        http(settings),
        sandbox(settings),
        index(settings),
        workspace(settings),
    ]
    .concat()
}

/// Keys whose range ends at the value of another key. If only that one was set, it is to blame.
pub(crate) const BOUNDED_BY: [(&str, &str); 6] = [
    ("scheduler.circuit_cap_ms", "scheduler.circuit_ms"),
    ("scheduler.cooldown_cap_ms", "scheduler.cooldown_ms"),
    ("scheduler.quota_cooldown_cap_ms", "scheduler.quota_cooldown_ms"),
    ("tools.bash_timeout_ms", "tools.bash_timeout_max_ms"),
    ("tools.bash_yield_ms", "tools.bash_timeout_max_ms"),
    ("limits.max_input_bytes", "limits.max_frame_bytes"),
];

const DAY_MS: u64 = 86_400_000;
const WEEK_MS: u64 = 7 * DAY_MS;
const GIB: u64 = 1 << 30;

fn turns(s: &Settings) -> Vec<Row> {
    let l = &s.r#loop;
    vec![
        ("loop.turn_cap", l.turn_cap.into(), 1, 1_000_000),
        (
            "loop.incomplete_intent_retries",
            l.incomplete_intent_retries.into(),
            0,
            10,
        ),
        ("loop.plan_steps", l.plan_steps.into(), 1, 100),
        ("loop.plan_changes", l.plan_changes.into(), 0, 100),
        ("loop.max_parallel_tools", l.max_parallel_tools.into(), 1, 64),
        ("retry.max_retries", s.retry.max_retries.into(), 0, 100),
        ("retry.max_omissions", s.retry.max_omissions.into(), 0, 100),
        ("mcp.max_running", s.mcp.max_running.into(), 1, 1_024),
        (
            "permission.webhook.timeout_ms",
            s.permission.webhook.timeout_ms,
            1,
            600_000,
        ),
        (
            "permission.webhook.retries",
            s.permission.webhook.retries.into(),
            0,
            100,
        ),
        (
            "node.ttl",
            u64::try_from(s.node.ttl.as_millis()).unwrap_or(u64::MAX),
            2_000,
            3_600_000,
        ),
        (
            "fleet.clock_window",
            u64::try_from(s.fleet.clock_window.as_millis()).unwrap_or(u64::MAX),
            1_000,
            3_600_000,
        ),
        (
            "fleet.remembered_requests",
            s.fleet.remembered_requests.into(),
            1_000,
            100_000_000,
        ),
        ("node.wake_per_second", s.node.wake_per_second.into(), 1, 100_000),
        ("log.max_bytes", s.log.max_bytes, 65_536, 16 * GIB),
        ("log.files", s.log.files.into(), 1, 1_000),
        ("log.audit_files", s.log.audit_files.into(), 0, 1_000_000),
    ]
}

fn deadlines(s: &Settings) -> Vec<Row> {
    let r = &s.retry;
    vec![
        ("retry.base_ms", r.base_ms, 1, DAY_MS),
        ("retry.cap_ms", r.cap_ms, r.base_ms, DAY_MS),
        ("retry.park_ms", r.park_ms, 0, WEEK_MS),
        ("retry.key_files_ms", r.key_files_ms, 0, DAY_MS),
        ("retry.connect_ms", r.connect_ms, 1, DAY_MS),
        ("retry.first_byte_ms", r.first_byte_ms, 1, DAY_MS),
        ("retry.idle_ms", r.idle_ms, 1, DAY_MS),
        (
            "retry.total_ms",
            r.total_ms,
            r.idle_ms.max(r.first_byte_ms),
            DAY_MS,
        ),
    ]
}

fn http(s: &Settings) -> Vec<Row> {
    let h = &s.http;
    vec![
        ("http.connections", h.connections.into(), 1, 1_000_000),
        ("http.connections_known", h.connections_known.into(), 0, 1_000_000),
        ("http.grace_ms", h.grace_ms, 0, 60_000),
        ("http.streams_per_token", h.streams_per_token.into(), 1, 1_000_000),
        ("http.sessions_per_stream", h.sessions_per_stream.into(), 1, 1_000),
        (
            "http.requests_per_second",
            h.requests_per_second.into(),
            1,
            1_000_000,
        ),
        ("http.keys_per_token", h.keys_per_token.into(), 1, 1_000_000),
        ("http.key_seconds", h.key_seconds, 1, 30 * DAY_MS / 1_000),
        ("http.key_wait_ms", h.key_wait_ms, 1, DAY_MS),
        ("http.max_body_bytes", h.max_body_bytes, 1_024, GIB),
        ("http.header_ms", h.header_ms, 1_000, DAY_MS),
        ("http.body_ms", h.body_ms, 1_000, DAY_MS),
        ("http.body_wait_ms", h.body_wait_ms, 1, DAY_MS),
        ("http.sign_in_ms", h.sign_in_ms, 100, DAY_MS),
        ("http.stall_ms", h.stall_ms, 1_000, DAY_MS),
    ]
}

fn sandbox(s: &Settings) -> Vec<Row> {
    let b = &s.sandbox;
    let history_ms = u64::try_from(b.history_limit.as_millis()).unwrap_or(u64::MAX);
    let least = if b.max_memory_bytes == 0 { 0 } else { 64 << 20 };
    let least_new = if b.max_new_bytes == 0 { 0 } else { 1 << 20 };
    vec![
        ("sandbox.max_processes", b.max_processes, 16, 1_000_000),
        (
            "sandbox.max_memory_bytes",
            b.max_memory_bytes,
            least,
            65_536 * GIB,
        ),
        ("sandbox.max_file_bytes", b.max_file_bytes, 1 << 20, 65_536 * GIB),
        ("sandbox.max_new_files", b.max_new_files, 1_000, 1_000_000_000),
        ("sandbox.max_new_bytes", b.max_new_bytes, least_new, 65_536 * GIB),
        ("sandbox.min_free_bytes", b.min_free_bytes, 0, 65_536 * GIB),
        ("sandbox.history_limit", history_ms, 0, 300_000),
    ]
}

fn workspace(s: &Settings) -> Vec<Row> {
    let w = &s.workspace;
    let setup_ms = u64::try_from(w.setup_limit.as_millis()).unwrap_or(u64::MAX);
    let make_ms = u64::try_from(w.make_limit.as_millis()).unwrap_or(u64::MAX);
    vec![
        ("workspace.setup_limit", setup_ms, 1_000, DAY_MS),
        ("workspace.make_limit", make_ms, 1_000, DAY_MS),
        ("workspace.copy_bytes", w.copy_bytes, 0, 1_024 * GIB),
        ("workspace.copy_files", w.copy_files, 0, 10_000_000),
        ("workspace.keep_bytes", w.keep_bytes, 1 << 20, 1_024 * GIB),
        ("workspace.keep_days", w.keep_days.into(), 0, 3_650),
        ("workspace.disk_budget", w.disk_budget, 0, 65_536 * GIB),
        ("workspace.checkpoint_file_bytes", w.checkpoint_file_bytes, 1, GIB),
        ("workspace.checkpoint_files", w.checkpoint_files, 1, 10_000_000),
        (
            "workspace.checkpoint_bytes",
            w.checkpoint_bytes,
            w.checkpoint_file_bytes,
            1_024 * GIB,
        ),
    ]
}

fn index(s: &Settings) -> Vec<Row> {
    let (i, e) = (&s.index, &s.index.embedding);
    vec![
        ("index.max_files", i.max_files.into(), 1, 10_000_000),
        ("index.max_file_bytes", i.max_file_bytes, 1_024, 2_000_000),
        ("index.max_bytes", i.max_bytes, i.max_file_bytes, 1_024 * GIB),
        ("index.max_index_bytes", i.max_index_bytes, 1 << 20, 1_024 * GIB),
        ("index.keep", i.keep.into(), 1, 100_000),
        ("index.share", i.share.into(), 1, 100),
        ("index.refresh_ms", i.refresh_ms, 0, DAY_MS),
        ("index.wait_ms", i.wait_ms, 0, 30_000),
        ("index.embedding.batch", e.batch.into(), 1, 512),
        ("index.embedding.timeout_ms", e.timeout_ms, 1, 600_000),
        ("index.embedding.retries", e.retries.into(), 0, 100),
    ]
}

fn scheduler(s: &Settings) -> Vec<Row> {
    let c = &s.scheduler;
    vec![
        ("scheduler.circuit_failures", c.circuit_failures.into(), 1, 1_000),
        ("scheduler.circuit_ms", c.circuit_ms, 1, DAY_MS),
        ("scheduler.circuit_cap_ms", c.circuit_cap_ms, c.circuit_ms, DAY_MS),
        ("scheduler.cooldown_ms", c.cooldown_ms, 1, DAY_MS),
        (
            "scheduler.cooldown_cap_ms",
            c.cooldown_cap_ms,
            c.cooldown_ms,
            DAY_MS,
        ),
        ("scheduler.quota_cooldown_ms", c.quota_cooldown_ms, 1, WEEK_MS),
        (
            "scheduler.quota_cooldown_cap_ms",
            c.quota_cooldown_cap_ms,
            c.quota_cooldown_ms,
            WEEK_MS,
        ),
        ("scheduler.max_waiting", c.max_waiting.into(), 1, 1_000_000),
    ]
}

fn context(s: &Settings) -> Vec<Row> {
    vec![
        (
            "context.keep_recent_tokens",
            s.context.keep_recent_tokens,
            0,
            100_000_000,
        ),
        ("context.reserve_tokens", s.context.reserve_tokens, 0, 100_000_000),
        (
            "context.prune_protect_tokens",
            s.context.prune_protect_tokens,
            0,
            100_000_000,
        ),
        (
            "context.prune_min_tokens",
            s.context.prune_min_tokens,
            0,
            100_000_000,
        ),
        (
            "context.summary_timeout_ms",
            s.context.summary_timeout_ms,
            0,
            3_600_000,
        ),
        ("context.count_timeout_ms", s.context.count_timeout_ms, 1, 60_000),
        (
            "side_calls.max_tokens",
            s.side_calls.max_tokens.into(),
            16,
            65_536,
        ),
        ("side_calls.timeout_ms", s.side_calls.timeout_ms, 1, 600_000),
    ]
}

fn tools(s: &Settings) -> Vec<Row> {
    let t = &s.tools;
    vec![
        ("tools.max_lines", t.max_lines.into(), 1, 1_000_000),
        ("tools.max_bytes", t.max_bytes, 256, 16_777_216),
        ("tools.bash_max_bytes", t.bash_max_bytes, 256, 16_777_216),
        ("tools.max_file_bytes", t.max_file_bytes, 1, GIB),
        ("tools.max_image_bytes", t.max_image_bytes, 1, 16 << 20),
        ("tools.max_image_side", t.max_image_side.into(), 1, 65_535),
        (
            "tools.bash_timeout_ms",
            t.bash_timeout_ms,
            1,
            t.bash_timeout_max_ms,
        ),
        ("tools.bash_timeout_max_ms", t.bash_timeout_max_ms, 1, DAY_MS),
        ("tools.bash_yield_ms", t.bash_yield_ms, 0, t.bash_timeout_max_ms),
        ("tools.max_running", t.max_running.into(), 1, 10_000),
        ("tools.max_jobs", t.max_jobs.into(), 1, 1_000),
        ("tools.repo_map_tokens", t.repo_map_tokens.into(), 0, 32_768),
        ("tools.max_watched", t.max_watched.into(), 100, 1_000_000),
        ("tools.spill_bytes", t.spill_bytes, 131_072, 16 * GIB),
        ("tools.web.max_bytes", t.web.max_bytes, 1_024, 67_108_864),
        (
            "agents.instruction_bytes",
            s.agents.instruction_bytes,
            0,
            1_048_576,
        ),
        ("agents.map_tokens", s.agents.map_tokens.into(), 100, 32_768),
        ("agents.mentions", s.agents.mentions.into(), 0, 1_000),
        ("agents.mention_bytes", s.agents.mention_bytes, 1_024, 16_777_216),
        ("hooks.max_concurrent", s.hooks.max_concurrent.into(), 1, 64),
        ("hooks.stop_rounds", s.hooks.stop_rounds.into(), 0, 10),
        ("tools.web.timeout_ms", t.web.timeout_ms, 100, 600_000),
    ]
}

fn limits(s: &Settings) -> Vec<Row> {
    let l = &s.limits;
    vec![
        ("limits.connections", l.connections.into(), 1, 1_000_000),
        (
            "limits.connections_reserved",
            l.connections_reserved.into(),
            0,
            1_000_000,
        ),
        ("limits.max_frame_bytes", l.max_frame_bytes, 65_536, GIB),
        ("limits.session_files", l.session_files.into(), 1, 64),
        ("limits.filesystem_files", l.filesystem_files.into(), 1, 512),
        ("limits.frames_bytes", l.frames_bytes, 65_536, 64 * GIB),
        ("limits.answers_bytes", l.answers_bytes, 67_108_864, 64 * GIB),
        (
            "limits.max_input_bytes",
            l.max_input_bytes,
            1,
            l.max_frame_bytes.saturating_sub(4_096),
        ),
        ("limits.queue_inputs", l.queue_inputs.into(), 1, 10_000),
        ("limits.sessions_hot", l.sessions_hot.into(), 1, 1_000_000),
        ("limits.attach_ring", l.attach_ring.into(), 16, 1_000_000),
        ("limits.attach_ring_bytes", l.attach_ring_bytes, 65_536, GIB),
        ("limits.blob_bytes", l.blob_bytes, 262_144, 16 * GIB),
        ("limits.list_rows", l.list_rows.into(), 1, 100_000),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::with_file;

    /// Every row whose range depends on another setting has an entry in `BOUNDED_BY`.
    #[test]
    fn ranges_that_depend_on_a_setting_are_known() {
        let mut other = Settings::default();
        let (c, t) = (&mut other.scheduler, &mut other.tools);
        (c.circuit_ms, c.cooldown_ms, c.quota_cooldown_ms) = (7, 8, 9);
        t.bash_timeout_max_ms = 11;
        other.limits.max_frame_bytes = 99_999;
        let bounds = |settings: &Settings| -> Vec<_> {
            ranges(settings)
                .into_iter()
                .map(|(key, _, low, high)| (key, low, high))
                .collect()
        };
        let before = bounds(&Settings::default());
        let differ = bounds(&other)
            .into_iter()
            .zip(before)
            .filter(|(new, old)| new != old);
        let keys: Vec<&str> = differ.map(|((key, ..), _)| key).collect();
        assert_eq!(keys.len(), BOUNDED_BY.len(), "{keys:?}");
        assert!(
            keys.iter()
                .all(|key| BOUNDED_BY.iter().any(|(bounded, _)| bounded == key))
        );
    }

    #[test]
    fn the_key_that_the_operator_set_is_to_blame() {
        let told = |text: &str| {
            let (loaded, path) = with_file(text);
            let told = loaded.unwrap_err().to_string();
            told.replace(&format!("{}:", path.display()), "line ")
        };
        let max = told("[tools]\nbash_timeout_max_ms = 1000\n");
        assert!(
            max.starts_with(
                "line 2: tools.bash_timeout_max_ms: it does not go with tools.bash_timeout_ms, which is "
            ),
            "{max}"
        );
        assert!(!max.contains("the defaults"), "{max}");
        let both = told("[tools]\nbash_timeout_max_ms = 1000\nbash_timeout_ms = 2000\n");
        assert!(
            both.starts_with("line 3: tools.bash_timeout_ms: 2000 is out of range"),
            "{both}"
        );
        let typed = told("[permission]\nrules = [\"allow Bash\"]\n");
        assert!(
            typed.contains("expected a table") && !typed.contains("Written"),
            "{typed}"
        );
    }
}
