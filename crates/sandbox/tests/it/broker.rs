//! The broker with real processes: protected names in the working directory, and modes, times and owners outside of it.
//! Each attack succeeds without a sandbox (the control) and fails inside it, at each level of this machine. The costs and
//! reasons: docs/decisions/path-broker.md; the attacks as a table: docs/security/walls.md.

mod attacks;
mod denied;
mod descriptors;
mod git_attacks;
mod git_table;
mod sockets;
mod works;
mod world;

use agentd_process_tests::{Case, Group, skipped};
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel::{self, Confined, Isolated, None as Open};
use agentd_sandbox::{Finding, Findings};
use denied::{
    redteam_no_command_writes_the_daemons_own_files, redteam_no_command_writes_what_a_rule_denies,
    what_no_rule_denies_is_written_as_before,
};
use descriptors::{
    own_descriptors_take_modes_and_times,
    redteam_a_descriptor_that_changes_meanwhile_is_judged_as_it_is_used,
    redteam_descriptors_change_no_file_outside,
};
use git_table::{
    git_works_or_says_why_not_in_a_repository_of_the_session,
    git_works_or_says_why_not_in_a_repository_that_is_kept,
    git_works_or_says_why_not_in_a_repository_that_is_not_kept,
};
use sockets::{
    i6_a_connection_that_waits_holds_nobody_up, i7_without_a_broker_there_are_no_unix_sockets,
    listeners_of_the_session_are_reached, redteam_a_listener_is_judged_as_it_is_reached,
    redteam_no_command_reaches_a_listener_outside,
};
use std::path::Path;
use std::time::Duration;
use tokio::sync::OnceCell;
use world::{World, find_out, is_here, repository, with_submodule};

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases_with![
        found,
        what_commands_do_with_files_works,
        files_are_opened_as_the_kernel_opens_them,
        git_works_in_a_repository_that_was_there,
        git_works_or_says_why_not_in_a_repository_that_is_kept,
        git_works_or_says_why_not_in_a_repository_that_is_not_kept,
        git_works_or_says_why_not_in_a_repository_of_the_session,
        redteam_git_no_operation_under_way_runs_programs,
        redteam_git_no_git_directory_of_a_submodule_runs_programs,
        redteam_git_a_kept_repository_has_no_exceptions,
        redteam_26_no_command_writes_what_git_or_an_editor_runs,
        redteam_27_no_repository_runs_programs,
        repositories_are_made_and_cloned,
        i7_no_command_runs_where_the_hooks_are_unknown,
        redteam_22_a_path_that_changes_meanwhile_leads_nowhere_else,
        redteam_31_modes_times_and_owners_of_others_stay,
        redteam_git_no_command_changes_a_repository_that_was_there,
        redteam_git_no_remote_is_a_path,
        redteam_git_no_command_disguises_history,
        redteam_git_a_place_stays_protected_as_a_working_directory,
        own_descriptors_take_modes_and_times,
        redteam_descriptors_change_no_file_outside,
        redteam_a_descriptor_that_changes_meanwhile_is_judged_as_it_is_used,
        redteam_no_command_reaches_a_listener_outside,
        redteam_a_listener_is_judged_as_it_is_reached,
        listeners_of_the_session_are_reached,
        i6_a_connection_that_waits_holds_nobody_up,
        i7_without_a_broker_there_are_no_unix_sockets,
        redteam_no_command_writes_the_daemons_own_files,
        redteam_no_command_writes_what_a_rule_denies,
        what_no_rule_denies_is_written_as_before,
        redteam_37_calls_whose_arguments_no_filter_sees_are_refused,
        redteam_39_an_open_that_waits_holds_nobody_up,
    ];
    Group::new("broker", Duration::from_secs(300), all)
}

/// What the kernel offers; what it lacks is reported once. `None`: the broker does not work, so there is nothing to test.
async fn found() -> Option<Findings> {
    static FOUND: OnceCell<Findings> = OnceCell::const_new();
    let found = FOUND.get_or_init(reported).await;
    found.broker.works().then(|| found.clone())
}

async fn reported() -> Findings {
    let found = find_out().await;
    for (level, finding) in [
        ("isolated", &found.isolated),
        ("confined", &found.confined),
        ("broker", &found.broker),
    ] {
        if let Finding::Missing(why) = finding {
            skipped(&format!("kernel: {}", why.message), &format!("broker: {level}"));
        }
    }
    found
}

fn levels(found: &Findings) -> Vec<SandboxLevel> {
    [(Confined, &found.confined), (Isolated, &found.isolated)]
        .into_iter()
        .filter(|(_, finding)| finding.works())
        .map(|(level, _)| level)
        .collect()
}

/// Each script ends with `good` at each level, and without a sandbox.
async fn all_work(found: &Findings, scripts: &[(&str, &str)]) {
    for level in [vec![Open], levels(found)].concat() {
        let world = World::new(level, repository).await;
        for (name, script) in scripts {
            let said = world
                .says(&format!(
                    "rm -rf work && mkdir work && cd work && {{ {script} ; }} && echo good"
                ))
                .await;
            assert!(said.ends_with("good"), "{level:?}: {name}: {said}");
        }
    }
}

/// Each script says `yes` without a sandbox, and not inside one.
async fn all_fail(found: &Findings, attacks: &[attacks::Attack]) {
    all_fail_in(found, attacks, repository).await;
}

async fn all_fail_in(found: &Findings, attacks: &[attacks::Attack], prepare: fn(&Path)) {
    for (name, script, _source) in attacks {
        let said = World::new(Open, prepare).await.says(script).await;
        assert!(said.contains("yes"), "control: {name}: {said}");
        for level in levels(found) {
            let said = World::new(level, prepare).await.says(script).await;
            assert!(!said.contains("yes"), "{level:?}: {name}: {said}");
        }
    }
}

async fn what_commands_do_with_files_works(found: Findings) {
    all_work(&found, works::SCRIPTS).await;
}

/// Including error numbers: programs depend on them.
async fn files_are_opened_as_the_kernel_opens_them(found: Findings) {
    const OPEN: &str = "use Fcntl; sub o { sysopen(my $f, $_[0], $_[1], 0644) ? 0 : $! + 0 }";
    let script = format!(
        "mkdir d && touch f && ln -s f l && ln -s nowhere n && ln -s self self && perl -e '{OPEN} print join \",\", \
         o(\"f\", O_RDWR|O_CREAT|O_EXCL), o(\"l\", O_WRONLY|O_NOFOLLOW), o(\"n\", O_WRONLY), o(\"n\", O_WRONLY|O_CREAT|O_EXCL), \
         o(\"d\", O_WRONLY), o(\"d\", O_RDONLY|O_CREAT), o(\"f/x\", O_WRONLY|O_CREAT), o(\"none/x\", O_WRONLY|O_CREAT), \
         o(\"\", O_WRONLY|O_CREAT), o(\"self\", O_WRONLY|O_CREAT), o(\"g/\", O_WRONLY|O_CREAT), o(\"x\" x 300, O_WRONLY|O_CREAT), \
         o(\"x\" x 5000, O_WRONLY), o(\".\", O_WRONLY|O_CREAT), o(\"f\", O_WRONLY|O_TRUNC), o(\"n\", O_WRONLY|O_CREAT), \
         (mkdir(\"d\") ? 0 : $! + 0), (mkdir(\"/\") ? 0 : $! + 0), (rmdir(\"f\") ? 0 : $! + 0), (unlink(\"d\") ? 0 : $! + 0), \
         (unlink(\".none\") ? 0 : $! + 0), (rename(\"none\", \"x\") ? 0 : $! + 0), (rename(\"d\", \"f\") ? 0 : $! + 0), \
         (symlink(\"\", \"y\") ? 0 : $! + 0), (link(\"d\", \"y\") ? 0 : $! + 0)'"
    );
    let control = World::new(Open, repository).await.says(&script).await;
    for level in levels(&found) {
        assert_eq!(
            World::new(level, repository).await.says(&script).await,
            control,
            "{level:?}"
        );
    }
    // The parts of its environment that a program inherits.
    if std::env::consts::ARCH != "x86_64" {
        return;
    }
    let script = "perl -e 'my $f = syscall(257, -100, my $a = \"a\", 0101, 0644); my $g = syscall(257, -100, my $b = \"b\", \
                  02000101, 0644); exec \"readlink /proc/self/fd/$f /proc/self/fd/$g\"' | wc -l";
    for level in [vec![Open], levels(&found)].concat() {
        assert_eq!(
            World::new(level, repository).await.says(script).await,
            "1",
            "{level:?}"
        );
    }
}

async fn git_works_in_a_repository_that_was_there(found: Findings) {
    let script = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; \
                  echo 1 > a && git add a && git commit -qm one && git branch side && echo 2 > a && git stash -q && \
                  test $(cat a) = 1 && git stash pop -q && test $(cat a) = 2 && git commit -qam two && git checkout -q side && \
                  test $(cat a) = 1 && echo s > b && git add b && git commit -qm three && git checkout -q - && \
                  git merge -q side -m merged && test $(cat a b | tr -d '\\n') = 2s && git reset -q --hard HEAD~1 && \
                  git tag t && git log --oneline | wc -l && git gc -q && git status --short | wc -l && \
                  git commit -q --amend -m again && git switch -qc other && git mv a c && git commit -qam moved && git rm -q c && echo good";
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::new(level, repository).await;
        let said = world.says(script).await;
        assert!(said.ends_with("good"), "{level:?}: {said}");
        let check = agentd_process_tests::git(&world.inside(""))
            .args(["fsck", "--strict"])
            .output();
        let check = check.unwrap();
        assert!(check.status.success(), "{level:?}: {check:?}");
    }
}

async fn redteam_26_no_command_writes_what_git_or_an_editor_runs(found: Findings) {
    all_fail(&found, attacks::NAMES).await;
}

/// The settings' default for a working directory that is shared.
fn keeping() -> ProtectedPaths {
    ProtectedPaths::default().keeping_git(true)
}

async fn redteam_git_no_command_changes_a_repository_that_was_there(found: Findings) {
    for (name, script, _source) in git_attacks::PLANTS {
        let script = format!("{}{script}", git_attacks::BEGIN);
        let said = World::new(Open, repository).await.says(&script).await;
        assert!(said.contains("yes"), "control: {name}: {said}");
    }
    for level in levels(&found) {
        // They change nothing, so all can be tried in one world.
        let world = World::with(level, keeping(), repository).await.unwrap();
        for (name, script, _source) in git_attacks::PLANTS {
            let said = world.says(&format!("{}{script}", git_attacks::BEGIN)).await;
            assert!(!said.contains("yes"), "{level:?}: {name}: {said}");
        }
        let check = agentd_process_tests::git(&world.inside(""))
            .args(["fsck", "--strict"])
            .output();
        assert!(check.unwrap().status.success(), "{level:?}");
    }
    let (reads, makes) = (
        "set -e; git status --short | wc -l; git log --oneline | wc -l; git diff --stat; git show -q HEAD; echo good",
        "set -e; git init -q made; cd made; git config user.name a; git config user.email a@b; echo 1 > a; git add a; \
         git commit -qm one; git branch side; git stash list; git switch -q side; echo '*.o' > .git/info/exclude; \
         git pack-refs --all; git tag t; git gc -q; cd ..; rm -rf made; test ! -e made; echo good",
    );
    for level in levels(&found) {
        let world = World::with(level, keeping(), repository).await.unwrap();
        for script in [reads, makes] {
            let said = world.says(script).await;
            assert!(said.ends_with("good"), "{level:?}: {said}");
        }
        let plant = format!("{}{}", git_attacks::BEGIN, "git branch x $(commit x) && echo yes");
        let said = World::new(level, repository).await.says(&plant).await;
        assert!(
            said.contains("yes"),
            "control: without the setting: {level:?}: {said}"
        );
    }
}

async fn redteam_git_no_operation_under_way_runs_programs(found: Findings) {
    all_fail(&found, git_attacks::OPERATIONS).await;
}

async fn redteam_git_no_git_directory_of_a_submodule_runs_programs(found: Findings) {
    all_fail_in(&found, git_attacks::SUBMODULES, with_submodule).await;
}

/// A branch may have a name that is an exception elsewhere.
async fn redteam_git_a_kept_repository_has_no_exceptions(found: Findings) {
    let script = "git branch build && echo yes; mkdir -p .git/refs/heads/target && echo yes; echo x > .git/refs/heads/dist && echo yes";
    let said = World::new(Open, repository).await.says(script).await;
    assert!(said.contains("yes"), "control: {said}");
    for level in levels(&found) {
        let world = World::with(level, keeping(), repository).await.unwrap();
        let said = world.says(script).await;
        assert!(!said.contains("yes"), "{level:?}: {said}");
    }
}

async fn redteam_git_no_remote_is_a_path(found: Findings) {
    all_fail(&found, git_attacks::REMOTES).await;
}

async fn redteam_git_no_command_disguises_history(found: Findings) {
    let begin = |(name, script, source): &attacks::Attack| {
        let script: &'static str = format!("{}{script}", git_attacks::BEGIN).leak();
        (*name, script, *source)
    };
    let attacks: Vec<attacks::Attack> = git_attacks::DISGUISES.iter().map(begin).collect();
    all_fail(&found, &attacks).await;
}

/// The working directory is `~/w`, and then the home directory's `.ssh`: the same command, and another answer.
async fn redteam_git_a_place_stays_protected_as_a_working_directory(found: Findings) {
    let write = "for to in authorized_keys sub/x target/x; do mkdir -p $(dirname $to) 2> /dev/null; echo x > $to && echo yes; done";
    for level in levels(&found) {
        let plain = World::new(level, |_| {}).await;
        assert!(plain.says(write).await.contains("yes"), "control: {level:?}");
        // The directory that the tests work in is below a hidden one, so that its absolute path decides.
        let temp = tempfile::Builder::new().prefix(".ssh").tempdir().unwrap();
        let hidden = World::below(temp.path(), level, ProtectedPaths::default(), |_| {});
        let said = hidden.await.unwrap().says(write).await;
        assert!(!said.contains("yes"), "{level:?}: {said}");
    }
}

async fn redteam_27_no_repository_runs_programs(found: Findings) {
    all_fail(&found, attacks::REPOSITORIES).await;
}

async fn repositories_are_made_and_cloned(found: Findings) {
    let script = "set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
                  git init -q made; cd made; test \"$(git config core.filemode)\" = true; git config core.symlinks && exit; \
                  git config user.name Ana; echo 1 > a; git add a; git commit -qm one; git branch side; cd ..; \
                  git clone -q made $TMPDIR/copy; cd $TMPDIR/copy; git switch -q side; git commit -q --allow-empty -m two; \
                  test \"$(git config branch.side.remote)\" = origin; git fetch -q; git pull -q --ff-only; git push -q origin HEAD:new; \
                  git rev-parse -q --verify HEAD; cd -; git -C made log --oneline new | wc -l; \
                  git -C made remote add up https://example.org/x; rm -rf $TMPDIR/copy made; test ! -e made; echo good";
    for level in [vec![Open], levels(&found)].concat() {
        for prepare in [(|_: &Path| {}) as fn(&Path), repository] {
            let said = World::new(level, prepare).await.says(script).await;
            assert!(said.ends_with("good"), "{level:?}: {said}");
        }
        // The working directory itself, and a branch of an existing repository.
        let world = World::new(level, |_| {}).await;
        assert!(
            world
                .says("git init -q && git status --short && echo good")
                .await
                .ends_with("good"),
            "{level:?}"
        );
        let world = World::new(level, repository).await;
        let follows = "git branch -q side && git checkout -q -b f --track side && git config branch.f.merge";
        assert!(
            world.says(follows).await.ends_with("refs/heads/side"),
            "{level:?}"
        );
    }
}

/// Git reads a configuration that we cannot read, so any file could be one of its hooks.
async fn i7_no_command_runs_where_the_hooks_are_unknown(found: Findings) {
    let config = |length: usize| {
        move |dir: &Path| {
            repository(dir);
            std::fs::write(dir.join(".git/config"), "#".repeat(length)).unwrap();
        }
    };
    for level in levels(&found) {
        let world = World::new(level, config(1 << 20)).await;
        assert_eq!(world.says("echo yes").await, "yes", "control: {level:?}");
        let refused = World::try_new(level, config((1 << 20) + 1)).await;
        let error = refused.err().unwrap().to_string();
        assert!(
            error.contains("cannot read the git configuration"),
            "{level:?}: {error}"
        );
    }
}

/// The classic race of user notification: another thread changes the path between its check and its use.
async fn redteam_22_a_path_that_changes_meanwhile_leads_nowhere_else(found: Findings) {
    if !is_here("gcc") {
        skipped("gcc is not on the PATH", "broker: row 22");
        return;
    }
    for (name, source, script) in attacks::RACES {
        let script = format!("cat > race.c <<'END'\n{source}\nEND\ngcc -pthread -o race race.c && {script}");
        // Without a sandbox it repeats until it succeeds once.
        let forever = format!("TRIES=1000000000; {script}");
        let said = World::new(Open, repository).await.says(&forever).await;
        assert!(said.contains("yes"), "control: {name}: {said}");
        for level in levels(&found) {
            let said = World::new(level, repository)
                .await
                .says(&format!("TRIES=5000; {script}"))
                .await;
            assert!(
                !said.contains("yes") && said.contains("done"),
                "{level:?}: {name}: {said}"
            );
        }
    }
}

async fn redteam_31_modes_times_and_owners_of_others_stay(found: Findings) {
    all_fail(&found, attacks::METADATA).await;
    if std::env::consts::ARCH == "x86_64" {
        all_fail(&found, attacks::METADATA_BY_NUMBER).await;
    }
    // The top of the working directory remains usable.
    for level in levels(&found) {
        let world = World::new(level, repository).await;
        assert_ne!(world.says("chmod 000 . && echo yes").await, "yes", "{level:?}");
        assert_eq!(world.says("chmod 755 . && echo yes").await, "yes", "{level:?}");
    }
}

async fn redteam_37_calls_whose_arguments_no_filter_sees_are_refused(found: Findings) {
    if std::env::consts::ARCH != "x86_64" {
        skipped(
            "kernel: the numbers of system calls in this test are those of x86_64",
            "broker: row 37",
        );
        return;
    }
    let error = |call: &str| format!("perl -e 'print syscall({call}) < 0 ? $! + 0 : \"yes\"'");
    // A file descriptor is not negative, so it is not reported as an error.
    let calls = [
        (
            "openat2",
            "437, -100, my $a = \"f\", my $b = pack(\"QQQ\", 0101, 04755, 0), 24",
            "38",
        ),
        ("open setuid", "2, my $a = \"f\", 0101, 04755", "1"),
        ("openat setgid", "257, -100, my $a = \"f\", 0101, 02755", "1"),
        ("open unnamed setuid", "2, my $a = \".\", 020200002, 04755", "1"),
        ("creat setuid", "85, my $a = \"f\", 06755", "1"),
        ("mkdir setgid", "83, my $a = \"d\", 02755", "1"),
        ("mkdirat setuid", "258, -100, my $a = \"d\", 04755", "1"),
        ("mknod setuid", "133, my $a = \"p\", 0104755, 0", "1"),
        ("mknodat setuid", "259, -100, my $a = \"p\", 0104755, 0", "1"),
        (
            "setxattrat",
            "463, -100, my $a = \"f\", 0, my $b = \"user.a\", 0, 0",
            "38",
        ),
        ("file_setattr", "469, -100, my $a = \"f\", 0, 0, 0", "38"),
    ];
    for level in levels(&found) {
        let world = World::new(level, repository).await;
        for (name, call, expected) in calls {
            assert_eq!(world.says(&error(call)).await, expected, "{level:?}: {name}");
        }
        // The third argument is ignored if no file is created.
        assert_eq!(
            world
                .says(&format!("touch f; {}", error("2, my $a = \"f\", 01, 04755")))
                .await,
            "yes"
        );
    }
    let open = World::new(Open, repository).await;
    for (name, call, _) in calls.iter().take(9) {
        assert_eq!(
            open.says(&format!("rm -rf f d p; {}", error(call))).await,
            "yes",
            "control: {name}"
        );
    }
}

async fn redteam_39_an_open_that_waits_holds_nobody_up(found: Findings) {
    let script = "mkfifo p; for i in $(seq 80); do (echo x > p) 2> /dev/null & done; echo here > f && cat f; kill -9 $(jobs -p) 2> /dev/null";
    for level in levels(&found) {
        let world = World::new(level, repository).await;
        assert_eq!(world.says(script).await, "here", "{level:?}");
        // Opens whose callers were killed do not hold their places forever.
        let again = "mkfifo q; (cat q > g &); echo through > q && echo done";
        assert_eq!(world.says(again).await, "done", "{level:?}");
    }
}
