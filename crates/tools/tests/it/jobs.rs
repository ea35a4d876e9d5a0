//! Background jobs with real commands.

use agentd_file_work::FileWork;
use agentd_process_tests::{Case, Group, cases};
use agentd_protocol::{ToolOutcome, ToolStatus};
use agentd_sandbox::{Environment, WardenSpec};
use agentd_tools::{
    Beneath, BlobSource, FilesSeen, Finished, JobEnding, JobNews, Jobs, OnStart, ProgressSink, Registry,
    Subject, ToolContext, ToolLimits, WardenSlot,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_job_is_started_read_and_seen_to_end,
        output_is_given_once,
        a_long_output_is_bounded_and_spilled_whole_at_the_end,
        i5_a_killed_job_is_gone_with_everything_below_it,
        i5_jobs_are_killed_when_the_last_who_knows_them_is_gone,
        more_jobs_than_allowed_are_refused,
        an_unknown_job_is_refused_with_the_known_ones,
        a_job_whose_warden_is_lost_is_lost,
        a_signal_that_ends_a_job_is_told,
        a_job_at_a_terminal_is_typed_into,
        what_cannot_be_typed_is_refused,
        a_command_goes_on_in_the_background_as_the_same_process,
        a_command_that_ends_in_time_is_no_job,
        without_room_a_command_is_waited_for_to_its_time,
    ];
    Group::new("jobs", Duration::from_secs(60), all)
}

struct World {
    _dir: tempfile::TempDir,
    ctx: ToolContext,
    news: mpsc::UnboundedReceiver<JobNews>,
}

fn world_with(limits: ToolLimits) -> World {
    let dir = tempfile::tempdir().unwrap();
    let daemon = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C")];
    let environment = Environment::allowed(daemon.map(|(name, value)| (name.into(), value.into())), &[]);
    let spec = WardenSpec {
        exe: PathBuf::from("/proc/self/exe"),
        workdir: dir.path().to_owned(),
        environment,
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    let (tx, news) = mpsc::unbounded_channel();
    let ctx = ToolContext {
        call: agentd_protocol::ToolCallId::NIL,
        guarding: agentd_tools::Guarding::default(),
        workdir: Arc::new(Beneath::open(dir.path()).unwrap()),
        seen: Arc::new(FilesSeen::default()),
        warden: WardenSlot::new(spec),
        jobs: Jobs::new(6, move |news| {
            let _ = tx.send(news);
        }),
        limits: Arc::new(limits),
        spill_dir: dir.path().join("spill"),
        map_dir: dir.path().join("maps"),
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
    World { _dir: dir, ctx, news }
}

fn world() -> World {
    world_with(ToolLimits::default())
}

impl World {
    async fn call(&self, name: &str, input: Value) -> Finished {
        let prepared = Registry::builtin(&self.ctx.limits).prepare(name, &input).unwrap();
        agentd_tools::run(&prepared, self.ctx.clone()).await
    }

    async fn outcome(&self, name: &str, input: Value) -> ToolOutcome {
        self.call(name, input).await.outcome
    }

    async fn start(&mut self, command: &str) {
        let done = self.outcome("BashStart", json!({ "command": command })).await;
        assert_eq!(done.status, ToolStatus::Ok, "{}", done.llm_text);
    }

    async fn news(&mut self) -> JobNews {
        self.news.recv().await.unwrap()
    }

    /// The output of a job up to `word`.
    async fn until(&self, job: u32, word: &str) -> String {
        let mut all = String::new();
        while !all.contains(word) {
            let wait = json!({ "job": job, "wait_ms": 50 });
            all.push_str(&self.outcome("BashPoll", wait).await.llm_text);
        }
        all
    }
}

fn exited(exit_code: i32) -> JobEnding {
    JobEnding::Exited {
        exit_code: Some(exit_code),
        signal: None,
        stopped: None,
    }
}

fn exit_is_seen(pid: &str) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    // It is fine if the process has already ended.
    if let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) {
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        let within = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut fds, Some(&within)).unwrap(), 1);
    }
}

async fn a_job_is_started_read_and_seen_to_end() {
    let mut world = world();
    let started = world
        .outcome(
            "BashStart",
            json!({ "command": "echo out; echo err >&2; exit 3" }),
        )
        .await;
    assert_eq!(
        (started.status, started.details),
        (ToolStatus::Ok, Some(json!({ "job": 7 })))
    );
    let command = "echo out; echo err >&2; exit 3".to_owned();
    assert_eq!(world.news().await, JobNews::Started { job: 7, command });
    let done = world
        .outcome("BashPoll", json!({ "job": 7, "wait_ms": 20_000 }))
        .await;
    assert_eq!(
        (done.status, done.llm_text.as_str()),
        (ToolStatus::Ok, "out\nerr\n[job 7 ended with exit code 3]\n")
    );
    assert_eq!(
        done.details,
        Some(json!({ "job": 7, "running": false, "exit_code": 3, "signal": null }))
    );
    let ended = JobNews::Ended {
        job: 7,
        ending: exited(3),
    };
    assert_eq!(world.news().await, ended);
}

async fn output_is_given_once() {
    let mut world = world();
    world.start("mkfifo go; echo first; cat go; echo second").await;
    let text = world.until(7, "first\n").await;
    assert!(
        text.contains("[job 7 runs]") && !text.contains("second"),
        "{text}"
    );
    std::fs::write(world.ctx.workdir.path().join("go"), "now\n").unwrap();
    let text = world.until(7, "ended").await;
    assert!(
        text.contains("now\nsecond\n") && !text.contains("first"),
        "{text}"
    );
    let again = world.outcome("BashPoll", json!({ "job": 7 })).await;
    assert_eq!(
        again.llm_text,
        "[no new output]\n[job 7 ended with exit code 0]\n"
    );
}

async fn a_long_output_is_bounded_and_spilled_whole_at_the_end() {
    let mut world = world();
    world.start("yes 0123456789 | head -c 1100000").await;
    while !matches!(world.news().await, JobNews::Ended { .. }) {}
    let done = world.call("BashPoll", json!({ "job": 7 })).await;
    assert!(done.outcome.llm_text.len() < 60_000);
    let truncated = done.outcome.truncated.unwrap();
    assert_eq!((truncated.bytes, truncated.lines), (1_100_000, 100_000));
    let whole = done.spilled.unwrap().bytes().await.unwrap();
    assert_eq!(whole, "0123456789\n".repeat(100_000).into_bytes());
    let again = world.call("BashPoll", json!({ "job": 7 })).await;
    assert!(again.spilled.is_none());
}

async fn i5_a_killed_job_is_gone_with_everything_below_it() {
    let mut world = world();
    world
        .start("trap '' TERM; setsid sleep 300 & echo pid=$!; sleep 300")
        .await;
    let text = world.until(7, "pid=").await;
    let pid: String = text
        .split_once("pid=")
        .unwrap()
        .1
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let done = world.outcome("BashKill", json!({ "job": 7 })).await;
    assert_eq!(done.status, ToolStatus::Ok);
    assert!(
        done.llm_text.ends_with("[job 7 was stopped: BashKill]\n"),
        "{}",
        done.llm_text
    );
    exit_is_seen(&pid);
}

async fn i5_jobs_are_killed_when_the_last_who_knows_them_is_gone() {
    let mut world = world();
    world.start("echo pid=$$; exec sleep 300").await;
    let text = world.until(7, "pid=").await;
    let pid: String = text
        .split_once("pid=")
        .unwrap()
        .1
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    // The warden stays, as it does while other calls of the session run.
    let warden = world.ctx.warden.get().await.unwrap();
    world.ctx.jobs = Jobs::unheard();
    exit_is_seen(&pid);
    assert!(warden.is_alive());
}

async fn more_jobs_than_allowed_are_refused() {
    let mut world = world_with(ToolLimits {
        max_jobs: 2,
        ..ToolLimits::default()
    });
    world.start("sleep 300").await;
    world.start("sleep 300").await;
    let third = json!({ "command": "sleep 300" });
    let refused = world.outcome("BashStart", third.clone()).await;
    assert_eq!(
        (refused.status, refused.llm_text.as_str()),
        (
            ToolStatus::Error,
            "2 background jobs are already running; end one first (Job, action stop). The jobs are: 7, 8."
        )
    );
    world.outcome("BashKill", json!({ "job": 7 })).await;
    assert_eq!(world.outcome("BashStart", third).await.status, ToolStatus::Ok);
}

async fn an_unknown_job_is_refused_with_the_known_ones() {
    let mut world = world();
    for name in ["BashPoll", "BashKill"] {
        let refused = world.outcome(name, json!({ "job": 1 })).await;
        assert_eq!(
            (refused.status, refused.llm_text.as_str()),
            (ToolStatus::Error, "There is no job 1. The jobs are: none.")
        );
    }
    world.start("true").await;
    let refused = world
        .outcome("BashPoll", json!({ "job": 4_294_967_296_u64 }))
        .await;
    assert_eq!(refused.llm_text, "There is no job 4294967296. The jobs are: 7.");
}

async fn a_job_whose_warden_is_lost_is_lost() {
    let mut world = world();
    world
        .start("mkfifo go; echo ready; cat go; kill -9 $PPID; sleep 300")
        .await;
    world.until(7, "ready\n").await;
    std::fs::write(world.ctx.workdir.path().join("go"), "now").unwrap();
    assert!(matches!(world.news().await, JobNews::Started { job: 7, .. }));
    let JobNews::Ended { job: 7, ending } = world.news().await else {
        panic!("it did not end");
    };
    assert!(matches!(ending, JobEnding::Lost(_)), "{ending:?}");
    let text = world.outcome("BashPoll", json!({ "job": 7 })).await.llm_text;
    assert!(text.contains("[job 7 is lost: "), "{text}");
}

async fn a_job_at_a_terminal_is_typed_into() {
    let world = world();
    let command =
        "test -t 0 && stty size; read -r line; printf '\\033[31m<%s>\\033[0m\\n' \"$line\"; cat; echo end";
    let start = json!({ "command": command, "terminal": true, "columns": 91, "rows": 17 });
    let started = world.outcome("BashStart", start).await;
    assert!(started.llm_text.contains("type into it with action write"));
    world.until(7, "17 91\n").await;
    let typed = json!({ "job": 7, "input": "git status", "wait_ms": 60_000 });
    let mut said = world.outcome("BashWrite", typed).await.llm_text;
    if !said.contains("<git status>") {
        said += &world.until(7, "<git status>").await;
    }
    assert!(
        said.contains("<git status>\n") && !said.contains('\u{1b}'),
        "{said:?}"
    );
    let end = json!({ "job": 7, "key": "ctrl-d", "wait_ms": 60_000 });
    let mut said = world.outcome("BashWrite", end).await.llm_text;
    if !said.contains("ended with exit code 0") {
        said += &world.until(7, "ended with exit code 0").await;
    }
    assert!(said.contains("end\n"), "{said:?}");
    let late = json!({ "job": 7, "input": "more" });
    let said = world.outcome("BashWrite", late).await;
    assert_eq!(said.llm_text, "[no new output]\n[job 7 ended with exit code 0]\n");
}

async fn what_cannot_be_typed_is_refused() {
    let mut world = world();
    world.start("sleep 300").await;
    let said = world
        .outcome("BashWrite", json!({ "job": 7, "input": "x" }))
        .await;
    assert_eq!(said.status, ToolStatus::Error);
    assert!(
        said.llm_text.starts_with("Job 7 has no terminal"),
        "{}",
        said.llm_text
    );
    let registry = Registry::builtin(&world.ctx.limits);
    for input in [
        json!({ "job": 7 }),
        json!({ "job": 7, "input": "a\u{3}b" }),
        json!({ "job": 7, "input": "a\u{0}b" }),
        json!({ "job": 7, "key": "f13" }),
        json!({ "job": 7, "input": "x".repeat(16_385) }),
    ] {
        assert!(registry.prepare("BashWrite", &input).is_err());
    }
    let most = json!({ "job": 7, "input": "x".repeat(16_384) });
    assert!(registry.prepare("BashWrite", &most).is_ok());
    // The judged text is the typed text.
    let input = json!({ "job": 7, "input": "rm -rf build\nls" });
    let command = "rm -rf build\nls".to_owned();
    assert_eq!(
        registry.prepare("BashWrite", &input).unwrap().subject,
        Subject::Command { command }
    );
}

async fn a_command_goes_on_in_the_background_as_the_same_process() {
    let mut world = world();
    let command = "mkfifo go; echo first; cat go; echo second; exit 4";
    let call = json!({ "command": command, "yield_ms": 1 });
    let said = world.outcome("Bash", call).await;
    assert_eq!(said.status, ToolStatus::Ok);
    assert!(
        said.llm_text.ends_with(
            "continues as background job 7: read its output with Job, action read; end it with action stop]\n"
        ),
        "{}",
        said.llm_text
    );
    assert_eq!(
        said.details,
        Some(json!({ "job": 7, "running": true, "exit_code": null, "signal": null }))
    );
    let command = command.to_owned();
    assert_eq!(world.news().await, JobNews::Started { job: 7, command });
    let mut text = said.llm_text;
    if !text.contains("first\n") {
        text = world.until(7, "first\n").await;
    }
    assert!(!text.contains("second"), "{text}");
    std::fs::write(world.ctx.workdir.path().join("go"), "now\n").unwrap();
    let text = world.until(7, "ended").await;
    assert!(
        text.contains("now\nsecond\n") && !text.contains("first"),
        "{text}"
    );
    let ended = JobNews::Ended {
        job: 7,
        ending: exited(4),
    };
    assert_eq!(world.news().await, ended);
}

async fn a_command_that_ends_in_time_is_no_job() {
    let mut world = world_with(ToolLimits {
        bash_yield_ms: 100_000,
        ..ToolLimits::default()
    });
    let said = world
        .outcome("Bash", json!({ "command": "echo hi; exit 3" }))
        .await;
    assert_eq!(
        (said.status, said.llm_text.as_str()),
        (ToolStatus::Error, "hi\n[exit code 3]\n")
    );
    assert!(world.news.try_recv().is_err());
    // The call's own setting takes precedence over the operator's: it waits, and its timeout ends the command.
    let call = json!({ "command": "exec sleep 300", "yield_ms": 0, "timeout_ms": 50 });
    assert_eq!(world.outcome("Bash", call).await.status, ToolStatus::Timeout);
    assert!(world.news.try_recv().is_err());
}

async fn without_room_a_command_is_waited_for_to_its_time() {
    let mut world = world_with(ToolLimits {
        max_jobs: 1,
        bash_timeout_ms: 100,
        ..ToolLimits::default()
    });
    world.start("sleep 300").await;
    let call = json!({ "command": "echo hi; exec sleep 300", "yield_ms": 1 });
    let said = world.outcome("Bash", call).await;
    assert_eq!(said.status, ToolStatus::Timeout, "{}", said.llm_text);
}

async fn a_signal_that_ends_a_job_is_told() {
    let mut world = world();
    world.start("kill -TERM $$").await;
    world.news().await;
    let ending = JobEnding::Exited {
        exit_code: None,
        signal: Some(15),
        stopped: None,
    };
    assert_eq!(world.news().await, JobNews::Ended { job: 7, ending });
}
