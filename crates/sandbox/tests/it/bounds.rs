//! Resource bounds, with real commands at each level.

use agentd_process_tests::{Case, Group, cases, skipped};
use agentd_protocol::SandboxLevel::{self, Confined, Isolated, None as Open};
use agentd_sandbox::{
    Bound, Bounds, CaptureLimits, CollectSpec, Collected, CommandSpec, Confinement, Environment, Exceeded,
    Finding, ProbeSpec, Warden, WardenSpec, probe, readable,
};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        redteam_40_a_fork_bomb_is_ended_and_told,
        redteam_40_threads_count_as_processes,
        redteam_40_a_memory_hog_is_ended_and_told,
        redteam_40_memory_files_count_and_count_once,
        redteam_40_a_file_without_end_is_ended_and_told,
        redteam_40_too_many_new_files_are_ended_and_told,
        redteam_40_too_many_bytes_in_files_are_ended_and_told,
        redteam_40_a_session_at_its_limit_of_bytes_can_delete,
        redteam_40_a_gigabyte_of_output_flows_through,
        i5_what_was_left_behind_is_ended_and_the_next_command_is_told,
        what_is_within_the_bounds_is_left_alone,
        i6_commands_stand_behind_the_daemon,
    ];
    Group::new("bounds", Duration::from_secs(300), all)
}

/// Small enough to exceed quickly, large enough for a shell and its programs.
fn small() -> Bounds {
    Bounds {
        processes: 40,
        memory: 192 << 20,
        file: 1 << 20,
        new_files: 500,
        new_bytes: 16 << 20,
        free: 0,
    }
}

async fn levels() -> Vec<SandboxLevel> {
    let dir = tempfile::tempdir().unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: dir.path().to_owned(),
    };
    let found = probe(&spec).await.unwrap();
    let mut levels = vec![Open];
    for (level, finding) in [(Confined, &found.confined), (Isolated, &found.isolated)] {
        match finding {
            Finding::Works => levels.push(level),
            Finding::Missing(why) if why.message.contains("on the PATH") => {
                skipped(&why.message, "bounds");
            }
            Finding::Missing(why) => skipped(&format!("kernel: {}", why.message), "bounds"),
        }
    }
    levels
}

fn environment() -> Environment {
    Environment::allowed([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())], &[])
}

struct World {
    dir: TempDir,
    warden: Warden,
}

impl World {
    async fn new(level: SandboxLevel, bounds: Bounds) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let warden = start(level, dir.path(), bounds).await;
        Self { dir, warden }
    }

    async fn sh(&self, script: &str) -> Collected {
        let command = CommandSpec {
            argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
            cwd: self.dir.path().join("w"),
            env: Vec::new(),
        };
        let spec = CollectSpec {
            time: Duration::from_secs(120),
            limits: CaptureLimits::default(),
            spill_dir: self.dir.path().join("spill"),
            spill_bytes: 1 << 20,
        };
        let running = self.warden.run(command).await.unwrap();
        running.collect(&spec, |_| {}).await.unwrap()
    }
}

async fn start(level: SandboxLevel, dir: &Path, bounds: Bounds) -> Warden {
    let spec = WardenSpec {
        exe: "/proc/self/exe".into(),
        workdir: dir.join("w"),
        environment: environment(),
        bounds,
        network: None,
    };
    if level == Open {
        return Warden::spawn(&spec).await.unwrap();
    }
    let walls = Confinement::new(level, dir.join("temp"), readable(&environment(), &[]));
    Warden::spawn_confined(&spec, &walls).await.unwrap().0
}

fn told(bound: Bound, limit: u64) -> Option<Exceeded> {
    Some(Exceeded {
        bound,
        limit,
        earlier: false,
    })
}

/// The script exceeds the bound at each level, the result says so, and the session continues.
async fn ended(script: &str, bounds: Bounds, bound: Bound, limit: u64) {
    for level in levels().await {
        let world = World::new(level, bounds).await;
        let done = world.sh(script).await;
        let said = String::from_utf8_lossy(done.output.head()).into_owned();
        assert_eq!(
            done.exit.exceeded,
            told(bound, limit),
            "{level:?}: {:?} {said}",
            done.exit
        );
        assert!(!done.timed_out, "{level:?}");
        let next = world.sh("echo alive").await;
        assert_eq!(next.output.head(), b"alive\n", "{level:?}");
        assert_eq!((next.exit.code, next.exit.exceeded), (Some(0), None), "{level:?}");
    }
}

async fn redteam_40_a_fork_bomb_is_ended_and_told() {
    let bomb = "b() { b | b & }; b; sleep 600";
    ended(bomb, small(), Bound::Processes, 40).await;
}

async fn redteam_40_threads_count_as_processes() {
    let many = "for i in $(seq 60); do sleep 600 & done; wait";
    ended(many, small(), Bound::Processes, 40).await;
    let threads = "perl -Mthreads -e 'threads->create(sub { sleep 600 }) for 1 .. 60; sleep 600'";
    let world = World::new(Open, small()).await;
    if world.sh("perl -Mthreads -e 1").await.exit.code == Some(0) {
        ended(
            threads,
            Bounds {
                memory: 4 << 30,
                ..small()
            },
            Bound::Processes,
            40,
        )
        .await;
    } else {
        skipped("perl has no threads here", "bounds");
    }
}

async fn redteam_40_a_memory_hog_is_ended_and_told() {
    let hog = "perl -e 'my @a; push @a, \"x\" x (1 << 20) while @a < 280; sleep 600'";
    ended(hog, small(), Bound::Memory, 192 << 20).await;
    // Not one process with much memory, but many with little.
    let crowd = "for i in 1 2 3 4; do perl -e 'my $a = \"x\" x (60 << 20); sleep 600' & done; wait";
    ended(crowd, small(), Bound::Memory, 192 << 20).await;
}

async fn redteam_40_memory_files_count_and_count_once() {
    let bounds = Bounds {
        file: 1 << 30,
        ..small()
    };
    let prelude = "import os, mmap, time\n\
                   def fill(mib):\n\
                   \x20f = os.memfd_create('x')\n\
                   \x20for _ in range(mib): os.write(f, b'x' * (1 << 20))\n\
                   \x20return f\n";
    let python = |body: &str| format!("exec python3 -c \"{prelude}{body}\"");
    let probe = World::new(Open, bounds).await.sh(&python("fill(1)")).await;
    if probe.exit.code != Some(0) {
        skipped("no python3 with memfd_create", "bounds");
        return;
    }
    let mapped = "f = fill(MIB); m = mmap.mmap(f, MIB << 20); m[::4096]; os.close(f); time.sleep(END)";
    let deleted = "n = '/dev/shm/agentd-' + str(os.getpid())\n\
                   try: f = os.open(n, os.O_CREAT | os.O_RDWR); os.unlink(n)\n\
                   except PermissionError: f = os.memfd_create('no /dev/shm here')\n\
                   for _ in range(MIB): os.write(f, b'x' * (1 << 20))\n\
                   time.sleep(END)";
    let attacks = [
        "f = fill(MIB); time.sleep(END)",
        "f = [fill(1) for _ in range(MIB)]; time.sleep(END)",
        mapped,
        deleted,
    ];
    for attack in attacks {
        let script = |mib, end| python(&attack.replace("MIB", mib).replace("END", end));
        ended(&script("240", "600"), bounds, Bound::Memory, 192 << 20).await;
        for level in levels().await {
            // Below the bound, and above it with a larger bound: the command exits on its own.
            let large = Bounds {
                memory: 4 << 30,
                ..bounds
            };
            for (mib, given) in [("100", bounds), ("240", large)] {
                let done = World::new(level, given).await.sh(&script(mib, "2")).await;
                let end = (done.exit.code, done.exit.exceeded);
                assert_eq!(end, (Some(0), None), "control: {level:?} {attack}");
            }
        }
    }
    // Four processes that hold and map the same 100 MiB use only 100 MiB.
    let crowd = "f = fill(100); os.fork(); os.fork(); m = mmap.mmap(f, 100 << 20); m[::4096]; time.sleep(2)";
    for level in levels().await {
        let done = World::new(level, bounds).await.sh(&python(crowd)).await;
        let end = (done.exit.code, done.exit.exceeded);
        assert_eq!(end, (Some(0), None), "{level:?}");
    }
}

async fn redteam_40_a_file_without_end_is_ended_and_told() {
    ended("exec truncate -s 100G big", small(), Bound::FileSize, 1 << 20).await;
    ended("yes > big", small(), Bound::FileSize, 1 << 20).await;
    for level in levels().await {
        let world = World::new(level, small()).await;
        let edge = world.sh("truncate -s 1M big && echo good").await;
        assert_eq!(edge.output.head(), b"good\n", "{level:?}");
        let large = Bounds {
            file: 200 << 30,
            ..small()
        };
        let control = World::new(level, large)
            .await
            .sh("truncate -s 100G big && rm big && echo good")
            .await;
        assert_eq!(control.output.head(), b"good\n", "control: {level:?}");
    }
}

async fn redteam_40_too_many_new_files_are_ended_and_told() {
    let many = "mkdir -p a/b; for i in $(seq 2000); do : > a/b/$i; done; sleep 600";
    ended(many, small(), Bound::NewFiles, 500).await;
    let temporary = "for i in $(seq 2000); do : > $TMPDIR/$i; done; sleep 600";
    for level in levels().await.into_iter().filter(|level| *level != Open) {
        let world = World::new(level, small()).await;
        let done = world.sh(temporary).await;
        assert_eq!(done.exit.exceeded, told(Bound::NewFiles, 500), "{level:?}");
    }
}

/// Each of them takes 24 MB in files of less than the bound of one file.
const FILLS: [(&str, &str); 5] = [
    (
        "many files",
        "for (1..30) { open F, q(>), q(f).$_; print F q(x) x 8e5; close F }",
    ),
    (
        "below a new directory",
        "mkdir q(d); for (1..30) { open F, q(>), q(d/f).$_; print F q(x) x 8e5; close F }",
    ),
    (
        "deleted files that stay open",
        "for (1..30) { open $f[$_], q(>), q(f); unlink q(f); syswrite $f[$_], q(x) x 8e5 }",
    ),
    (
        "files that claim to be old",
        "for (1..30) { open F, q(>), q(f).$_; print F q(x) x 8e5; close F; utime 1, 1, q(f).$_ }",
    ),
    (
        "files that were there",
        "for (1..30) { open F, q(>>), q(old).$_; print F q(x) x 8e5; close F }",
    ),
];
const OVERWRITES: &str = "for (1..100) { open F, q(>), q(f); print F q(x) x 8e5; close F }";
const HOLES: &str = "for (1..30) { open F, q(>), q(f).$_; truncate F, 8e5; close F }";

/// Runs it, and stays until the watch has had the time to look more than once.
fn perl(script: &str, seconds: u32) -> String {
    format!("perl -e '{script}; sleep {seconds}' && echo good")
}

async fn redteam_40_too_many_bytes_in_files_are_ended_and_told() {
    let full = told(Bound::NewBytes, small().new_bytes);
    let large = Bounds {
        new_bytes: 64 << 20,
        ..small()
    };
    for level in levels().await {
        for (name, script) in FILLS {
            let world = World::new(level, small()).await;
            for n in 1..=30 {
                std::fs::write(world.dir.path().join(format!("w/old{n}")), "x").unwrap();
            }
            let done = world.sh(&perl(script, 600)).await;
            assert_eq!(done.exit.exceeded, full, "{level:?}: {name}");
        }
        for (bounds, script) in [(large, FILLS[0].1), (small(), OVERWRITES), (small(), HOLES)] {
            let world = World::new(level, bounds).await;
            let done = world.sh(&perl(script, 2)).await;
            assert_eq!(done.output.head(), b"good\n", "control: {level:?}: {script}");
        }
    }
}

async fn redteam_40_a_session_at_its_limit_of_bytes_can_delete() {
    let full = told(Bound::NewBytes, small().new_bytes);
    for level in levels().await {
        let world = World::new(level, small()).await;
        for _ in 0..2 {
            let done = world.sh(&perl(FILLS[0].1, 600)).await;
            assert_eq!(done.exit.exceeded, full, "{level:?}");
        }
        let removes = "sleep 1; unlink q(f).$_ for (1..30)";
        let more = "open F, q(>), q(g); print F q(x) x 9e5; close F; open F, q(>), q(h); print F q(x) x 9e5; close F";
        for script in [removes, more] {
            let done = world.sh(&perl(script, 2)).await;
            assert_eq!(
                done.output.head(),
                b"good\n",
                "{level:?}: {script}: {:?}",
                done.exit
            );
        }
    }
}

async fn redteam_40_a_gigabyte_of_output_flows_through() {
    for level in levels().await {
        let world = World::new(level, Bounds::default()).await;
        let done = world.sh("head -c 1000000000 /dev/zero | tr '\\0' x").await;
        assert_eq!(done.output.bytes(), 1_000_000_000, "{level:?}");
        let kept = done.output.head().len() + done.output.tail().len();
        assert!(kept <= 128 << 10, "{level:?}: {kept}");
        assert_eq!(done.spill.map(|file| file.bytes()), Some(1 << 20), "{level:?}");
    }
}

async fn i5_what_was_left_behind_is_ended_and_the_next_command_is_told() {
    for level in levels().await {
        let world = World::new(level, small()).await;
        let left = "(read -t 1 < <(sleep 2); for i in $(seq 50); do setsid sleep 600 & done) > /dev/null 2>&1 & exit 0";
        assert_eq!(world.sh(left).await.exit.code, Some(0), "{level:?}");
        // The watch looks within a second: it kills a command this long with the rest, or its result reports this.
        let mut heard = None;
        while heard.is_none() {
            heard = world.sh("read -t 1 < <(sleep 2)").await.exit.exceeded;
        }
        assert_eq!(
            heard.map(|heard| heard.bound),
            Some(Bound::Processes),
            "{level:?}"
        );
        assert_eq!(world.sh("exit 3").await.exit.exceeded, None, "{level:?}");
    }
}

async fn what_is_within_the_bounds_is_left_alone() {
    let script = "for i in $(seq 400); do : > $i; done; for i in $(seq 30); do sleep 2 & done; \
                  perl -e 'my $a = \"x\" x (60 << 20); sleep 2'; wait; echo good";
    for level in levels().await {
        let world = World::new(level, small()).await;
        let done = world.sh(script).await;
        let text = String::from_utf8_lossy(done.output.head());
        assert_eq!(
            (&*text, done.exit.exceeded),
            ("good\n", None),
            "{level:?} {:?}",
            done.exit
        );
    }
}

async fn i6_commands_stand_behind_the_daemon() {
    let own = rustix::process::getpriority_process(None).unwrap();
    for level in levels().await {
        let world = World::new(level, small()).await;
        for _ in 0..2 {
            let nice = world.sh("nice").await;
            let expected = format!("{}\n", (own + 5).min(19));
            assert_eq!(String::from_utf8_lossy(nice.output.head()), expected, "{level:?}");
        }
    }
}
