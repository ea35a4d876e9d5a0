//! The sandbox around commands with real processes and a real kernel: each attack must fail at each level of this machine,
//! and the same input must succeed without a sandbox. The numbers are rows of the list of attacks.

use agentd_process_tests::{Case, Group, skipped};
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel::{self, Confined, Isolated, None as Open};
use agentd_sandbox::{
    Builder, CaptureLimits, CollectSpec, CommandSpec, Confinement, Environment, Finding, Findings, Hidden,
    ProbeSpec, Warden, WardenSlot, WardenSpec, probe, readable, recorded,
};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The first argument of a daemon that will be killed.
pub(crate) const DAEMON: &str = "__walls_daemon";

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![
        found,
        what_agents_need_works_at_each_level,
        what_was_found_out_is_kept,
        redteam_20_a_hostile_build_script_builds_and_does_no_harm,
        redteam_21_a_link_does_not_lead_out,
        redteam_21_the_ground_of_the_walls_stays_what_it_was,
        redteam_26_a_repository_keeps_its_hooks,
        redteam_26_a_repository_is_not_led_to_another_configuration,
        redteam_26_what_a_configuration_includes_stays,
        redteam_27_a_repository_within_has_no_say_over_the_one_around_it,
        redteam_28_files_for_other_programs_have_no_effect_on_this_session,
        redteam_31_memory_of_others_is_not_shared,
        programs_and_checkouts_below_the_temporary_directory_work,
        redteam_29_the_home_directory_is_out_of_reach,
        redteam_30_i8_no_environment_holds_a_secret,
        redteam_31_processes_outside_cannot_be_touched,
        redteam_32_no_socket_is_reached,
        redteam_33_nothing_is_sent,
        redteam_33_interfaces_are_named_and_not_changed,
        redteam_37_calls_that_no_rule_knows_do_not_exist,
        redteam_37_dangerous_calls_are_refused,
        redteam_38_no_descriptor_leaks,
        redteam_39_i5_nothing_is_left_behind,
        redteam_39_i5_nothing_outlives_a_daemon_that_was_killed,
        redteam_31_priorities_of_others_stay,
        redteam_54_a_place_that_was_made_before_is_not_used,
        redteam_37_the_kernel_is_not_set,
        a_command_has_no_capability_and_gains_none,
        both_builders_show_the_same_files,
        the_next_slot_of_a_session_starts_after_the_end_of_the_earlier_one,
        redteam_8_denied_reads_are_unreadable,
        redteam_4_published_escapes_from_namespaces_fail,
        nothing_is_left_behind_in_the_working_directory,
        the_list_of_operations_has_the_answers_that_the_documentation_says,
    ];
    Group::new("walls", Duration::from_secs(120), all)
}

/// What the kernel offers; what it lacks is reported once.
pub(crate) async fn found() -> Option<Findings> {
    static FOUND: OnceCell<Findings> = OnceCell::const_new();
    Some(FOUND.get_or_init(reported).await.clone())
}

async fn reported() -> Findings {
    let found = find_out().await;
    println!("{found:?}");
    for (level, finding) in [("isolated", &found.isolated), ("confined", &found.confined)] {
        if let Finding::Missing(why) = finding {
            let kind = if why.message.contains("on the PATH") {
                ""
            } else {
                "kernel: "
            };
            skipped(&format!("{kind}{}", why.message), &format!("walls: {level}"));
        }
    }
    found
}

pub(crate) fn environment() -> Environment {
    let kept = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
    let ours = std::env::vars_os().filter(|(name, _)| kept.iter().any(|kept| name == kept));
    Environment::allowed(ours, &["CARGO_HOME".to_owned(), "RUSTUP_HOME".to_owned()])
}

async fn find_out() -> Findings {
    let dir = tempfile::tempdir().unwrap();
    probe(&probe_spec(dir.path())).await.unwrap()
}

fn probe_spec(data_dir: &Path) -> ProbeSpec {
    ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: data_dir.to_owned(),
    }
}

pub(crate) fn levels(found: &Findings) -> Vec<SandboxLevel> {
    [(Confined, &found.confined), (Isolated, &found.isolated)]
        .into_iter()
        .filter(|(_, finding)| finding.works())
        .map(|(level, _)| level)
        .collect()
}

/// A working directory, a place outside of it, and a warden.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) warden: Warden,
}

impl World {
    async fn new(level: SandboxLevel) -> Self {
        Self::prepared(level, environment(), |_| {}).await
    }

    async fn prepared(level: SandboxLevel, environment: Environment, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["w", "outside"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("outside/canary"), "secret-canary").unwrap();
        prepare(&dir.path().join("w"));
        let warden = start(level, dir.path(), environment).await;
        Self { dir, warden }
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.dir.path().join("outside").join(name)
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.dir.path().join("w").join(name)
    }

    /// The exit code and the whole output. `$OUT` is the place outside.
    async fn sh(&self, script: &str) -> (Option<i32>, String) {
        let out = self.outside("").display().to_string();
        let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
        let command = CommandSpec {
            argv,
            cwd: self.inside(""),
            env: vec![("OUT".to_owned(), out.trim_end_matches('/').to_owned())],
        };
        let spec = CollectSpec {
            time: Duration::from_secs(60),
            limits: CaptureLimits::default(),
            spill_dir: self.dir.path().join("spill"),
            spill_bytes: 1 << 20,
        };
        let done = self
            .warden
            .run(command)
            .await
            .unwrap()
            .collect(&spec, |_| {})
            .await
            .unwrap();
        let text = String::from_utf8_lossy(done.output.head()).into_owned();
        (done.exit.code, text)
    }

    pub(crate) async fn says(&self, script: &str) -> String {
        self.sh(script).await.1.trim().to_owned()
    }
}

pub(crate) async fn start(level: SandboxLevel, dir: &Path, environment: Environment) -> Warden {
    start_with(level, dir, environment, ProtectedPaths::default()).await
}

async fn start_with(
    level: SandboxLevel,
    dir: &Path,
    environment: Environment,
    protected: ProtectedPaths,
) -> Warden {
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: dir.join("w"),
        environment: environment.clone(),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    if level == Open {
        return Warden::spawn(&spec).await.unwrap();
    }
    // Like a toolchain: outside, and readable.
    let open = [dir.join("open")];
    let mut walls = Confinement::new(level, dir.join("temp"), readable(&environment, &open));
    walls.protected = protected;
    Warden::spawn_confined(&spec, &walls).await.unwrap().0
}

/// The script says `yes` without a sandbox and does not inside one.
async fn only_without_walls(found: &Findings, script: &str) {
    assert_eq!(
        World::new(Open).await.says(script).await,
        "yes",
        "control: {script}"
    );
    for level in levels(found) {
        let said = World::new(level).await.says(script).await;
        assert!(!said.contains("yes"), "{level:?}: {script}: {said}");
    }
}

async fn what_agents_need_works_at_each_level(found: Findings) {
    let script = r#"set -e
        git config --file own.cfg a.b c
        echo hi > a.txt && git add a.txt
        git -c user.name=a -c user.email=a@b commit -qm first && git log --oneline | wc -l
        cat <<END
here
END
        diff <(echo a) <(echo a) && f=$(mktemp) && echo x > "$f" && rm "$f"
        mkdir d && mv a.txt d/ && tar cf - d | tar tf - | wc -l
        chmod +x d/a.txt && ls -l d > /dev/null && id -u > /dev/null && date > /dev/null
        sleep 0.01 & wait; echo $((1 + 1)); test -w . && nproc > /dev/null && echo good"#;
    for level in levels(&found) {
        let world = World::prepared(level, environment(), repository).await;
        let (code, text) = world.sh(script).await;
        assert_eq!(
            (code, text.as_str()),
            (Some(0), "1\nhere\n2\n2\ngood\n"),
            "{level:?}"
        );
    }
}

async fn what_was_found_out_is_kept(found: Findings) {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(recorded(dir.path()), None);
    assert_eq!(probe(&probe_spec(dir.path())).await.unwrap(), found);
    assert_eq!(recorded(dir.path()), Some(found.clone()));
    // Another kernel or program causes a new probe.
    let file = dir.path().join("sandbox.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let other = text.replace("\"landlock_abi\": ", "\"landlock_abi\": 9");
    std::fs::write(&file, &other).unwrap();
    assert_ne!(probe(&probe_spec(dir.path())).await.unwrap(), found);
    std::fs::write(
        &file,
        other.replace("\"circumstances\": \"", "\"circumstances\": \"x"),
    )
    .unwrap();
    assert_eq!(probe(&probe_spec(dir.path())).await.unwrap(), found);
}

async fn redteam_20_a_hostile_build_script_builds_and_does_no_harm(found: Findings) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::prepared(level, environment(), |dir| {
            std::fs::create_dir(dir.join("src")).unwrap();
            std::fs::write(dir.join("src/main.rs"), "fn main() {}").unwrap();
            let manifest = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
            std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
            let build = format!(
                "fn main() {{ let _ = std::fs::write(std::env::var(\"OUT\").unwrap() + \"/marker\", \"x\");\n\
                 if std::net::TcpStream::connect(\"127.0.0.1:{port}\").is_ok() {{ \
                 std::fs::write(\"connected\", \"x\").unwrap(); }} }}"
            );
            std::fs::write(dir.join("build.rs"), build).unwrap();
        })
        .await;
        let (code, text) = world.sh("cargo build --offline 2>&1").await;
        assert_eq!(code, Some(0), "{level:?}: {text}");
        let harm = (
            world.outside("marker").exists(),
            world.inside("connected").exists(),
        );
        assert_eq!(harm, (level == Open, level == Open), "{level:?}");
    }
}

async fn redteam_21_a_link_does_not_lead_out(found: Findings) {
    only_without_walls(
        &found,
        "ln -s $OUT l; echo x > l/new && test -f $OUT/new && echo yes",
    )
    .await;
    only_without_walls(&found, "ln -s $OUT/canary p; grep -q canary p && echo yes").await;
    only_without_walls(&found, "ln $OUT/canary h && echo yes").await;
    for level in levels(&found) {
        let world = World::new(level).await;
        world
            .says("ln -s $OUT l; echo x > l/new; mv l/canary . ; rm -rf l/ $OUT")
            .await;
        let left = (world.outside("new").exists(), world.outside("canary").exists());
        assert_eq!(left, (false, true), "{level:?}");
    }
}

async fn redteam_26_a_repository_keeps_its_hooks(found: Findings) {
    let attacks = [
        "echo x > .git/hooks/pre-commit && echo yes",
        "echo x >> .git/config && echo yes",
        "mv .git .git2 && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo yes",
        "rm -rf .git/hooks; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo yes",
    ];
    for attack in attacks {
        let world = World::prepared(Open, environment(), repository).await;
        assert_eq!(world.says(attack).await, "yes", "control: {attack}");
        for level in levels(&found) {
            let world = World::prepared(level, environment(), repository).await;
            let said = world.says(attack).await;
            assert!(!said.contains("yes"), "{level:?}: {attack}: {said}");
            assert!(!world.inside(".git/hooks/pre-commit").exists());
            let commit =
                "echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && echo ok";
            assert_eq!(world.says(commit).await, "ok", "{level:?}: {attack}");
        }
    }
}

/// A repository that a person works in, with that person's `git`.
fn repository(dir: &Path) {
    let done = agentd_process_tests::git(dir)
        .args(["init", "-q"])
        .status()
        .unwrap();
    assert!(done.success());
}

async fn redteam_26_a_repository_is_not_led_to_another_configuration(found: Findings) {
    // The program that the person's next git command would run.
    let attack = "mkdir evil && cp -r .git/. evil/ && git config --file evil/config core.fsmonitor 'echo x > ran; false' \
                  && echo \"$PWD/evil\" > .git/commondir && echo yes";
    let ran = |world: &World| {
        let status = agentd_process_tests::git(&world.inside(""))
            .arg("status")
            .output()
            .unwrap();
        (status.status.success(), world.inside("ran").exists())
    };
    let world = World::prepared(Open, environment(), repository).await;
    assert_eq!(world.says(attack).await, "yes");
    assert!(ran(&world).1, "control");
    for level in levels(&found) {
        let world = World::prepared(level, environment(), repository).await;
        let said = world.says(attack).await;
        assert!(!said.contains("yes"), "{level:?}: {said}");
        assert_eq!(ran(&world), (true, false), "{level:?}");
        assert!(!world.inside(".git/commondir").exists(), "{level:?}");
    }
}

async fn redteam_26_what_a_configuration_includes_stays(found: Findings) {
    let prepare = |dir: &Path| {
        repository(dir);
        std::fs::write(dir.join("shared.gitconfig"), "[a]\nb = c\n").unwrap();
        let mut config = std::fs::OpenOptions::new()
            .append(true)
            .open(dir.join(".git/config"))
            .unwrap();
        writeln!(config, "[include]\n\tpath = ../shared.gitconfig").unwrap();
    };
    let attack = "echo x >> shared.gitconfig && echo yes; mv shared.gitconfig s && echo yes";
    assert!(
        World::prepared(Open, environment(), prepare)
            .await
            .says(attack)
            .await
            .contains("yes")
    );
    for level in levels(&found) {
        let world = World::prepared(level, environment(), prepare).await;
        let said = world.says(attack).await;
        assert!(!said.contains("yes"), "{level:?}: {said}");
    }
}

/// A command cannot create a repository, so no person's git runs what that would configure.
async fn redteam_27_a_repository_within_has_no_say_over_the_one_around_it(found: Findings) {
    let attack = "git init -q sub && git -C sub config core.fsmonitor 'echo x > ../ran; false' && echo yes";
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::prepared(level, environment(), repository).await;
        let said = world.says(attack).await;
        assert_eq!(said.contains("yes"), level == Open, "{level:?}: {said}");
        let status = |dir: PathBuf| agentd_process_tests::git(&dir).arg("status").output().unwrap();
        assert!(status(world.inside("")).status.success());
        assert!(!world.inside("ran").exists(), "{level:?}");
        // A person enters it.
        status(world.inside("sub"));
        assert_eq!(world.inside("ran").exists(), level == Open, "{level:?}");
    }
}

async fn redteam_28_files_for_other_programs_have_no_effect_on_this_session(found: Findings) {
    let files = "mkdir -p .agentd .vscode && echo 'export RAN=yes' > .envrc && cp .envrc .bashrc && cp .envrc .profile && \
                 cp .envrc .bash_env && echo '{\"hooks\":\"echo yes\"}' | tee .mcp.json .agentd/config.toml > .vscode/tasks.json && echo made";
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::new(level).await;
        let said = world.says(files).await;
        assert_eq!(said == "made", level == Open, "{level:?}: {said}");
        assert_eq!(world.says("echo \"[$RAN]\"").await, "[]", "{level:?}");
        // Nor in a later session in this directory.
        let later = start(level, world.dir.path(), environment()).await;
        assert!(world.warden.close(Duration::from_secs(60)).await);
        let world = World {
            dir: world.dir,
            warden: later,
        };
        assert_eq!(world.says("echo \"[$RAN]\"").await, "[]", "{level:?}");
        if level == Open {
            assert_eq!(
                world.says("BASH_ENV=.envrc bash -c 'echo $RAN'").await,
                "yes",
                "control"
            );
        }
    }
}

/// Memory, queues and semaphores with ids that all processes of a user share.
async fn redteam_31_memory_of_others_is_not_shared(found: Findings) {
    if std::env::consts::ARCH != "x86_64" {
        skipped(
            "kernel: the numbers of system calls in this test are those of x86_64",
            "row 31",
        );
        return;
    }
    let key = 0x6167_0000 + std::process::id() % 0xffff;
    let make = format!("perl -e 'print syscall(29, {key}, 4096, 01600) >= 0 ? \"made\" : $! + 0'");
    let find = format!("perl -e 'print syscall(29, {key}, 4096, 0600) >= 0 ? \"yes\" : $! + 0'");
    let remove = format!("perl -e '$i = syscall(29, {key}, 4096, 0600); syscall(31, $i, 0, 0)'");
    let open = World::new(Open).await;
    assert_eq!(open.says(&make).await, "made");
    assert_eq!(World::new(Open).await.says(&find).await, "yes", "control");
    for level in levels(&found) {
        let said = World::new(level).await.says(&find).await;
        assert!(!said.contains("yes"), "{level:?}: {said}");
    }
    open.says(&remove).await;
}

async fn programs_and_checkouts_below_the_temporary_directory_work(found: Findings) {
    for level in levels(&found) {
        let programs = tempfile::Builder::new()
            .prefix("programs")
            .tempdir_in("/tmp")
            .unwrap();
        let bin = programs.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink("/bin/echo", bin.join("hello")).unwrap();
        std::fs::copy("/bin/true", bin.join("fine")).unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let checkout = tempfile::Builder::new()
            .prefix("checkout")
            .tempdir_in("/tmp")
            .unwrap();
        std::fs::create_dir(checkout.path().join("w")).unwrap();
        std::fs::write(checkout.path().join("w/f"), "here").unwrap();
        let warden = start(level, checkout.path(), environment().with("PATH", path)).await;
        std::fs::create_dir(checkout.path().join("outside")).unwrap();
        let world = World {
            dir: checkout,
            warden,
        };
        let script = "cat f && hello there && fine && echo x > made && ! (echo x > $(which fine)) 2> /dev/null && echo x > /tmp/own && \
                      echo good";
        let said = world.says(script).await;
        let expected = if level == Isolated {
            "herethere\ngood"
        } else {
            "herethere"
        };
        assert_eq!(
            said.trim_end_matches("\nbash: line 1: /tmp/own: Permission denied"),
            expected,
            "{level:?}"
        );
        assert!(
            world.inside("made").exists() && !Path::new("/tmp/own").exists(),
            "{level:?}"
        );
    }
}

async fn redteam_29_the_home_directory_is_out_of_reach(found: Findings) {
    let name = format!("agentd-walls-{}", std::process::id());
    let fixed = Path::new("/tmp").join(&name);
    let script =
        format!("mkdir -p $OUT/.ssh; echo x > $OUT/.bashrc; echo x > $OUT/.ssh/k; echo x > /tmp/{name}");
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::new(level).await;
        world.says(&script).await;
        let left = (
            world.outside(".bashrc").exists(),
            world.outside(".ssh/k").exists(),
            fixed.exists(),
        );
        let harm = level == Open;
        assert_eq!(left, (harm, harm, harm), "{level:?}");
        let _ = std::fs::remove_file(&fixed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a process that is no command of a session"
)]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

/// A process outside of the session; killed on drop.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        let mut command = command("sleep");
        Self(
            command
                .arg("600")
                .env("SECRET_KEY", "secret-canary")
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn redteam_30_i8_no_environment_holds_a_secret(found: Findings) {
    let other = Bystander::new();
    let pid = other.0.id();
    let script = format!("tr '\\0' '\\n' < /proc/{pid}/environ | grep -q secret-canary && echo yes");
    only_without_walls(&found, &script).await;
    for level in levels(&found) {
        let world = World::new(level).await;
        let all = "env; cat /proc/1/environ /proc/self/environ /proc/$PPID/environ /proc/[0-9]*/environ";
        let said = world.says(all).await;
        assert!(
            said.contains("PATH=") && !said.contains("secret-canary"),
            "{level:?}: {said}"
        );
    }
}

async fn redteam_31_processes_outside_cannot_be_touched(found: Findings) {
    let other = Bystander::new();
    let pid = other.0.id();
    only_without_walls(&found, &format!("kill -0 {pid} && echo yes")).await;
    let read = format!("perl -e 'print \"yes\" if syscall(310, {pid}, 0, 0, 0, 0, 0) == 0'");
    only_without_walls(&found, &read).await;
    let limit = format!("perl -e 'print \"yes\" if syscall(302, {pid}, 7, 0, 0) == 0'");
    only_without_walls(&found, &limit).await;
    for level in levels(&found) {
        let world = World::new(level).await;
        // The warden, its threads, and all processes.
        let script = "for p in $(seq $((PPID - 3)) $((PPID + 3))); do [ $p != $$ ] && kill -9 $p; done; kill -9 -1; \
                      kill -STOP $PPID; kill -9 -$PPID; perl -e 'for $p ($ARGV[0] .. $ARGV[0] + 3) { \
                      next if $p == $$ || $p == getppid; syscall(234, $ARGV[0], $p, 9); syscall(200, $p, 9) }' $PPID; \
                      echo end";
        let (_, said) = world.sh(script).await;
        assert!(world.warden.is_alive(), "{level:?}: {said}");
        assert_eq!(world.says("echo alive").await, "alive", "{level:?}: {said}");
    }
}

async fn redteam_32_no_socket_is_reached(found: Findings) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    only_without_walls(&found, &format!("(: > /dev/tcp/127.0.0.1/{port}) && echo yes")).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let _unix = UnixListener::bind(&path).unwrap();
    let connect = |target: &str| {
        format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un({target})) && print \"yes\"'"
        )
    };
    only_without_walls(&found, &connect(&format!("\"{}\"", path.display()))).await;
    let name = format!("agentd-walls-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    only_without_walls(&found, &connect(&format!("\"\\0{name}\""))).await;
}

async fn redteam_33_nothing_is_sent(found: Findings) {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    only_without_walls(
        &found,
        &format!("(echo canary > /dev/udp/127.0.0.1/{port}) && echo yes"),
    )
    .await;
    let kinds = [
        ("inet", 2, 2, 0),
        ("inet6", 10, 2, 0),
        ("icmp", 2, 2, 1),
        ("raw", 2, 3, 1),
        ("netlink sock_diag", 16, 3, 4),
        ("netlink xfrm", 16, 3, 6),
        ("netlink audit", 16, 3, 9),
        ("netlink netfilter", 16, 3, 12),
        ("netlink kobject_uevent", 16, 3, 15),
        ("netlink generic", 16, 3, 16),
        ("packet", 17, 3, 0),
        ("vsock", 40, 1, 0),
    ];
    for (name, domain, kind, protocol) in kinds {
        let script =
            format!("perl -e 'print syscall(41, {domain}, {kind}, {protocol}) < 0 ? $! + 0 : \"yes\"'");
        let control = World::new(Open).await.says(&script).await;
        if control != "yes" {
            skipped(
                &format!("kernel: no socket of kind {name} (error {control})"),
                "row 33",
            );
        }
        for level in levels(&found) {
            assert_eq!(
                World::new(level).await.says(&script).await,
                "1",
                "{level:?}: {name}"
            );
        }
    }
}

/// Names the interfaces, then tries to change one: the kernel's answer is an error number.
const INTERFACES: &str = r#"perl -e '
    sub asks { socket(my $s, 16, 3, 0) or die "socket: $!"; bind($s, pack("SSLL", 16, 0, 0, $_[1])) or die "bind: $!";
               send($s, $_[0], 0) or die "send: $!"; recv($s, my $answer, 65536, 0); $answer }
    print asks(pack("LSSLLCx3", 20, 18, 0x301, 1, 0, 0), 0) =~ /lo\0/ ? "lo" : "none";
    print " ", unpack("x16l", asks(pack("LSSLLCCSlLL", 32, 16, 5, 1, 0, 0, 0, 0, 1, 0, 0), 0));
    print " ", eval { asks(pack("LSSLLCx3", 20, 18, 0x301, 1, 0, 0), 1); 1 } ? "group" : "no group"'"#;

/// The session's own network has no way out; programs ask for its interfaces all the same (`os.networkInterfaces()`).
async fn redteam_33_interfaces_are_named_and_not_changed(found: Findings) {
    let control = World::new(Open).await.says(INTERFACES).await;
    assert!(
        control.starts_with("lo ") && control.ends_with(" group"),
        "{control}"
    );
    for level in levels(&found) {
        let said = World::new(level).await.says(INTERFACES).await;
        if level == Isolated {
            assert_eq!(said, "lo -1 no group", "{level:?}");
        } else {
            assert!(said.starts_with("socket: "), "{level:?}: {said}");
        }
    }
}

/// The errno values of a list of system calls: name, then the call.
async fn errors(world: &World, calls: &[(&'static str, &str)]) -> BTreeMap<&'static str, String> {
    let mut given = BTreeMap::new();
    for (name, call) in calls {
        let script = format!("perl -e 'print syscall({call}) < 0 ? $! + 0 : 0' 2>&1");
        given.insert(*name, world.says(&script).await);
    }
    given
}

async fn redteam_37_dangerous_calls_are_refused(found: Findings) {
    if std::env::consts::ARCH != "x86_64" {
        skipped(
            "kernel: the numbers of system calls in this test are those of x86_64",
            "row 37",
        );
        return;
    }
    let calls = [
        (
            "add_key",
            "248, my $a = \"user\", my $b = \"x\", my $c = \"x\", 1, -3",
        ),
        ("bpf", "321, 99, 0, 0"),
        ("chmod setuid", "90, my $a = \"suid\", 04755"),
        ("clone newuser", "56, 0x10000011, 0, 0, 0, 0"),
        ("io_uring_setup", "425, 1, 0"),
        ("keyctl", "250, 0, -3, 1"),
        (
            "mount",
            "165, my $a = \"none\", my $b = \"nowhere\", my $c = \"tmpfs\", 0, 0",
        ),
        ("open_by_handle_at", "304, -100, 0, 0"),
        ("perf_event_open", "298, 0, 0, -1, -1, 0"),
        ("pidfd_getfd", "438, -1, 0, 0"),
        ("ptrace", "101, 0, 0, 0, 0"),
        ("quotactl_fd", "443, -1, 0, 0, 0"),
        ("setns", "308, -1, 0"),
        ("tiocsti", "16, 0, 0x5412, 0"),
        ("unshare", "272, 0x10000000"),
        ("userfaultfd", "323, 99"),
    ];
    let control = World::new(Open).await;
    control.says("touch suid").await;
    let open = errors(&control, &calls).await;
    for level in levels(&found) {
        let world = World::new(level).await;
        world.says("touch suid").await;
        for (name, error) in errors(&world, &calls).await {
            let without = &open[name];
            if ["1", "38"].contains(&without.as_str()) {
                skipped(&format!("kernel: {name} is refused without walls, too"), "row 37");
            }
            assert_eq!(error, "1", "{level:?}: {name} (without walls {without})");
        }
        assert_eq!(errors(&world, &[("clone3", "435, 0, 0")]).await["clone3"], "38");
        // The system call numbers of this processor's other ABI.
        assert_eq!(errors(&world, &[("x32", "0x40000000 + 39")]).await["x32"], "38");
        assert!(
            !world
                .says("unshare -Ur echo yes; mknod n b 7 0 && echo yes")
                .await
                .contains("yes")
        );
    }
}

/// The numbers are the same on every architecture.
async fn redteam_37_calls_that_no_rule_knows_do_not_exist(found: Findings) {
    let calls = [
        ("mseal", "462, 0, 0, 0"),
        ("setxattrat", "463, -1, 0, 0, 0, 0, 0"),
        ("open_tree_attr", "467, -1, 0, 0, 0, 0"),
        ("file_setattr", "469, -1, 0, 0, 0, 0"),
        ("the next", "470, 0"),
        ("a late one", "1000, 0"),
        ("the last", "0x3fffffff, 0"),
    ];
    let control = errors(&World::new(Open).await, &calls).await;
    for level in levels(&found) {
        let mut given = errors(&World::new(level).await, &calls).await;
        let newest = given.remove("mseal").unwrap();
        assert_eq!(newest, control["mseal"], "{level:?}: the newest known one");
        for (name, error) in given {
            assert_eq!(error, "38", "{level:?}: {name}");
        }
    }
}

async fn redteam_38_no_descriptor_leaks(found: Findings) {
    let file = std::fs::File::open("/etc/passwd").unwrap();
    // A copy that survives exec.
    let leaked = rustix::io::fcntl_dupfd_cloexec(&file, 9).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let script = "perl -e 'for (3 .. 64) { print \"open $_ \" if open(my $f, \"<&=\", $_) } print \"end\"'";
    for level in levels(&found) {
        assert_eq!(World::new(level).await.says(script).await, "end", "{level:?}");
    }
}

/// The number of processes with this word in their command line.
pub(crate) fn with_word(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|found| found == word.as_bytes())
        })
        .count()
}

/// Polls the process table: there is no event for the exit of processes that are not our children.
pub(crate) fn until(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

pub(crate) fn stubborn(word: &str) -> String {
    format!(
        "setsid sleep {word} & (trap '' TERM; sleep {word}) & ( (setsid sleep {word} &) & ) ; trap '' TERM; \
         env -i setsid sleep {word} > /dev/null 2>&1 & echo started; exit 0"
    )
}

async fn redteam_39_i5_nothing_is_left_behind(found: Findings) {
    for level in levels(&found) {
        let word = format!("86{}.{}", std::process::id(), level as u8);
        let world = World::new(level).await;
        let begun = Instant::now();
        assert_eq!(world.says(&stubborn(&word)).await, "started", "{level:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{level:?}");
        assert!(until(|| with_word(&word) >= 4), "control: {level:?}");
        assert!(world.warden.close(Duration::from_secs(60)).await, "{level:?}");
        assert_eq!(with_word(&word), 0, "{level:?}");
    }
}

/// `DAEMON LEVEL DIR WORD`: starts the stubborn script and waits to be killed.
pub(crate) fn play_daemon() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let level = if words[0] == "isolated" {
        Isolated
    } else {
        Confined
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let warden = start(level, Path::new(&words[1]), environment()).await;
        let command = CommandSpec {
            argv: vec!["bash".into(), "-c".into(), stubborn(&words[2])],
            cwd: Path::new(&words[1]).join("w"),
            env: Vec::new(),
        };
        let _running = warden.run(command).await.unwrap();
        println!("running");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

async fn redteam_39_i5_nothing_outlives_a_daemon_that_was_killed(found: Findings) {
    for level in levels(&found) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let word = format!("87{}.{}", std::process::id(), level as u8);
        let name = if level == Isolated { "isolated" } else { "confined" };
        let mut daemon = command("/proc/self/exe");
        let daemon = daemon.arg(DAEMON).arg(name).arg(dir.path()).arg(&word);
        let mut daemon = daemon.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(daemon.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "running\n");
        assert!(until(|| with_word(&word) >= 5), "control: {level:?}");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert!(until(|| with_word(&word) == 0), "{level:?}");
    }
}

fn slot(level: SandboxLevel, dir: &Path, workdir: &Path, environment: &Environment) -> WardenSlot {
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: workdir.to_owned(),
        environment: environment.clone(),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    };
    let walls = Confinement::new(level, dir.join("temp"), readable(environment, &[]));
    WardenSlot::confined(spec, walls)
}

async fn redteam_21_the_ground_of_the_walls_stays_what_it_was(found: Findings) {
    for level in levels(&found) {
        let dir = tempfile::tempdir().unwrap();
        let (workdir, outside) = (dir.path().join("w"), dir.path().join("outside"));
        std::fs::create_dir(&workdir).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let refused = |slot: WardenSlot| async move { slot.get().await.unwrap_err().to_string() };
        let session = slot(level, dir.path(), &workdir, &environment());
        session.get().await.unwrap();
        // The abilities of a command of a session in a parent directory while the warden is away.
        assert!(session.release_idle(Duration::ZERO));
        std::fs::rename(&workdir, dir.path().join("away")).unwrap();
        std::os::unix::fs::symlink(&outside, &workdir).unwrap();
        let said = refused(session).await;
        assert!(
            said.contains("was replaced after the session began"),
            "{level:?}: {said}"
        );
        // The daemon's directory must not be within reach, under any name.
        let around = outside.join("around");
        std::os::unix::fs::symlink(dir.path(), &around).unwrap();
        for wide in [Path::new("/"), dir.path(), &around] {
            let said = refused(slot(level, dir.path(), wide, &environment())).await;
            assert!(
                said.contains("is below the working directory"),
                "{level:?}: {said}"
            );
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let workdir = dir.path().join("w");
    std::fs::create_dir_all(workdir.join("bin")).unwrap();
    std::fs::write(workdir.join("bin/bwrap"), "#!/bin/sh\n").unwrap();
    let own = environment().with("PATH", format!("{}/bin:/usr/bin:/bin", workdir.display()));
    let walls = bubblewrapped(dir.path(), &own);
    let said = Warden::spawn_confined(&spec(&workdir, &own), &walls)
        .await
        .unwrap_err();
    assert!(said.to_string().contains("the program"), "{said}");
}

/// A session that moves to another directory gets a new slot at once; both have the same temporary directory.
async fn the_next_slot_of_a_session_starts_after_the_end_of_the_earlier_one(found: Findings) {
    for level in levels(&found) {
        let dir = tempfile::tempdir().unwrap();
        let places = [dir.path().join("w"), dir.path().join("v")];
        places
            .iter()
            .for_each(|place| std::fs::create_dir(place).unwrap());
        let mut earlier = slot(level, dir.path(), &places[0], &environment());
        earlier.get().await.unwrap();
        for place in places.iter().rev().cycle().take(4) {
            let next = slot(level, dir.path(), place, &environment()).after(earlier.clone());
            let within = Duration::from_secs(60);
            // Whichever comes first: the closing task, or the next command, which closes the slot itself.
            let (warden, gone) = tokio::join!(next.get(), earlier.close(within));
            assert!(gone && earlier.is_closed() && !next.is_closed());
            drop(warden.unwrap());
            assert!(dir.path().join("temp").is_dir(), "{level:?}");
            earlier = next;
        }
    }
}

fn bubblewrapped(dir: &Path, environment: &Environment) -> Confinement {
    Confinement {
        builder: Builder::Bubblewrap,
        ..Confinement::new(Isolated, dir.join("temp"), readable(environment, &[]))
    }
}

pub(crate) fn spec(workdir: &Path, environment: &Environment) -> WardenSpec {
    WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: workdir.to_owned(),
        environment: environment.clone(),
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
    }
}

/// The sandbox that bubblewrap builds where the warden cannot looks the same from inside.
async fn both_builders_show_the_same_files(found: Findings) {
    let has_bwrap = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join("bwrap").is_file());
    if !found.isolated.works() || !has_bwrap {
        return skipped(
            "bwrap is not on the PATH, or isolated does not work",
            "both builders",
        );
    }
    let script = "ls / /dev /etc; cat secret; ls hidden; (echo x > .git/config) 2> /dev/null && echo yes; (echo x > /new) 2> \
                  /dev/null && echo yes; echo x > made && cat made; ls -A . .git";
    let mut said = Vec::new();
    for builder in [Builder::Warden, Builder::Bubblewrap] {
        let dir = tempfile::tempdir().unwrap();
        let workdir = dir.path().join("w");
        std::fs::create_dir_all(workdir.join("hidden")).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(workdir.join("hidden/f"), "").unwrap();
        std::fs::write(workdir.join("secret"), "secret-canary").unwrap();
        repository(&workdir);
        let walls = Confinement {
            builder,
            hidden: Hidden::by(|_, path| path.ends_with("secret") || path.ends_with("hidden")),
            ..bubblewrapped(dir.path(), &environment())
        };
        let (warden, _) = Warden::spawn_confined(&spec(&workdir, &environment()), &walls)
            .await
            .unwrap();
        let text = World { dir, warden }.says(script).await;
        assert!(
            !text.contains("yes") && !text.contains("canary"),
            "{builder:?}: {text}"
        );
        said.push(text);
    }
    assert_eq!(said[0], said[1]);
}

async fn redteam_31_priorities_of_others_stay(found: Findings) {
    if std::env::consts::ARCH != "x86_64" {
        skipped(
            "kernel: the numbers of system calls in this test are those of x86_64",
            "row 31",
        );
        return;
    }
    // A separate group in the control, so that it affects no other process.
    let calls = [
        ("setpriority", "141, 1, 0, 19"),
        ("ioprio_set", "251, 2, 0, 0x6007"),
    ];
    let others = [
        ("setpriority", "141, 2, 0, 19"),
        ("ioprio_set", "251, 3, 0, 0x6007"),
    ];
    let expected =
        |error: &str| BTreeMap::from(["ioprio_set", "setpriority"].map(|name| (name, error.to_owned())));
    assert_eq!(errors(&World::new(Open).await, &calls).await, expected("0"));
    for level in levels(&found) {
        let world = World::new(level).await;
        assert_eq!(errors(&world, &others).await, expected("1"), "{level:?}");
        // The highest nice value, whatever that of the test is.
        assert_eq!(
            world.says("nice -n 19 nice").await,
            "19",
            "{level:?}: for oneself"
        );
    }
}

async fn redteam_54_a_place_that_was_made_before_is_not_used(found: Findings) {
    for level in levels(&found) {
        let dir = tempfile::tempdir().unwrap();
        let workdir = dir.path().join("w");
        std::fs::create_dir(&workdir).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        let session = slot(level, dir.path(), &workdir, &environment());
        session.get().await.unwrap();
        assert!(session.close(Duration::from_secs(60)).await);
        std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join("temp")).unwrap();
        let said = slot(level, dir.path(), &workdir, &environment()).get().await;
        let said = said.unwrap_err().to_string();
        assert!(said.contains("is a symbolic link"), "{level:?}: {said}");
    }
}

/// The kernel checks the user id there, not a capability: root without any could write. The test writes nothing; a
/// successful open suffices.
async fn redteam_37_the_kernel_is_not_set(found: Findings) {
    let opens =
        |file: &str| format!("perl -e 'use Fcntl; print \"yes\" if sysopen(my $f, \"{file}\", O_WRONLY)'");
    only_without_walls(&found, &opens("/proc/self/oom_score_adj")).await;
    for level in levels(&found) {
        let world = World::new(level).await;
        for file in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/vm/drop_caches",
            "/proc/sysrq-trigger",
        ] {
            assert_eq!(world.says(&opens(file)).await, "", "{level:?}: {file}");
        }
    }
}

async fn a_command_has_no_capability_and_gains_none(found: Findings) {
    for level in levels(&found) {
        let world = World::new(level).await;
        // The session's own /proc shows this; without one, the calls do.
        if level == Isolated {
            let said = world
                .says("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -s '\\t' ' '")
                .await;
            assert!(
                said.contains("CapEff: 0000000000000000") && said.contains("NoNewPrivs: 1"),
                "{said}"
            );
        }
        let said = world
            .says("chown 1:1 . 2>/dev/null && test $(stat -c %u .) != $(id -u) && echo yes; umask")
            .await;
        assert_eq!(said, "0077", "{level:?}");
        let core = world.says("ulimit -c").await;
        assert_eq!(core, "0", "{level:?}");
    }
}

/// Prepares `tests/sandbox` in a directory; dropping it ends the counterpart of the operations.
struct Operations {
    dir: TempDir,
    others: i32,
}

impl Operations {
    fn prepared() -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sandbox");
        let dir = tempfile::tempdir().unwrap();
        let done = command("sh")
            .arg(scripts.join("prepare.sh"))
            .arg(dir.path())
            .output()
            .unwrap();
        let others = String::from_utf8(done.stdout).unwrap().trim().parse().unwrap();
        std::fs::copy(scripts.join("operations.sh"), dir.path().join("w/operations.sh")).unwrap();
        std::fs::copy(dir.path().join("env"), dir.path().join("w/env")).unwrap();
        Self { dir, others }
    }

    /// The operations, and whether each was allowed.
    async fn tried(&self, level: SandboxLevel) -> BTreeMap<String, bool> {
        // As the settings are by default, in a working directory that is shared.
        let protected = ProtectedPaths::default().keeping_git(true);
        let warden = start_with(level, self.dir.path(), environment(), protected).await;
        let argv = ["sh", "operations.sh", "./env"].map(str::to_owned).to_vec();
        let spec = CollectSpec {
            time: Duration::from_secs(100),
            limits: CaptureLimits::default(),
            spill_dir: self.dir.path().join("spill"),
            spill_bytes: 1 << 20,
        };
        let command = CommandSpec {
            argv,
            cwd: self.dir.path().join("w"),
            env: Vec::new(),
        };
        let running = warden.run(command).await.unwrap();
        let done = running.collect(&spec, |_| {}).await.unwrap();
        let text = String::from_utf8_lossy(done.output.head()).into_owned();
        let answer = |line: &str| {
            let (answer, name) = line.split_once(' ').unwrap();
            (name.to_owned(), answer == "allowed")
        };
        let mut tried: BTreeMap<_, _> = text.lines().map(answer).collect();
        let env = std::fs::read_to_string(self.dir.path().join("env")).unwrap();
        let word = env.trim().rsplit_once('=').unwrap().1.to_owned();
        assert!(until(|| with_word(&word) > 0), "control: {level:?}");
        assert!(warden.close(Duration::from_secs(60)).await);
        tried.insert("leave a process behind".to_owned(), with_word(&word) > 0);
        tried
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.others).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The table that compares this sandbox with another one: `| operation | theirs | isolated | confined |`.
async fn the_list_of_operations_has_the_answers_that_the_documentation_says(found: Findings) {
    if std::env::consts::ARCH != "x86_64" {
        return skipped(
            "kernel: the numbers of system calls in this test are those of x86_64",
            "operations",
        );
    }
    for (name, allowed) in Operations::prepared().tried(Open).await {
        // The warden kills what is left behind at every level, which needs no sandbox.
        assert!(allowed || name == "leave a process behind", "control: {name}");
    }
    let page = include_str!("../../../../docs/security.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .skip_while(|line| !line.starts_with("## Comparison"))
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for (column, level) in [(3, Confined), (2, Isolated)] {
        if !levels(&found).contains(&level) {
            continue;
        }
        let tried = Operations::prepared().tried(level).await;
        for (name, allowed) in &tried {
            println!("{level:?}\t{allowed}\t{name}");
        }
        let said = rows
            .iter()
            .map(|row| (row[0].to_owned(), row[column] == "allowed"));
        assert_eq!(said.collect::<BTreeMap<_, _>>(), tried, "{level:?}");
    }
}

/// Deny rules for reading: the attacks from the review, and what a rule leaves readable.
async fn redteam_8_denied_reads_are_unreadable(found: Findings) {
    let attacks = [
        "cd secret && cat x | grep canary",
        "grep -r canary . | grep secret",
        "cp -r secret other; cat other/x other/deep/y",
        "ln secret/x hard && cat hard",
        "ln -s secret/x soft && cat soft",
        "tar cf - secret | tar xfO -",
        "cat a/key.pem",
        "chmod -R 777 secret a; cat secret/x a/key.pem",
        "mv secret elsewhere; cat elsewhere/x",
        "mv a b; cat b/key.pem",
        "exec 3< secret/x; cat <&3",
    ];
    let prepare = |dir: &Path| {
        std::fs::create_dir_all(dir.join("secret/deep")).unwrap();
        std::fs::create_dir(dir.join("a")).unwrap();
        for file in ["secret/x", "secret/deep/y", "a/key.pem"] {
            std::fs::write(dir.join(file), "canary").unwrap();
        }
        std::fs::write(dir.join("a/free"), "free").unwrap();
    };
    if !found.isolated.works() {
        return skipped("isolated does not work", "row 8");
    }
    for attack in attacks {
        for hides in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let workdir = dir.path().join("w");
            std::fs::create_dir(&workdir).unwrap();
            std::fs::create_dir(dir.path().join("outside")).unwrap();
            prepare(&workdir);
            let hidden = Hidden::by(|workdir, path| {
                let path = path.strip_prefix(workdir).unwrap_or(path);
                (path.starts_with("secret") && path != Path::new("secret"))
                    || path.extension().is_some_and(|found| found == "pem")
            });
            let walls = Confinement {
                hidden: if hides { hidden } else { Hidden::default() },
                ..Confinement::new(Isolated, dir.path().join("temp"), readable(&environment(), &[]))
            };
            let spec = spec(&workdir, &environment());
            let (warden, _) = Warden::spawn_confined(&spec, &walls).await.unwrap();
            let world = World { dir, warden };
            let said = world.says(attack).await;
            assert_eq!(said.contains("canary"), !hides, "{attack}: {said}");
            assert_eq!(world.says("cat [ab]/free").await, "free");
        }
    }
}

/// Published escapes from other sandboxes, as far as they apply to namespaces; docs/security/namespaces.md lists them.
async fn redteam_4_published_escapes_from_namespaces_fail(found: Findings) {
    if !found.isolated.works() || std::env::consts::ARCH != "x86_64" {
        return skipped(
            "kernel: isolated does not work, or the numbers are not those of x86_64",
            "row 4",
        );
    }
    let opens = |path: &str, how: &str| {
        format!("perl -e 'use Fcntl; print \"yes\" if sysopen(my $f, \"{path}\", {how})'")
    };
    let world = World::new(Isolated).await;
    let control = World::new(Open).await;
    let name = format!("agentd-published-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let attacks = [
        // CVE-2019-5736 (runc): overwrite the program outside through /proc/PID/exe.
        (false, opens("/proc/1/exe", "O_WRONLY")),
        // CVE-2024-21626 (runc): an inherited working directory or descriptor leads out.
        (true, "for d in /proc/*/cwd /proc/*/fd/*; do test -e $d/../../../../../../../../../boot && echo yes; done".to_owned()),
        // CVE-2016-9962 (runc): descriptors of the process that enters the container.
        (false, "for f in /proc/1/fd/*; do test -d $f && ls $f/ | grep -q . && echo yes; done".to_owned()),
        // CVE-2017-5226 (bubblewrap): TIOCSTI into the terminal that the sandbox was started from.
        (false, "perl -e 'open(T, \"+<\", \"/dev/tty\") or exit; my $c = \"x\"; print \"yes\" if ioctl(T, 0x5412, $c)'".to_owned()),
        // CVE-2022-0492: a cgroup's release_agent runs as root outside.
        (false, "mkdir c; mount -t cgroup -o rdma cgroup c && echo yes; unshare -UrmC mount -t cgroup cgroup c && echo yes".to_owned()),
        // CVE-2023-2640 and CVE-2023-32629 (GameOver(lay)): overlayfs in one's own user namespace.
        (false, "mkdir l u k m; unshare -rm sh -c 'mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=k m' && echo yes".to_owned()),
        // CVE-2022-0185: fsconfig in one's own user namespace. Here the call itself is refused.
        (true, "perl -e 'my $f = \"ext4\"; print \"yes\" if syscall(430, $f, 0) >= 0'".to_owned()),
        // CVE-2021-22555 and others: netfilter through a user namespace.
        (true, "unshare -Urn iptables -L && echo yes; perl -e 'print \"yes\" if syscall(41, 16, 3, 12) >= 0'".to_owned()),
        // CVE-2020-15257 (containerd): the machine's abstract sockets.
        (true, format!("grep -q {name} /proc/net/unix && echo yes")),
        // Detached mounts (open_tree) and handles (open_by_handle_at, \"shocker\") reach what is not mounted.
        (true, "perl -e 'my $p = \"/\"; print \"yes\" if syscall(428, -100, $p, 1) >= 0; my $h = pack(\"iiQ\", 8, 1, 2); \
         print \"yes\" if syscall(304, 0, $h, 0) >= 0'"
            .to_owned()),
        // uid 0 without capabilities: sysctl, sysrq and core_pattern check only the user id.
        (true, opens("/proc/sys/kernel/core_pattern", "O_WRONLY")),
        (false, opens("/proc/sysrq-trigger", "O_WRONLY")),
        // CVE-2025-31133 (runc) and others: undone masks. Here by remount and umount.
        (false, "umount /proc/sys && echo yes; mount -o remount,rw / && echo yes; mount -o remount,bind,rw /usr && echo yes".to_owned()),
        // Nested user namespaces through clone3, whose arguments a filter cannot read.
        (true, "perl -e 'my $a = pack(\"Q11\", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0); my $r = syscall(435, $a, 88); \
         exit if $r == 0; print \"yes\" if $r > 0'"
            .to_owned()),
        // Entering the namespaces of other processes.
        (false, "nsenter --mount=/proc/1/ns/mnt true && echo yes; nsenter --net=/proc/1/ns/net true && echo yes".to_owned()),
        // The init of the namespace: killing or stopping it ends or frees everything.
        (false, "kill -9 1; kill -STOP 1; sleep 0.1; kill -9 -1; echo $(cat /proc/1/comm) | grep -v agentd-warden | grep . && echo yes".to_owned()),
    ];
    for (harmless, attack) in &attacks {
        // As root these succeed without a sandbox, and change nothing.
        if *harmless && rustix::process::geteuid().is_root() {
            let said = control.says(attack).await;
            assert!(said.contains("yes"), "control: {attack}: {said}");
        }
        let said = world.says(attack).await;
        assert!(!said.contains("yes"), "{attack}: {said}");
    }
    assert!(world.warden.is_alive());
    // The root directories of the other processes are this session's root.
    let roots = "ls -A /proc/1/root /proc/1/cwd 2> /dev/null | grep -E '^(boot|home|root|srv|var)$'";
    assert_eq!(world.says(roots).await, "");
}

/// No mount point is ever created in the person's directory, and none of ours is left there.
async fn nothing_is_left_behind_in_the_working_directory(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "mount points");
    }
    let world = World::prepared(Isolated, environment(), repository).await;
    let list = || {
        let done = command("find").arg(world.inside("")).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let before = list();
    assert_eq!(world.says("echo ran").await, "ran");
    assert!(world.warden.close(Duration::from_secs(60)).await);
    assert_eq!(list(), before);
}
