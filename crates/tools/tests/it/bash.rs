//! Bash with real commands.

use agentd_file_work::FileWork;
use agentd_process_tests::{Case, Group, cases, gone};
use agentd_protocol::{ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{Environment, WardenSpec};
use agentd_tools::{
    Beneath, BlobSource, FilesSeen, Finished, Jobs, OnStart, ProgressSink, Registry, Spilled, ToolContext,
    ToolLimits, WardenSlot,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        output_and_exit_code_are_the_result,
        i8_a_secret_of_the_daemon_is_not_in_a_commands_environment,
        each_call_is_a_new_shell_in_the_working_directory,
        time_that_is_over_is_a_timeout_result,
        a_long_output_keeps_its_ends_and_is_spilled_whole,
        too_many_lines_are_spilled_from_memory,
        frames_of_progress_and_controls_do_not_reach_the_model_and_are_kept,
        output_of_ten_million_bytes_is_bounded,
        i5_a_dropped_run_kills_its_command,
        output_is_reported_while_it_comes,
        a_lost_warden_makes_the_outcome_unknown,
        a_shell_that_cannot_be_started_is_an_error_result,
    ];
    Group::new("bash", Duration::from_secs(60), all)
}

struct World {
    _dir: tempfile::TempDir,
    ctx: ToolContext,
}

fn world_with(limits: ToolLimits, workdir: Option<PathBuf>) -> World {
    let dir = tempfile::tempdir().unwrap();
    let workdir = workdir.unwrap_or_else(|| dir.path().to_owned());
    let daemon = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("API_KEY", "canary"),
        ("LC_ALL", "C"),
    ];
    let environment = Environment::allowed(daemon.map(|(name, value)| (name.into(), value.into())), &[]);
    let spec = WardenSpec {
        exe: PathBuf::from("/proc/self/exe"),
        workdir: workdir.clone(),
        environment,
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    let ctx = ToolContext {
        call: agentd_protocol::ToolCallId::NIL,
        guarding: agentd_tools::Guarding::default(),
        workdir: Arc::new(Beneath::open(&workdir).unwrap()),
        seen: Arc::new(FilesSeen::default()),
        warden: WardenSlot::new(spec),
        limits: Arc::new(limits),
        spill_dir: dir.path().join("spill"),
        map_dir: dir.path().join("maps"),
        jobs: Jobs::unheard(),
        blobs: BlobSource::empty(),
        addresses: agentd_tools::AddressGate::nobody(),
        files: agentd_tools::FileGate::closed(),
        file_work: FileWork::of_session("test"),
        search: None,
        parsers: None,
        remote: None,
        progress: ProgressSink::nobody(),
        on_start: OnStart::default(),
    };
    World { _dir: dir, ctx }
}

fn world() -> World {
    world_with(ToolLimits::default(), None)
}

async fn call(ctx: &ToolContext, input: Value) -> Finished {
    let prepared = Registry::builtin(&ctx.limits).prepare("Bash", &input).unwrap();
    agentd_tools::run(&prepared, ctx.clone()).await
}

async fn bash(ctx: &ToolContext, command: &str) -> ToolOutcome {
    call(ctx, json!({ "command": command })).await.outcome
}

fn detail(outcome: &ToolOutcome, name: &str) -> Value {
    outcome
        .details
        .as_ref()
        .and_then(|details| details.get(name))
        .cloned()
        .unwrap_or_default()
}

async fn frames_of_progress_and_controls_do_not_reach_the_model_and_are_kept() {
    let world = world();
    let call = async |script: &str| call(&world.ctx, json!({ "command": script })).await;
    let done = call(r"printf '1%%\r50%%\r100%%\n\033[32mok\033[0m\n'").await;
    assert_eq!(done.outcome.llm_text, "100%\nok\n");
    assert!(done.outcome.truncated.is_some());
    let Some(Spilled::Memory(whole)) = done.spilled else {
        panic!("the output is not kept")
    };
    assert_eq!(whole, b"1%\r50%\r100%\n\x1b[32mok\x1b[0m\n");
    // Without text that was overwritten, nothing is missing.
    let done = call(r"printf 'a\033[1mbold\033[0m\r\n'").await;
    assert_eq!(done.outcome.llm_text, "abold\r\n");
    assert!(done.outcome.truncated.is_none() && done.spilled.is_none());
    let done = call(r"printf './a b\0./c\0'").await;
    assert_eq!(done.outcome.llm_text, "./a b\n./c\n");
    let Some(Spilled::Memory(whole)) = done.spilled else {
        panic!("the output is not kept")
    };
    assert_eq!(whole, b"./a b\0./c\0");
    // An output that is too long for memory: the file has the raw bytes.
    let done = call(r"for n in {1..40000}; do printf 'step %06d\r' $n; done; echo; echo end").await;
    assert!(
        done.outcome.llm_text.len() < 500,
        "{}",
        done.outcome.llm_text.len()
    );
    assert!(
        done.outcome.llm_text.contains("step 040000\r\nend\n"),
        "{}",
        done.outcome.llm_text
    );
    let whole = done.spilled.unwrap().bytes().await.unwrap();
    assert_eq!(whole.len(), 40_000 * 12 + 5);
}

async fn output_and_exit_code_are_the_result() {
    let world = world();
    let done = bash(&world.ctx, "echo out; echo err >&2; echo out2").await;
    assert_eq!(
        (done.status, done.llm_text.as_str()),
        (ToolStatus::Ok, "out\nerr\nout2\n")
    );
    let done = bash(&world.ctx, "printf no-newline; exit 3").await;
    assert_eq!(
        (done.status, done.llm_text.as_str()),
        (ToolStatus::Error, "no-newline\n[exit code 3]\n")
    );
    assert_eq!(
        (detail(&done, "exit_code"), detail(&done, "code")),
        (json!(3), json!("E_EXEC"))
    );
    assert_eq!(bash(&world.ctx, "true").await.llm_text, "[no output]\n");
    assert_eq!(
        bash(&world.ctx, "kill -9 $$").await.llm_text,
        "[ended by signal 9]\n"
    );
    assert_eq!(
        bash(&world.ctx, "cat").await.llm_text,
        "[no output]\n",
        "there is no input to wait for"
    );
    assert_eq!(bash(&world.ctx, "printf '\\xff\\n'").await.llm_text, "\u{fffd}\n");
}

async fn i8_a_secret_of_the_daemon_is_not_in_a_commands_environment() {
    let world = world();
    let done = bash(
        &world.ctx,
        "env | cut -d= -f1 | sort | tr '\\n' ' '; tr '\\0' '\\n' < /proc/$PPID/environ",
    )
    .await;
    assert!(!done.llm_text.contains("canary"), "{}", done.llm_text);
    assert!(
        done.llm_text.starts_with("AGENTD_UNDER LC_ALL PATH PWD SHLVL _ "),
        "{}",
        done.llm_text
    );
}

async fn each_call_is_a_new_shell_in_the_working_directory() {
    let world = world();
    let root = world.ctx.workdir.path().display().to_string();
    assert_eq!(
        bash(&world.ctx, "pwd; cd /; X=1").await.llm_text,
        format!("{root}\n")
    );
    assert_eq!(
        bash(&world.ctx, "pwd; echo $PWD $X").await.llm_text,
        format!("{root}\n{root}\n")
    );
}

async fn time_that_is_over_is_a_timeout_result() {
    let world = world();
    let done = call(
        &world.ctx,
        json!({ "command": "echo begun; sleep 300", "timeout_ms": 3_000 }),
    )
    .await
    .outcome;
    assert_eq!(done.status, ToolStatus::Timeout);
    assert!(
        done.llm_text.starts_with("begun\n[stopped after 3000 ms"),
        "{}",
        done.llm_text
    );
    assert_eq!(
        (detail(&done, "code"), detail(&done, "timed_out")),
        (json!("E_TIMEOUT"), json!(true))
    );
    assert!(done.duration_ms >= 3_000 && done.duration_ms < 300_000);
}

async fn a_long_output_keeps_its_ends_and_is_spilled_whole() {
    let world = world();
    let fits = call(
        &world.ctx,
        json!({ "command": "head -c 16384 /dev/zero | tr '\\0' x" }),
    )
    .await;
    assert_eq!(
        (fits.outcome.truncated, fits.outcome.llm_text.len()),
        (None, 16_385)
    );
    let done = call(
        &world.ctx,
        json!({ "command": "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last" }),
    )
    .await;
    let text = &done.outcome.llm_text;
    assert!(
        text.starts_with("first\n") && text.ends_with("\nlast\n"),
        "{}",
        text.len()
    );
    assert!(text.contains("of 100012 bytes omitted: 0 of 3 lines, starting at line 2"));
    assert!(text.len() < 17_000, "{}", text.len());
    assert_eq!(
        done.outcome.truncated,
        Some(Truncated {
            bytes: 100_012,
            lines: 3,
            spill: None
        })
    );
    let Some(spilled @ Spilled::File(_)) = done.spilled else {
        panic!("{:?}", done.spilled)
    };
    assert_eq!(spilled.bytes().await.unwrap().len(), 100_012);
}

async fn too_many_lines_are_spilled_from_memory() {
    let world = world();
    let done = call(&world.ctx, json!({ "command": "seq 2001" })).await;
    assert!(done.outcome.llm_text.starts_with("1\n2\n") && done.outcome.llm_text.ends_with("2000\n2001\n"));
    assert_eq!(
        done.outcome.llm_text.lines().count(),
        2_001,
        "2000 lines and the notice"
    );
    let Some(Spilled::Memory(bytes)) = done.spilled else {
        panic!("{:?}", done.spilled)
    };
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2_001);
    assert_eq!(
        call(&world.ctx, json!({ "command": "seq 2000" }))
            .await
            .outcome
            .truncated,
        None
    );
}

async fn output_of_ten_million_bytes_is_bounded() {
    let world = world_with(
        ToolLimits {
            spill_bytes: 1_000_000,
            ..ToolLimits::default()
        },
        None,
    );
    let done = call(&world.ctx, json!({ "command": "yes | head -c 10000000" })).await;
    assert_eq!(
        done.outcome.truncated,
        Some(Truncated {
            bytes: 10_000_000,
            lines: 5_000_000,
            spill: None
        })
    );
    assert!(done.outcome.llm_text.len() < 17_000);
    assert_eq!(done.spilled.unwrap().bytes().await.unwrap().len(), 1_000_000);
}

async fn i5_a_dropped_run_kills_its_command() {
    let mut world = world();
    let (news, mut seen) = tokio::sync::mpsc::channel(8);
    world.ctx.progress = ProgressSink::new(move |progress| {
        let _ = news.try_send(progress.text);
    });
    let command = "trap '' TERM; echo $$; setsid sleep 300 & wait; wait; sleep 300; sleep 300";
    let pid = tokio::select! {
        done = bash(&world.ctx, command) => panic!("{done:?}"),
        text = seen.recv() => text.unwrap().trim().parse::<i32>().unwrap(),
    };
    assert!(gone(pid).await, "the process still lives");
    assert_eq!(bash(&world.ctx, "echo lives").await.llm_text, "lives\n");
}

async fn output_is_reported_while_it_comes() {
    let mut world = world();
    let (news, mut seen) = tokio::sync::mpsc::channel(8);
    world.ctx.progress = ProgressSink::new(move |progress| {
        let _ = news.try_send((progress.offset, progress.text));
    });
    bash(&world.ctx, "echo a").await;
    assert_eq!(seen.recv().await, Some((0, "a\n".to_owned())));
}

async fn a_lost_warden_makes_the_outcome_unknown() {
    let world = world();
    let done = bash(&world.ctx, "kill -9 $PPID; sleep 300").await;
    assert_eq!(
        (done.status, done.outcome_unknown),
        (ToolStatus::Interrupted, true)
    );
    assert!(
        done.llm_text.ends_with("its effects are unknown."),
        "{}",
        done.llm_text
    );
    assert_eq!(
        bash(&world.ctx, "echo again").await.llm_text,
        "again\n",
        "there is a new warden"
    );
}

async fn a_shell_that_cannot_be_started_is_an_error_result() {
    let gone = tempfile::tempdir().unwrap();
    let world = world_with(ToolLimits::default(), Some(gone.path().to_owned()));
    drop(gone);
    let done = bash(&world.ctx, "echo x").await;
    assert_eq!(done.status, ToolStatus::Error);
    assert!(
        done.llm_text.contains("cannot open the working directory"),
        "{}",
        done.llm_text
    );
}
