//! The daemon kills children that nobody started, and spares the git processes that it runs itself.

use agentd_git::{GitEnvironment, Run};
use agentd_process_tests::{Case, Group, cases};
use agentd_sandbox::Strays;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![i5_a_stray_is_killed_and_a_running_git_is_not];
    Group::new("strays", Duration::from_secs(120), all)
}

static TOLD: Mutex<Option<UnboundedSender<usize>>> = Mutex::new(None);

#[expect(clippy::disallowed_methods, reason = "a child that the daemon did not start")]
fn stray() -> std::io::Result<std::process::Child> {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).spawn()
}

async fn i5_a_stray_is_killed_and_a_running_git_is_not() {
    let (to, mut told) = unbounded_channel();
    *TOLD.lock().unwrap() = Some(to);
    let strays = Strays::adopt(|count| {
        if let Some(to) = &*TOLD.lock().unwrap() {
            let _ = to.send(count);
        }
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let environment = GitEnvironment::default();
    agentd_git::git(
        &environment,
        Run::new(dir.path(), Duration::from_secs(60), ["init", "-q", "--bare"]),
    )
    .await
    .unwrap();
    // It waits for its input.
    let mut git = agentd_git::start(&environment, &Run::bare(dir.path(), ["cat-file", "--batch"])).unwrap();
    let mut stray = stray().unwrap();
    assert_eq!(told.recv().await, Some(1));
    assert!(git.try_wait().unwrap().is_none(), "git was killed");
    // Its exit status was taken by whoever killed it.
    assert!(!matches!(stray.try_wait(), Ok(None)), "the stray lives");
    assert_eq!(strays.end().await, 1, "the daemon's end is git's end");
}
