//! Commands that would wait for a person end at once and say why, at each level.

use crate::deadline::in_w;
use crate::walls::{environment, found, levels, start};
use agentd_process_tests::{Case, Group};
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{CaptureLimits, CollectSpec, Findings};
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![found, what_waits_for_a_person_ends_at_once];
    Group::new("unattended", Duration::from_secs(300), all)
}

/// Scripts, and a part of what they say.
const WAITING: [(&str, &str); 7] = [
    (
        "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit --allow-empty; echo code $?",
        "There is no editor here",
    ),
    (
        "sh -c \"$(git var GIT_SEQUENCE_EDITOR) file\"; echo code $?",
        "There is no editor here",
    ),
    (
        "\"$EDITOR\" file 2>&1 || sh -c \"$VISUAL file\"; echo code $?",
        "There is no editor here",
    ),
    ("read -r line </dev/tty; echo code $?", "/dev/tty: No such device"),
    ("read -r line; echo code $?", "code 1"),
    (
        "echo $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT",
        "dumb cat cat 0",
    ),
    // npm would wait for the answer of its registry, whose retries take over a minute.
    (
        "command -v npm >/dev/null || { echo package name; exit; }; mkdir n && cd n && npm init </dev/null; echo code $?",
        "package name",
    ),
];

async fn what_waits_for_a_person_ends_at_once(found: Findings) {
    for level in [SandboxLevel::None].into_iter().chain(levels(&found)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let warden = start(level, dir.path(), environment().unattended(&[])).await;
        let spec = CollectSpec {
            time: Duration::from_secs(60),
            limits: CaptureLimits::default(),
            spill_dir: dir.path().join("spill"),
            spill_bytes: 1 << 20,
        };
        for (script, said) in WAITING {
            let running = warden.run(in_w(dir.path(), script)).await.unwrap();
            let done = running.collect(&spec, |_| {}).await.unwrap();
            let text = String::from_utf8_lossy(done.output.head()).into_owned();
            assert!(!done.timed_out, "{level:?}: {script}: {text}");
            assert!(text.contains(said), "{level:?}: {script}: {text}");
        }
    }
}
