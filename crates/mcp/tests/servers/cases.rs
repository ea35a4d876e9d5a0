//! The cases with fake servers, and the list of all cases.

use crate::npm;
use agentd_mcp::{
    Call, CallAnswer, Command, Limits, McpError, OnProgress, Pool, ServerSpec, Transport, Walls, WardenLaunch,
};
use agentd_process_tests::{Case, Group, cases};
use agentd_protocol::{SandboxLevel, ToolStatus};
use agentd_sandbox::{Environment, Finding, ProbeSpec, Refusal, Sandboxing, probe, readable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_server_runs_in_its_working_directory_and_words_before_it_are_passed_over,
        i3_a_crash_in_a_call_is_told_with_the_last_error_line,
        a_server_that_does_not_start_is_told_with_its_error,
        i6_babble_ends_a_server_and_not_the_daemon,
        i6_a_server_that_asks_and_never_reads_is_given_up,
        a_line_that_is_too_long_is_passed_over,
        a_huge_result_is_cut,
        i8_a_server_sees_the_listed_environment_only,
        i5_what_a_server_started_ends_with_it,
        a_server_is_behind_the_walls_unless_the_operator_says_otherwise,
        i7_where_the_walls_are_missing_no_server_starts,
        npm::the_everything_server_works_over_its_pipes,
        npm::a_call_of_the_everything_server_can_be_given_up,
        npm::the_everything_server_works_over_http,
        npm::the_filesystem_server_works,
        npm::the_client_passes_the_core_of_the_conformance_suite,
    ];
    Group::new("", Duration::from_secs(300), all)
}

/// A pool whose servers see these variables in addition to PATH and HOME.
pub(crate) fn pool(specs: Vec<ServerSpec>) -> Pool {
    behind(Sandboxing::None, specs)
}

fn behind(sandboxing: Sandboxing, specs: Vec<ServerSpec>) -> Pool {
    let launch = WardenLaunch::new(PathBuf::from("/proc/self/exe"), environment(), sandboxing);
    Pool::new(specs, Arc::new(launch), agentd_mcp::http_client().unwrap()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "where the programs of the tests are")]
fn environment() -> Environment {
    let path = std::env::var("PATH").unwrap();
    let source = [
        ("PATH", path.as_str()),
        ("HOME", "/tmp"),
        ("ANTHROPIC_API_KEY", "canary"),
    ];
    Environment::allowed(source.map(|(name, value)| (name.into(), value.into())), &[])
}

pub(crate) fn stdio(name: &str, argv: Vec<String>) -> ServerSpec {
    let env = BTreeMap::from([("GIVEN".to_owned(), "to you".to_owned())]);
    ServerSpec {
        limits: Limits {
            start: Duration::from_secs(60),
            call: Duration::from_secs(60),
            idle: Duration::from_secs(600),
        },
        ..ServerSpec::new(
            name,
            Transport::Stdio(Command {
                env,
                ..Command::new(argv)
            }),
        )
    }
}

pub(crate) async fn call(pool: &Pool, workdir: &Path, name: &str, arguments: &Value) -> CallAnswer {
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap();
    let call = Call {
        name: name.to_owned(),
        arguments,
        time: None,
        max_bytes: 50_000,
        on_progress: OnProgress::default(),
    };
    pool.call(workdir, call).await
}

fn played(mode: &str) -> Pool {
    let exe = std::env::current_exe().unwrap().display().to_string();
    pool(vec![stdio(
        "played",
        vec![exe, "__server".to_owned(), mode.to_owned()],
    )])
}

async fn go(pool: &Pool) -> CallAnswer {
    call(pool, Path::new("/tmp"), "mcp__played__go", &serde_json::json!({})).await
}

async fn a_server_runs_in_its_working_directory_and_words_before_it_are_passed_over() {
    let pool = played("noisy");
    let answer = go(&pool).await.outcome;
    assert_eq!(
        (answer.status, answer.llm_text.as_str()),
        (ToolStatus::Ok, "/tmp")
    );
    assert!(pool.close(Duration::from_secs(60)).await);
}

async fn i3_a_crash_in_a_call_is_told_with_the_last_error_line() {
    let pool = played("crash");
    for _ in 0..2 {
        let answer = go(&pool).await.outcome;
        assert_eq!((answer.status, answer.outcome_unknown), (ToolStatus::Error, true));
        let text = answer.llm_text;
        assert!(
            text.starts_with("tool server played has ended: it was killed by signal 6"),
            "{text}"
        );
    }
}

async fn a_server_that_does_not_start_is_told_with_its_error() {
    let pool = played("broken");
    let listings = pool.offers(Path::new("/tmp")).await;
    let Err(McpError::Initialize { why, .. }) = &listings[0].offers else {
        panic!("{listings:?}")
    };
    assert!(why.starts_with("it ended with exit code 3"), "{why}");
    let missing = super::cases::pool(vec![stdio("none", vec!["/no/such/program".to_owned()])]);
    let listings = missing.offers(Path::new("/tmp")).await;
    assert!(
        matches!(listings[0].offers, Err(McpError::Start { .. })),
        "{listings:?}"
    );
}

async fn i6_babble_ends_a_server_and_not_the_daemon() {
    let pool = played("babble");
    let listings = pool.offers(Path::new("/tmp")).await;
    assert!(
        matches!(listings[0].offers, Err(McpError::Initialize { .. })),
        "{listings:?}"
    );
    let in_call = played("babble-in-call");
    let answer = go(&in_call).await.outcome;
    assert_eq!((answer.status, answer.outcome_unknown), (ToolStatus::Error, true));
}

async fn i6_a_server_that_asks_and_never_reads_is_given_up() {
    let answer = go(&played("asking")).await.outcome;
    assert_eq!((answer.status, answer.outcome_unknown), (ToolStatus::Error, true));
}

async fn a_line_that_is_too_long_is_passed_over() {
    let answer = go(&played("long-line")).await.outcome;
    assert_eq!(answer.llm_text, "after a long line");
}

async fn a_huge_result_is_cut() {
    let answer = go(&played("huge")).await;
    assert!(answer.outcome.llm_text.len() < 51_000);
    assert_eq!(answer.outcome.truncated.map(|cut| cut.bytes), Some(4 << 20));
    assert_eq!(answer.whole.map(|whole| whole.len()), Some(4 << 20));
}

async fn i8_a_server_sees_the_listed_environment_only() {
    let answer = go(&played("environment")).await.outcome;
    let names: Vec<&str> = answer
        .llm_text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        // The mark that the warden itself sets.
        .filter(|name| !name.starts_with("AGENTD_"))
        .collect();
    assert_eq!(names, ["GIVEN", "HOME", "PATH", "PWD"]);
}

async fn i5_what_a_server_started_ends_with_it() {
    let pool = played("family");
    let pid: i32 = go(&pool).await.outcome.llm_text.parse().unwrap();
    let process = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    assert!(pool.close(Duration::from_secs(60)).await);
    let within = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&within)).unwrap(), 1);
}

/// A server that writes to a given path.
fn writing(walls: Walls) -> ServerSpec {
    let exe = std::env::current_exe().unwrap();
    let argv = [&exe.display().to_string(), "__server", "writing"].map(str::to_owned);
    let command = Command {
        walls,
        read: vec![exe.parent().unwrap().to_owned()],
        ..Command::new(argv.into())
    };
    ServerSpec::new("played", Transport::Stdio(command))
}

async fn a_server_is_behind_the_walls_unless_the_operator_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let (workdir, outside) = (dir.path().join("w"), dir.path().join("outside"));
    std::fs::create_dir(&workdir).unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: dir.path().join("data"),
    };
    let found = probe(&spec).await.unwrap();
    for (level, finding) in [
        (SandboxLevel::Confined, found.confined),
        (SandboxLevel::Isolated, found.isolated),
    ] {
        if let Finding::Missing(why) = finding {
            let test = "a_server_is_behind_the_walls_unless_the_operator_says_otherwise";
            // In CI a program that could be installed is no reason to skip the test.
            let installable = why.message.contains("on the PATH");
            let kind = if installable { "" } else { "kernel: " };
            npm::skipped(test, &format!("{kind}{}", why.message));
            continue;
        }
        for (walls, path, written) in [
            (Walls::None, &outside, true),
            (Walls::Node, &workdir.join("inside"), true),
            (Walls::Node, &outside, false),
        ] {
            let sandboxing = Sandboxing::Walls {
                builder: agentd_sandbox::Builder::default(),
                hidden: agentd_sandbox::Hidden::default(),
                level,
                temp: dir.path().join("temp"),
                read: readable(&environment(), &[]),
                protected: agentd_protected::ProtectedPaths::default(),
                broker: true,
                workspaces: PathBuf::new(),
            };
            let pool = behind(sandboxing, vec![writing(walls)]);
            let arguments = serde_json::json!({ "path": path });
            let answer = call(&pool, &workdir, "mcp__played__go", &arguments).await.outcome;
            assert_eq!(answer.status, ToolStatus::Ok, "{answer:?}");
            assert!(pool.close(Duration::from_secs(60)).await);
            // Sandboxed servers may write to a private temporary directory that has the same name.
            assert_eq!(path.exists(), written, "{level:?} {walls:?}: {answer:?}");
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn i7_where_the_walls_are_missing_no_server_starts() {
    let missing = Sandboxing::Missing(Refusal {
        message: "no walls here".to_owned(),
        fix: "build some".to_owned(),
    });
    let listings = behind(missing.clone(), vec![writing(Walls::Node)])
        .offers(Path::new("/tmp"))
        .await;
    assert!(
        matches!(listings[0].offers, Err(McpError::Start { .. })),
        "{listings:?}"
    );
    let listings = behind(missing, vec![writing(Walls::None)])
        .offers(Path::new("/tmp"))
        .await;
    assert!(listings[0].offers.is_ok(), "{listings:?}");
}
