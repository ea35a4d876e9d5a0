//! Hooks as real commands.

use agentd_hooks::{Ended, Launch as _, Setup as _, SetupArgs, SetupCommands, WardenLaunch};
use agentd_process_tests::{Case, Group, cases, skipped};
use agentd_protocol::{HookEvent, SandboxLevel, WorkspacePrepared};
use agentd_sandbox::{Bounds, Environment, Finding, ProbeSpec, Sandboxing, probe, readable};
use agentd_settings::HookConfig;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_hook_reads_what_happened_and_its_outputs_are_apart,
        a_hook_that_reads_nothing_and_a_large_input_get_along,
        i5_a_hook_out_of_time_is_ended_with_all_that_it_started,
        an_endless_answer_is_a_failure,
        a_program_that_is_not_there_is_a_failure,
        i7_without_the_walls_that_are_asked_for_no_hook_runs,
        setup_commands_run_in_order_and_the_first_failure_ends_them,
        i5_setup_commands_out_of_time_are_ended_with_all_that_they_started,
        behind_walls_a_hook_reads_its_program_and_not_what_is_beside_it,
    ];
    Group::new("commands", Duration::from_secs(60), all)
}

fn shell(script: &str, timeout: Duration) -> HookConfig {
    HookConfig {
        timeout,
        ..HookConfig::new("h", HookEvent::PreToolUse, &["/bin/sh", "-c", script])
    }
}

fn environment() -> Environment {
    Environment::allowed([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())], &[])
}

async fn ended(hook: &HookConfig, sandboxing: Sandboxing, input: Vec<u8>) -> (Ended, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let launch = WardenLaunch::new(
        std::env::current_exe().unwrap(),
        environment(),
        sandboxing,
        dir.path().join("spill"),
    );
    (launch.launch(hook, dir.path(), input).await, dir)
}

const LONG: Duration = Duration::from_secs(50);

async fn a_hook_reads_what_happened_and_its_outputs_are_apart() {
    let hook = shell("read line; echo \"$line\"; echo no >&2; exit 2", LONG);
    let (ended, _dir) = ended(&hook, Sandboxing::None, b"{\"a\":1}\n".to_vec()).await;
    let expected = Ended::Exited {
        code: Some(2),
        stdout: "{\"a\":1}\n".to_owned(),
        stderr: "no\n".to_owned(),
    };
    assert_eq!(ended, expected);
}

async fn a_hook_that_reads_nothing_and_a_large_input_get_along() {
    let hook = shell("echo fine", LONG);
    let (ended, _dir) = ended(&hook, Sandboxing::None, vec![b'x'; 4 << 20]).await;
    let expected = Ended::Exited {
        code: Some(0),
        stdout: "fine\n".to_owned(),
        stderr: String::new(),
    };
    assert_eq!(ended, expected);
}

async fn i5_a_hook_out_of_time_is_ended_with_all_that_it_started() {
    let script = "setsid sleep 1000 & echo $! > left; trap '' TERM; sleep 1000";
    let hook = shell(script, Duration::from_secs(5));
    let (ended, dir) = ended(&hook, Sandboxing::None, Vec::new()).await;
    assert_eq!(ended, Ended::TimedOut);
    let left = std::fs::read_to_string(dir.path().join("left")).unwrap();
    let left = format!("/proc/{}", left.trim());
    assert!(!std::path::Path::new(&left).exists(), "{left} is there");
}

async fn prepared(commands: &[&str], within: Duration) -> (WorkspacePrepared, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let setup = SetupCommands::new(SetupArgs {
        commands: commands.iter().map(|&command| command.to_owned()).collect(),
        within,
        exe: std::env::current_exe().unwrap(),
        environment: environment(),
        sandboxing: Sandboxing::None,
        bounds: Bounds::default(),
        network: None,
        spill_dir: dir.path().join("spill"),
    });
    (setup.prepare(dir.path()).await, dir)
}

async fn setup_commands_run_in_order_and_the_first_failure_ends_them() {
    let (good, dir) = prepared(&["echo one > a", "cat a; pwd"], LONG).await;
    assert_eq!(good.error, None, "{good:?}");
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(good.commands[1].output, format!("one\n{}\n", here.display()));
    let (bad, dir) = prepared(&["echo no space >&2; exit 3", "touch after"], LONG).await;
    assert_eq!((bad.commands.len(), bad.commands[0].exit_code), (1, Some(3)));
    let why = bad.error.unwrap();
    assert!(why.contains("exit code 3: no space"), "{why}");
    assert!(!dir.path().join("after").exists());
}

async fn i5_setup_commands_out_of_time_are_ended_with_all_that_they_started() {
    let script = "setsid sleep 1000 & echo $! > left; trap '' TERM; sleep 1000";
    let (late, dir) = prepared(&[script, "touch after"], Duration::from_secs(5)).await;
    assert!(late.error.as_ref().unwrap().contains("took too long"), "{late:?}");
    assert_eq!((late.commands.len(), late.commands[0].exit_code), (1, None));
    let left = std::fs::read_to_string(dir.path().join("left")).unwrap();
    let left = format!("/proc/{}", left.trim());
    assert!(!std::path::Path::new(&left).exists(), "{left} is there");
    assert!(!dir.path().join("after").exists());
}

async fn an_endless_answer_is_a_failure() {
    let (ended, _dir) = ended(&shell("exec yes", LONG), Sandboxing::None, Vec::new()).await;
    assert_eq!(ended, Ended::Failed("its answer is too long".to_owned()));
}

async fn a_program_that_is_not_there_is_a_failure() {
    let mut hook = shell("", LONG);
    hook.command = vec!["/nowhere/check".to_owned()];
    let (ended, _dir) = ended(&hook, Sandboxing::None, Vec::new()).await;
    assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
}

async fn i7_without_the_walls_that_are_asked_for_no_hook_runs() {
    let refusal = agentd_sandbox::Refusal {
        message: "no walls".to_owned(),
        fix: "build some".to_owned(),
    };
    let (ended, dir) = ended(
        &shell("echo > ran", LONG),
        Sandboxing::Missing(refusal),
        Vec::new(),
    )
    .await;
    assert!(matches!(ended, Ended::Failed(_)), "{ended:?}");
    assert!(!dir.path().join("ran").exists());
}

/// A missing program is a mistake of who runs the tests, a missing feature of the kernel is not.
fn report(level: SandboxLevel, missing: &str) {
    let kind = if missing.contains("on the PATH") {
        ""
    } else {
        "kernel: "
    };
    skipped(&format!("{kind}{missing}"), &format!("hooks: {level:?}"));
}

async fn behind_walls_a_hook_reads_its_program_and_not_what_is_beside_it() {
    // Not below /tmp, which the sandbox replaces with another directory.
    let beside = std::env::current_exe().unwrap();
    let programs = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
    let secret = programs.path().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let program = programs.path().join("check");
    let script = format!(
        "#!/bin/sh\ncat {} 2>/dev/null && exit 3\necho > here\n",
        secret.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut hook = shell("", LONG);
    hook.command = vec![program.to_str().unwrap().to_owned()];
    let environment = environment();
    let data = tempfile::tempdir().unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment.clone(),
        read: Vec::new(),
        data_dir: data.path().to_owned(),
    };
    let found = probe(&spec).await.unwrap();
    let exits = |code| Ended::Exited {
        code: Some(code),
        stdout: if code == 0 {
            String::new()
        } else {
            "hidden".to_owned()
        },
        stderr: String::new(),
    };
    let (open, _dir) = ended(&hook, Sandboxing::None, Vec::new()).await;
    assert_eq!(open, exits(3), "without walls the secret can be read");
    for (level, finding) in [
        (SandboxLevel::Confined, found.confined),
        (SandboxLevel::Isolated, found.isolated),
    ] {
        if let Finding::Missing(why) = finding {
            report(level, &why.message);
            continue;
        }
        let walls = Sandboxing::Walls {
            builder: agentd_sandbox::Builder::default(),
            hidden: agentd_sandbox::Hidden::default(),
            level,
            temp: data.path().join("tmp"),
            read: readable(&environment, &[]),
            protected: agentd_protected::ProtectedPaths::default(),
            broker: true,
            workspaces: std::path::PathBuf::new(),
        };
        let (behind, dir) = ended(&hook, walls, Vec::new()).await;
        assert_eq!(behind, exits(0), "{level:?}");
        assert!(dir.path().join("here").exists(), "{level:?}");
    }
}
