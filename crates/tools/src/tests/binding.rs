//! The binding of an approval, and the changes that void it.

use super::*;
use crate::{Prepared, Subject};
use agentd_protocol::Binding;
use serde_json::json;
use std::path::Path;

fn environment(value: &str) -> Environment {
    Environment::default().with("PATH", "/bin").with("GRANTED", value)
}

fn call(name: &str, input: &Value) -> Prepared {
    Registry::builtin(&ToolLimits::default())
        .prepare(name, input)
        .unwrap()
}

fn bash(command: &str) -> Prepared {
    call("Bash", &json!({ "command": command }))
}

fn bind(world: &World, prepared: &Prepared, value: &str) -> Binding {
    let beneath = Beneath::open(&world.root()).unwrap();
    prepared.binding(&beneath, &environment(value), 1_000).unwrap()
}

/// The message about a change between question and run; `None` if the approval still holds.
fn told(world: &World, asked: &Prepared, runs: &Prepared, change: impl FnOnce()) -> Option<String> {
    let bound = bind(world, asked, "a");
    change();
    let refused = runs.unbound(&bound, Ok(bind(world, runs, "a")))?;
    assert_eq!(
        (refused.status, code(&refused)),
        (ToolStatus::Denied, "E_CHANGED".into())
    );
    Some(refused.llm_text)
}

#[test]
fn redteam_45_i7_a_changed_script_argument_place_or_environment_voids_an_approval() {
    let world = World::new();
    world
        .put("x.sh", "echo good\n")
        .put("log", "one\n")
        .put("other/x.sh", "echo good\n");
    let root = world.root();
    let run = bash("sh x.sh");
    // Positive control: no change, or only a change that the command does not depend on.
    assert_eq!(told(&world, &run, &run, || {}), None);
    let touches = bash("touch x");
    assert_eq!(
        told(&world, &touches, &touches, || _ = world.put("log", "two\n")),
        None
    );
    let reads = bash("tail log");
    assert_eq!(
        told(&world, &reads, &reads, || _ = world.put("log", "three\n")),
        None
    );

    let said = told(&world, &run, &run, || _ = world.put("x.sh", "echo bad\n")).unwrap();
    assert!(said.contains("the file x.sh"), "{said}");
    let said = told(&world, &run, &bash("sh x.sh --force"), || {}).unwrap();
    assert!(said.contains("the arguments of the call"), "{said}");
    let said = told(&world, &run, &run, || fs::remove_file(root.join("x.sh")).unwrap()).unwrap();
    assert!(said.contains("the file x.sh"), "{said}");
    let said = told(&world, &run, &run, || {
        std::os::unix::fs::symlink("other/x.sh", root.join("x.sh")).unwrap();
    });
    assert!(
        said.unwrap().contains("the file x.sh"),
        "a script that was not there before"
    );
    // A link that is retargeted to another script.
    let said = told(&world, &run, &run, || {
        world.put("evil.sh", "echo bad\n");
        fs::remove_file(root.join("x.sh")).unwrap();
        std::os::unix::fs::symlink("evil.sh", root.join("x.sh")).unwrap();
    });
    assert!(said.unwrap().contains("the file x.sh"));
    let before = bind(&world, &run, "a");
    let refused = run.unbound(&before, Ok(bind(&world, &run, "b"))).unwrap();
    assert!(refused.llm_text.contains("the environment of commands"));
    let elsewhere = World::new();
    let refused = run.unbound(&before, Ok(bind(&elsewhere, &run, "a"))).unwrap();
    assert!(refused.llm_text.contains("the working directory"));
    let unknown = run.unbound(&before, Err("the disk is gone".into())).unwrap();
    assert!(
        unknown.llm_text.contains("the disk is gone"),
        "what cannot be found out is denied"
    );
}

#[test]
fn i7_redteam_a_changed_tool_description_voids_an_approval() {
    let world = World::new();
    let served = |description: &str| {
        let tool = super::remote::tool("mcp__s__run", description, &json!({ "type": "object" }));
        Registry::builtin(&ToolLimits::default())
            .with([tool])
            .prepare("mcp__s__run", &json!({}))
            .unwrap()
    };
    let asked = served("Adds two numbers.");
    assert_eq!(told(&world, &asked, &served("Adds two numbers."), || {}), None);
    let said = told(&world, &asked, &served("Deletes what it is given."), || {}).unwrap();
    assert!(said.contains("the description or schema of the tool"), "{said}");
    let like = |prepared: &Prepared| crate::likeness(&bind(&world, prepared, "a"));
    assert_ne!(like(&asked), like(&served("Deletes what it is given.")));
}

#[test]
fn redteam_45_i7_a_changed_target_voids_the_approval_of_an_edit() {
    let world = World::new();
    world.put("a", "1\n");
    let edit = call(
        "Edit",
        &json!({ "file_path": "a", "old_string": "1", "new_string": "2" }),
    );
    assert_eq!(told(&world, &edit, &edit, || {}), None, "positive control");
    let said = told(&world, &edit, &edit, || _ = world.put("a", "1\n1\n")).unwrap();
    assert!(said.contains("the file a"), "{said}");
    let write = call("Write", &json!({ "file_path": "new", "content": "x" }));
    let said = told(&world, &write, &write, || _ = world.put("new", "mine\n")).unwrap();
    assert!(said.contains("the file new"), "{said}");
}

#[test]
fn i8_the_environment_is_bound_without_being_shown() {
    let world = World::new();
    let bound = bind(&world, &bash("true"), "hunter2");
    let text = serde_json::to_string(&bound).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("GRANTED"), "{text}");
    assert!(
        bind(&world, &call("Read", &json!({ "file_path": "a" })), "x")
            .environment
            .is_none()
    );
}

#[test]
fn i6_a_command_about_too_many_files_cannot_be_approved() {
    let world = World::new();
    let names: Vec<String> = (0..257).map(|n| format!("f{n}")).collect();
    for name in &names {
        world.put(name, "x");
    }
    let beneath = Beneath::open(&world.root()).unwrap();
    let bound = |count: usize| {
        let command = format!("sh {}", names.get(..count).unwrap().join(" "));
        bash(&command).binding(&beneath, &environment("a"), 1_000)
    };
    let files = bound(256).unwrap().files;
    assert_eq!(files.keys().filter(|name| name.starts_with('f')).count(), 256);
    assert!(bound(257).unwrap_err().contains("256"));
}

#[test]
fn redteam_46_a_call_cannot_weaken_the_sandbox_or_change_session() {
    let registry = Registry::builtin(&ToolLimits::default());
    let refused = |name: &str, input: &Value| code(&registry.prepare(name, input).unwrap_err());
    assert!(
        registry.prepare("Bash", &json!({ "command": "ls" })).is_ok(),
        "positive control"
    );
    for extra in [
        json!({ "command": "ls", "sandbox": "off" }),
        json!({ "command": "ls", "dangerously_disable_sandbox": true }),
        json!({ "command": "ls", "session": "0192" }),
        json!({ "command": "ls", "env": { "LD_PRELOAD": "x" } }),
        json!({ "command": "ls", "timeout_ms": 86_400_000 }),
    ] {
        assert_eq!(refused("Bash", &extra), "E_INVALID_ARGS", "{extra}");
    }
    assert_eq!(
        refused("Read", &json!({ "file_path": "a", "session": "0192" })),
        "E_INVALID_ARGS"
    );
    // The `workdir` argument bypasses no check: it becomes part of the command that is judged, approved and run.
    let elsewhere = json!({ "command": "ls", "workdir": "/etc" });
    let command = "cd -- /etc && ls".to_owned();
    assert_eq!(
        registry.prepare("Bash", &elsewhere).unwrap().subject,
        Subject::Command { command }
    );
}

fn contents(world: &World, command: &str) -> BTreeMap<String, String> {
    let beneath = Beneath::open(&world.root()).unwrap();
    bash(command).contents(&beneath, &environment("a")).unwrap()
}

/// The state of the files that the command runs, before and after a change.
fn both(
    world: &World,
    command: &str,
    change: impl FnOnce(),
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let before = contents(world, command);
    change();
    (before, contents(world, command))
}

#[test]
fn redteam_60_i7_every_way_to_replace_what_a_command_runs_changes_its_contents() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    let (root, write) = (world.root(), |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap();
    });
    let put = |name: &str, text: &str| write(&root.join(name), text);
    let link = |to: &Path, name: &str| {
        std::fs::remove_file(root.join(name)).unwrap();
        std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    };
    std::fs::create_dir(root.join("sub")).unwrap();
    for name in [
        "build.sh",
        "other.sh",
        "sub/build.sh",
        "Makefile",
        "other.mk",
        "package.json",
        "same.sh",
    ] {
        put(name, "echo one\n");
    }
    write(&outside.path().join("evil.sh"), "echo evil\n");
    let differs = |why: &str, command: &str, change: &dyn Fn()| {
        let control = both(&world, command, || ());
        assert_eq!(control.0, control.1, "control: {why}");
        let (before, after) = both(&world, command, change);
        assert_ne!(before, after, "{why}: {command}");
    };
    differs("replaced", "sh build.sh", &|| put("build.sh", "echo two\n"));
    differs("a link inside", "sh build.sh", &|| {
        link(&root.join("other.sh"), "build.sh");
    });
    put("other.sh", "echo three\n");
    differs("a link outside", "sh build.sh", &|| {
        link(&outside.path().join("evil.sh"), "build.sh");
    });
    differs("its target outside", "sh build.sh", &|| {
        write(&outside.path().join("evil.sh"), "echo worse\n");
    });
    differs("in a shell", "bash -c 'sh same.sh'", &|| {
        put("same.sh", "echo 2\n");
    });
    differs("of a subdirectory", "env -C sub sh build.sh", &|| {
        put("sub/build.sh", "echo 2\n");
    });
    differs("by cd", "bash -c 'cd sub; sh build.sh'", &|| {
        put("sub/build.sh", "echo 3\n");
    });
    differs("a Makefile", "make", &|| put("Makefile", "two:\n"));
    differs("a preferred Makefile", "make", &|| put("GNUmakefile", "three:\n"));
    differs("another Makefile", "make -fother.mk", &|| {
        put("other.mk", "two:\n");
    });
    differs("package.json", "npm run x", &|| put("package.json", "{}"));
    differs("removed", "sh same.sh", &|| {
        std::fs::remove_file(root.join("same.sh")).unwrap();
    });
}

#[test]
fn the_same_content_is_the_same_in_another_directory() {
    let (one, other) = (World::new(), World::new());
    for world in [&one, &other] {
        std::fs::write(world.root().join("x.sh"), "echo x\n").unwrap();
    }
    assert_eq!(contents(&one, "sh x.sh"), contents(&other, "sh x.sh"));
    assert!(contents(&one, "ls").is_empty() && !bash("ls").runs_files() && bash("sh x.sh").runs_files());
}

#[test]
fn redteam_60_i7_a_script_that_changes_after_the_verdict_does_not_run() {
    let world = World::new();
    let script = world.root().join("x.sh");
    std::fs::write(&script, "echo one\n").unwrap();
    let (call, judged) = (bash("sh x.sh"), contents(&world, "sh x.sh"));
    assert_eq!(call.replaced(&judged, Ok(judged.clone())), None, "control");
    std::fs::write(&script, "echo two\n").unwrap();
    let refused = call.replaced(&judged, Ok(contents(&world, "sh x.sh"))).unwrap();
    assert_eq!(
        (refused.status, code(&refused)),
        (ToolStatus::Denied, "E_CHANGED".into())
    );
    assert!(
        refused
            .llm_text
            .contains("x.sh changed after the call was judged"),
        "{}",
        refused.llm_text
    );
    assert!(
        call.replaced(&judged, Err("no answer".into())).is_some(),
        "unknown is not unchanged"
    );
}
