//! Paths that a rule of the operator forbids to write: `prod.cfg`, `conf/prod.cfg` and everything named `*.lock`. The first two
//! are also tried as settings of the daemon, which no command writes.

use super::levels;
use super::world::World;
use agentd_protected::{DeniedWrites, Places, ProtectedPaths};
use agentd_protocol::SandboxLevel::{self, None as Open};
use agentd_sandbox::{Confinement, Findings};
use std::cell::RefCell;
use std::path::Path;

/// Codex, Claude Code and OpenCode apply such rules to their own tools; commands pass them by.
const ATTACKS: &[(&str, &str, &str)] = &[
    (
        "by a script",
        "printf 'echo x > prod.cfg\\n' > s && sh s",
        "wahidyankf/ose-public#176: a rule that reads the text of commands",
    ),
    ("by appending", "echo x >> prod.cfg", "agentd's own review"),
    (
        "by another language",
        "perl -e 'open F, \">\", \"prod.cfg\" or exit 1; print F \"x\"; close F'",
        "agentd's own review",
    ),
    (
        "by truncation",
        "perl -e 'truncate(\"prod.cfg\", 0) or exit 1'",
        "agentd's own review",
    ),
    (
        "removed",
        "rm -f prod.cfg && test ! -e prod.cfg",
        "agentd's own review",
    ),
    ("moved away", "mv prod.cfg away", "agentd's own review"),
    (
        "moved over",
        "echo x > n && mv -f n prod.cfg",
        "editors that write a copy and rename it",
    ),
    (
        "exchanged",
        "echo x > n && perl -e 'exit(syscall(316, -100, my $a = \"n\", -100, my $b = \"prod.cfg\", 2) ? 1 : 0)'",
        "renameat2(2): RENAME_EXCHANGE",
    ),
    (
        "by a hard link",
        "ln prod.cfg h && echo x > h",
        "openai/codex: a second name for a denied file",
    ),
    (
        "by a link",
        "ln -s prod.cfg l && echo x > l",
        "Claude Code CVE-2025-59829: a link to a denied file",
    ),
    (
        "by a descriptor",
        "exec 3< prod.cfg; echo x > /proc/self/fd/3",
        "CVE-2024-21626: /proc/self as a way back",
    ),
    (
        "by dots",
        "mkdir d && echo x > d/../prod.cfg",
        "agentd's own review",
    ),
    (
        "a new one",
        "mkdir -p d && echo x > d/new.lock",
        "read-only mounts, which cover what exists",
    ),
    (
        "a new one by a link",
        "echo x > n && ln n new.lock",
        "agentd's own review",
    ),
    (
        "a new one by its move",
        "echo x > n && mv n new.lock",
        "agentd's own review",
    ),
    (
        "a new directory of its name",
        "mkdir new.lock",
        "agentd's own review",
    ),
    (
        "its directory moved away",
        "mv conf c && echo x > c/prod.cfg && mv c conf && grep -q x conf/prod.cfg",
        "Claude Code's sandbox-runtime: the parent of a denied path is renamed",
    ),
    (
        "its directory exchanged",
        "mkdir n && echo x > n/prod.cfg && perl -e 'exit(syscall(316, -100, my $a = \"n\", -100, my $b = \"conf\", 2) ? 1 : 0)'",
        "renameat2(2): RENAME_EXCHANGE",
    ),
    (
        "a directory moved into its place",
        "rm -rf conf; mkdir n && echo x > n/prod.cfg && mv -T n conf && grep -q x conf/prod.cfg",
        "Claude Code's sandbox-runtime",
    ),
    (
        "a link in the place of its directory",
        "rm -rf conf; mkdir n && echo x > n/prod.cfg && ln -sT n conf && grep -q x conf/prod.cfg",
        "Claude Code's sandbox-runtime",
    ),
    ("mode", "chmod 777 prod.cfg", "agentd's own review"),
];

fn prepare(dir: &Path) {
    std::fs::create_dir(dir.join("conf")).unwrap();
    for file in ["prod.cfg", "conf/prod.cfg", "conf/free"] {
        std::fs::write(dir.join(file), "kept\n").unwrap();
    }
}

async fn denying(level: SandboxLevel) -> World {
    let globs = ["prod.cfg", "conf/prod.cfg", "**/*.lock"].map(str::to_owned);
    let protected = ProtectedPaths::default().with_denied(DeniedWrites::new(globs.to_vec()));
    World::with(level, protected, prepare).await.unwrap()
}

pub(super) async fn redteam_no_command_writes_what_a_rule_denies(found: Findings) {
    for (name, script, _source) in ATTACKS {
        let script = format!("{{ {script}; }} 2> /dev/null && echo yes");
        let said = World::new(Open, prepare).await.says(&script).await;
        assert!(said.contains("yes"), "control: {name}: {said}");
        for level in levels(&found) {
            let said = World::new(level, prepare).await.says(&script).await;
            assert!(
                said.contains("yes"),
                "control without the rule: {level:?}: {name}: {said}"
            );
            let world = denying(level).await;
            let said = world.says(&script).await;
            assert!(!said.contains("yes"), "{level:?}: {name}: {said}");
            for file in ["prod.cfg", "conf/prod.cfg"] {
                let kept = std::fs::read_to_string(world.inside(file)).unwrap();
                assert_eq!(kept, "kept\n", "{level:?}: {name}: {file}");
            }
        }
    }
}

/// A session whose directory contains files of the daemon.
async fn with_own_files(level: SandboxLevel) -> World {
    let own = RefCell::new(Vec::new());
    let prepared = |dir: &Path| {
        prepare(dir);
        let dir = dir.canonicalize().unwrap();
        own.borrow_mut()
            .extend(["prod.cfg", "conf/prod.cfg"].map(|file| dir.join(file)));
    };
    let walls = |walls: &mut Confinement| {
        let places = Places::of(None, own.take());
        walls.protected = ProtectedPaths::default().with_places(places);
    };
    World::walled(&std::env::temp_dir(), level, prepared, walls)
        .await
        .unwrap()
}

pub(super) async fn redteam_no_command_writes_the_daemons_own_files(found: Findings) {
    let attacks = ATTACKS.iter().filter(|(_, script, _)| !script.contains(".lock"));
    for (name, script, _source) in attacks {
        let script = format!("{{ {script}; }} 2> /dev/null && echo yes");
        for level in levels(&found) {
            let world = with_own_files(level).await;
            let said = world.says(&script).await;
            assert!(!said.contains("yes"), "{level:?}: {name}: {said}");
            for file in ["prod.cfg", "conf/prod.cfg"] {
                let kept = std::fs::read_to_string(world.inside(file)).unwrap();
                assert_eq!(kept, "kept\n", "{level:?}: {name}: {file}");
            }
        }
    }
}

pub(super) async fn what_no_rule_denies_is_written_as_before(found: Findings) {
    let script = "set -e; cat prod.cfg conf/prod.cfg > copy; echo x > conf/free; mv conf/free conf/other; mkdir -p a/b; echo y > a/b/c; \
                  mv a d; mv d/b e; ln -s e l; mv l m; cat m/c; rm -r d e m; echo good";
    for level in levels(&found) {
        assert_eq!(denying(level).await.says(script).await, "y\ngood", "{level:?}");
    }
}
