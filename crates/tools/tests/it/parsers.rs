//! RepoMap with its parsers as real processes: ctags, and the helper for languages with a grammar.

use agentd_file_work::FileWork;
use agentd_process_tests::{Case, Group, cases, skipped};
use agentd_repo_map::{Definition, Kind, Reply, Tags, greeting};
use agentd_sandbox::{Environment, Sandboxing, WardenSpec};
use agentd_tools::{
    AddressGate, Beneath, BlobSource, FileGate, FilesSeen, Jobs, OnStart, ProgressSink, Registry,
    TAGS_PROGRAM, TagProgramSpec, TagPrograms, ToolContext, ToolLimits, WardenSlot,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        languages_without_a_grammar_are_mapped_once,
        options_that_a_tree_brings_along_are_not_followed,
        without_ctags_its_languages_are_left_out,
        another_program_of_the_name_is_not_used,
        i6_one_that_ends_or_never_stops_talking_costs_only_its_file,
        the_helper_maps_files_and_is_asked_about_changed_ones_only,
        i6_a_helper_that_ends_or_talks_nonsense_costs_only_its_file,
        i6_a_helper_that_fails_on_every_file_is_given_up_and_the_rest_comes_next_time,
        without_the_helper_the_map_says_so,
        another_program_in_the_place_of_the_helper_is_not_used,
        i5_a_helper_ends_with_its_work,
    ];
    Group::new("parsers", Duration::from_secs(60), all)
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const LUA: &str = "local M = {}\nfunction M.open_session(name)\nend\nfunction lonely_thing() end\nreturn M\n";

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    ctx: ToolContext,
}

/// A tree next to a directory `bin`, which can be the path.
fn world(path: Option<&str>) -> World {
    let dir = tempfile::tempdir().unwrap();
    let (root, bin) = (dir.path().join("tree"), dir.path().join("bin"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&bin).unwrap();
    let path = path.map_or_else(|| bin.to_str().unwrap().to_owned(), str::to_owned);
    let spec = WardenSpec {
        exe: PathBuf::from("/proc/self/exe"),
        workdir: root.clone(),
        environment: Environment::allowed([("PATH".into(), path.into())], &[]),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    let ctx = ToolContext {
        call: agentd_protocol::ToolCallId::NIL,
        guarding: agentd_tools::Guarding::default(),
        workdir: Arc::new(Beneath::open(&root).unwrap()),
        seen: Arc::new(FilesSeen::default()),
        warden: WardenSlot::new(spec),
        limits: Arc::new(ToolLimits::default()),
        spill_dir: dir.path().join("spill"),
        map_dir: dir.path().join("maps"),
        jobs: Jobs::unheard(),
        blobs: BlobSource::empty(),
        addresses: AddressGate::nobody(),
        files: FileGate::new(|_| std::future::ready(true)),
        file_work: FileWork::of_session("test"),
        search: None,
        parsers: None,
        remote: None,
        progress: ProgressSink::nobody(),
        on_start: OnStart::default(),
    };
    World { _dir: dir, root, ctx }
}

/// A world with the ctags of this machine, if it is installed.
fn with_ctags(what: &str) -> Option<World> {
    let there = |dir: &str| Path::new(dir).join("ctags").exists();
    if !PATH.split(':').any(there) {
        skipped("universal-ctags is not installed", what);
        return None;
    }
    Some(world(Some(PATH)))
}

/// A world with a script in place of ctags.
fn with_script(script: &str) -> World {
    let world = world(None);
    let program = world.root.with_file_name("bin").join("ctags");
    fs::write(&program, format!("#!/bin/sh\nPATH={PATH}\n{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// A world whose helper is a shell script; without one, it is missing.
fn with_helper(script: Option<&str>) -> World {
    let mut world = world(None);
    let bin = world.root.with_file_name("bin");
    let program = bin.join(TAGS_PROGRAM);
    if let Some(script) = script {
        fs::write(&program, format!("#!/bin/sh\nPATH={PATH}\n{script}")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let args = TagProgramSpec {
        program,
        exe: PathBuf::from("/proc/self/exe"),
        workdir: bin,
        sandboxing: Sandboxing::None,
    };
    world.ctx.parsers = Some(Arc::new(TagPrograms::new(args, Handle::current())));
    world
}

/// A helper that notes its requests and answers each with `answer`, a command that sees the content in `$content`.
fn script(answer: &str) -> String {
    let greeting = greeting();
    let header = r#"bytes=${request##*:}; bytes=${bytes%\}}"#;
    format!(
        "echo $$ >>pids\necho '{}'\nwhile read -r request; do echo \"$request\" >>asked\n{header}\n\
         content=$(dd bs=1 count=\"$bytes\" 2>/dev/null)\n{answer}\ndone\n",
        greeting.trim_end()
    )
}

/// The answer of a helper that found one function in the first line.
fn found(name: &str) -> String {
    let definition = Definition {
        name: name.to_owned(),
        kind: Kind::Function,
        line: 1,
    };
    let tags = Tags {
        definitions: vec![definition],
        references: Vec::new(),
    };
    format!("echo '{}'", Reply::Tags(tags).line().trim_end())
}

impl World {
    /// The lines of a file that the helper wrote.
    fn noted(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.root.with_file_name("bin").join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn map(&self) -> (String, Value) {
        let prepared = Registry::builtin(&self.ctx.limits)
            .prepare("RepoMap", &json!({}))
            .unwrap();
        let outcome = agentd_tools::run(&prepared, self.ctx.clone()).await.outcome;
        (outcome.llm_text, outcome.details.unwrap_or_default())
    }
}

async fn languages_without_a_grammar_are_mapped_once() {
    let Some(world) = with_ctags("languages_without_a_grammar_are_mapped_once") else {
        return;
    };
    world.put("z.lua", LUA);
    world.put(
        "a.lua",
        "local z = require('z')\nfunction start_up() z.open_session('x') end\n",
    );
    world.put("m.kt", "class Moon(val a: Int) { fun rise() {} }\n");
    let (text, details) = world.map().await;
    let place = |needle: &str| {
        text.find(needle)
            .unwrap_or_else(|| panic!("{needle} is missing in {text}"))
    };
    assert!(
        place("z.lua:\n    2| function M.open_session(name)") < place("a.lua:"),
        "{text}"
    );
    assert!(text.contains("class Moon"), "{text}");
    assert_eq!((&details["files"], &details["parsed"]), (&json!(3), &json!(3)));
    world.put("m.kt", "class Sun { fun rise() {} }\n");
    let (text, details) = world.map().await;
    assert!(
        text.contains("class Sun") && text.contains("open_session"),
        "{text}"
    );
    assert_eq!((&details["files"], &details["parsed"]), (&json!(3), &json!(1)));
}

async fn options_that_a_tree_brings_along_are_not_followed() {
    let Some(world) = with_ctags("options_that_a_tree_brings_along_are_not_followed") else {
        return;
    };
    world.put("a.lua", LUA);
    for options in [".ctags.d/own.ctags", "ctags.d/own.ctags", ".ctags"] {
        world.put(
            options,
            "--exclude=*\n--kinddef-Lua=x,hijack,hijacks\n--regex-Lua=/return (M)/\\1/x/\n",
        );
    }
    let (text, _) = world.map().await;
    assert!(
        text.contains("open_session") && !text.contains("return M"),
        "{text}"
    );
}

async fn without_ctags_its_languages_are_left_out() {
    let mut world = world(None);
    world.ctx.parsers = Some(Arc::new(agentd_grammars::InProcess));
    world.put("a.lua", LUA);
    world.put("b.rs", "fn here() {}\n");
    let (text, details) = world.map().await;
    assert!(
        text.contains("fn here()") && !text.contains("open_session"),
        "{text}"
    );
    assert_eq!(
        (&details["files"], &details["complete"]),
        (&json!(1), &json!(true))
    );
}

async fn another_program_of_the_name_is_not_used() {
    let tag = r#"{"_type": "tag", "name": "open_session", "line": 2, "kind": "function"}"#;
    let world = with_script(&format!("echo 'ctags of another kind'; echo '{tag}'; cat\n"));
    world.put("a.lua", LUA);
    let (text, details) = world.map().await;
    assert!(!text.contains("open_session"), "{text}");
    assert_eq!(details["files"], json!(0));
}

async fn i6_one_that_ends_or_never_stops_talking_costs_only_its_file() {
    let hello = r#"echo '{"_type": "program", "name": "Universal Ctags"}'; read question"#;
    let tag = r#"{"_type": "tag", "name": "open_session", "line": 2, "kind": "function"}"#;
    let talks = format!("case $question in *bad_end*) exit 1;; *bad_talk*) yes '{tag}';; esac");
    let world = with_script(&format!(
        "{hello}\n{talks}\necho '{tag}'; echo '{{\"_type\": \"completed\"}}'; cat\n"
    ));
    world.put("bad_end.lua", "x");
    world.put("bad_talk.lua", "x");
    world.put("good.lua", LUA);
    let (text, details) = world.map().await;
    assert!(
        text.starts_with("good.lua:\n    2| function M.open_session(name)"),
        "{text}"
    );
    assert_eq!(
        (&details["failed"], &details["complete"]),
        (&json!(2), &json!(true))
    );
}

async fn the_helper_maps_files_and_is_asked_about_changed_ones_only() {
    let world = with_helper(Some(&script(&found("here"))));
    world.put("a.rs", "fn here() {}\n");
    world.put("b.py", "def here(): pass\n");
    let (text, details) = world.map().await;
    assert!(
        text.contains("a.rs:\n    1| fn here() {}") && text.contains("b.py:\n    1| def here(): pass"),
        "{text}"
    );
    assert_eq!((&details["parsed"], &details["failed"]), (&json!(2), &json!(0)));
    world.put("b.py", "def there(): pass\n");
    let (text, details) = world.map().await;
    assert!(text.contains("def there(): pass"), "{text}");
    assert_eq!(details["parsed"], json!(1));
    let asked = [
        r#"{"language":"Rust","bytes":13}"#,
        r#"{"language":"Python","bytes":17}"#,
        r#"{"language":"Python","bytes":18}"#,
    ];
    assert_eq!(world.noted("asked"), asked);
    assert_eq!(world.noted("pids").len(), 2, "one helper for each map");
}

async fn i6_a_helper_that_ends_or_talks_nonsense_costs_only_its_file() {
    let answer = format!(
        "case $content in crash) kill -SEGV $$;; nonsense) echo 'what?';; flood) yes x | tr -d '\\n';; *) {};; esac",
        found("here")
    );
    let world = with_helper(Some(&script(&answer)));
    for bad in ["crash", "flood", "nonsense"] {
        world.put(&format!("{bad}.rs"), bad);
    }
    world.put("a.rs", "fn here() {}\n");
    world.put("z.rs", "fn here() {}\n");
    let (text, details) = world.map().await;
    assert!(text.contains("a.rs:") && text.contains("z.rs:"), "{text}");
    assert_eq!(
        (&details["failed"], &details["files"], &details["complete"]),
        (&json!(3), &json!(5), &json!(true))
    );
    // They are not tried again.
    let asked = world.noted("asked").len();
    let (_, details) = world.map().await;
    assert_eq!(
        (world.noted("asked").len(), &details["complete"]),
        (asked, &json!(true))
    );
}

async fn i6_a_helper_that_fails_on_every_file_is_given_up_and_the_rest_comes_next_time() {
    let world = with_helper(Some(&script("exit 1")));
    for n in 0..6 {
        world.put(&format!("{n}.rs"), &format!("fn f{n}() {{}}\n"));
    }
    let (text, details) = world.map().await;
    assert!(text.contains("Some files were not examined"), "{text}");
    assert_eq!(
        (&details["failed"], &details["complete"]),
        (&json!(4), &json!(false))
    );
    assert_eq!(world.noted("asked").len(), 4);
    let (_, details) = world.map().await;
    assert_eq!(
        (&details["failed"], &details["complete"]),
        (&json!(2), &json!(true))
    );
}

async fn without_the_helper_the_map_says_so() {
    let world = with_helper(None);
    world.put("a.rs", "fn here() {}\n");
    let (text, details) = world.map().await;
    assert!(
        text.contains("agentd-tags, which parses source files, is not in the directory"),
        "{text}"
    );
    assert_eq!((&details["parsed"], &details["failed"]), (&json!(0), &json!(0)));
}

async fn another_program_in_the_place_of_the_helper_is_not_used() {
    let world = with_helper(Some(&format!("echo hello; {}; cat >>asked\n", found("here"))));
    world.put("a.rs", "fn here() {}\n");
    let (text, _) = world.map().await;
    assert!(text.contains("another program, or of another version"), "{text}");
    assert!(!text.contains("fn here()"), "{text}");
    assert_eq!(world.noted("asked"), [""; 0]);
}

async fn i5_a_helper_ends_with_its_work() {
    // It would live on after its standard input has ended.
    let script = format!(
        "trap '' TERM HUP\n{}while :; do sleep 1; done\n",
        script(&found("here"))
    );
    let world = with_helper(Some(&script));
    world.put("a.rs", "fn here() {}\n");
    let (text, _) = world.map().await;
    assert!(text.contains("fn here()"), "{text}");
    let pid: i32 = world.noted("pids")[0].parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() {
        tokio::task::yield_now().await;
    }
}
