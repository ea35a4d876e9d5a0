//! The attacks: a name, a script that says `yes` when it succeeds, and the source.

pub(super) type Attack = (&'static str, &'static str, &'static str);

const OURS: &str = "agentd's own review";

pub(super) const NAMES: &[Attack] = &[
    (
        "hook by make",
        "printf 'all:\\n\\techo x > .git/hooks/pre-commit\\n' > Makefile && make -s && echo yes",
        OURS,
    ),
    (
        "a hook where the user's own configuration says",
        "mkdir -p hooks-of-all && echo x > hooks-of-all/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by cp",
        "echo x > f && cp f .git/hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by install",
        "echo x > f && install -m 755 f .git/hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by tee",
        "echo x | tee .git/hooks/pre-commit > /dev/null && echo yes",
        OURS,
    ),
    (
        "hook by ln -s",
        "ln -s $PWD/f .git/hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by ln",
        "echo x > f && ln f .git/hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by mv",
        "echo x > f && mv f .git/hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by a dangling link",
        "ln -s .git/hooks/post-checkout l && echo x > l && echo yes",
        "CVE-2024-32002: a link that leads a write into .git/hooks",
    ),
    (
        "hook by a linked directory",
        "ln -s .git A && mkdir -p A/modules/x/hooks && echo yes",
        "CVE-2024-32002",
    ),
    (
        "hook of a submodule with a carriage return",
        "mkdir -p $'.git/modules/sub\\r/hooks' && echo yes",
        "CVE-2025-48384: a submodule path that ends in a carriage return",
    ),
    (
        "hook by a working directory",
        "cd .git/hooks && echo x > pre-commit && echo yes",
        OURS,
    ),
    (
        "hook by a descriptor's path",
        "exec 3< .git/hooks && echo x > /proc/self/fd/3/pre-commit && echo yes",
        "containers/bubblewrap and runc (CVE-2024-21626): /proc/self/fd as a way back",
    ),
    (
        "hook by the path of the own directory",
        "echo x > /proc/self/cwd/.git/hooks/pre-commit && echo yes",
        "CVE-2024-21626",
    ),
    (
        "hook by the path of the own root",
        "echo x > /proc/self/root$PWD/.git/hooks/pre-commit && echo yes",
        "Claude Code's sandbox: /proc/self/root as an alias of a denied path",
    ),
    (
        "hook by dots",
        "mkdir -p a/b && echo x > a/b/../../.git//./hooks/pre-commit && echo yes",
        OURS,
    ),
    (
        "settings by git config",
        "git config core.fsmonitor 'touch ran' && echo yes",
        "CVE-2022-24765 and core.fsmonitor in a repository's own settings",
    ),
    (
        "ssh command by git config",
        "git config core.sshCommand 'touch ran' && echo yes",
        "core.sshCommand: GitHub advisories on agents that run git",
    ),
    (
        "filter by git config",
        "git config filter.x.clean 'touch ran' && echo yes",
        "filters in a repository's own settings (justinsteven, 2022)",
    ),
    (
        "settings by an unnamed file",
        "perl -e 'sysopen(F, \".\", 020200000|2, 0600) or die; syscall(265, -100, my $a = \"/proc/self/fd/\" . fileno(F), -100, my $b = \".git/hooks/pre-commit\", 0x400) == 0 and print \"yes\"'",
        "open(2): O_TMPFILE and linkat",
    ),
    (
        "settings by a hard link",
        "ln .git/config c && echo x >> c && echo yes",
        "a second name for a denied file (openai/codex issues on read-only .git)",
    ),
    (
        "settings by reopening",
        "exec 3< .git/config && echo x >> /proc/self/fd/3 && echo yes",
        "reopening of a descriptor for reading",
    ),
    (
        "settings by a link",
        "ln -s .git/config c && echo x >> c && echo yes",
        OURS,
    ),
    (
        "settings by truncation",
        "perl -e 'truncate(\".git/config\", 0) and print \"yes\"'",
        OURS,
    ),
    (
        "settings by exchange",
        "cp .git/config c && perl -e 'syscall(316, -100, my $a = \"c\", -100, my $b = \".git/config\", 2) == 0 and print \"yes\"'",
        "renameat2(2): RENAME_EXCHANGE",
    ),
    ("settings taken away", "rm .git/config && echo yes", OURS),
    ("settings moved away", "mv .git/config c && echo yes", OURS),
    (
        "the repository moved away",
        "mv .git .old && echo yes || mv .git old && echo yes",
        "Claude Code's sandbox-runtime: the parent of a denied path is renamed",
    ),
    (
        "the repository exchanged",
        "mkdir n && perl -e 'syscall(316, -100, my $a = \"n\", -100, my $b = \".git\", 2) == 0 and print \"yes\"'",
        "renameat2(2)",
    ),
    (
        "settings of a submodule",
        "echo x >> .git/modules/m/config && echo yes",
        OURS,
    ),
    (
        "settings of a worktree",
        "echo x > .git/config.worktree && echo yes",
        OURS,
    ),
    ("common directory", "echo x > .git/commondir && echo yes", OURS),
    (
        "common directory in a loop",
        "for i in $(seq 200); do echo $PWD/evil > .git/commondir && echo yes && break; done",
        OURS,
    ),
    (
        "common directory of a worktree",
        "echo $PWD > .git/worktrees/t/commondir && echo yes",
        OURS,
    ),
    (
        "a worktree of its own",
        "mkdir -p .git/worktrees/e && echo yes",
        OURS,
    ),
    (
        "attributes",
        "echo '* filter=x' > .git/info/attributes && echo yes",
        "gitattributes(5)",
    ),
    (
        "alternates",
        "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates && echo yes",
        OURS,
    ),
    (
        "alternates by a moved directory",
        "rm -rf .git/objects/info && mkdir .git/objects/evil && touch .git/objects/evil/alternates && mv -T .git/objects/evil .git/objects/info && echo yes",
        OURS,
    ),
    (
        "a log that is a link",
        "ln -sf $OUT/canary .git/logs/refs/heads/other && echo yes",
        "git appends what an author is called",
    ),
    (
        "a message that is a link",
        "ln -sf $OUT/canary .git/COMMIT_EDITMSG && echo yes",
        OURS,
    ),
    (
        "a link moved among the data",
        "ln -s $OUT/canary l && mv l .git/ORIG_HEAD && echo yes",
        OURS,
    ),
    (
        "other case",
        "mkdir -p .GIT/hooks && echo x > .GIT/hooks/pre-commit && echo yes",
        "CVE-2014-9390",
    ),
    (
        "tasks of an editor",
        "mkdir -p .vscode && echo '{}' > .vscode/tasks.json && echo yes",
        "openai/codex and Claude Code issues: tasks.json runs when a folder is opened",
    ),
    (
        "tasks that come with a directory",
        "mkdir -p target/d/.vscode && echo '{}' > target/d/.vscode/tasks.json && mv target/d d && test -e d/.vscode/tasks.json && echo yes",
        OURS,
    ),
    (
        "settings of an agent",
        "mkdir -p .claude && echo '{}' > .claude/settings.json && echo yes",
        "CVE-2025-59536: hooks in a project's settings",
    ),
    (
        "servers of an agent",
        "echo '{}' > .mcp.json && echo yes",
        "CVE-2025-61260: MCP servers of a project's file",
    ),
    ("instructions", "echo more >> AGENTS.md && echo yes", OURS),
    (
        "instructions by another name",
        "ln AGENTS.md a && echo more >> a && echo yes",
        OURS,
    ),
    (
        "environment of a directory",
        "echo x > .envrc && echo yes",
        "direnv",
    ),
    (
        "mode of a hook",
        "cp /bin/true .git/hooks/pre-commit && echo yes; chmod +x .git/hooks/pre-push.sample && mv .git/hooks/pre-push.sample .git/hooks/pre-push && echo yes",
        OURS,
    ),
];

pub(super) const REPOSITORIES: &[Attack] = &[
    (
        "a program that git init is given",
        "git init -q sub && git -C sub config core.fsmonitor 'touch ran'; git -C sub config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "a program that git clone is given",
        "git clone -q -c core.fsmonitor='touch ran' . sub; git -C sub config --local core.fsmonitor && echo yes",
        "git-clone(1), --config",
    ),
    (
        "hooks that git init copies",
        "mkdir -p t/hooks && echo x > t/hooks/pre-commit && git init -q --template t sub; test -e sub/.git/hooks/pre-commit && echo yes",
        "git-init(1), --template",
    ),
    (
        "a repository by hand",
        "mkdir -p sub/.git && printf '[core]\n\tfsmonitor = x\n' > sub/.git/config; test -s sub/.git/config && echo yes",
        OURS,
    ),
    (
        "a configuration by rename",
        "git init -q sub && printf '[core]\n\tfsmonitor = x\n' > c && mv -f c sub/.git/config; git -C sub config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "a configuration by exchange",
        "git init -q sub && printf '[core]\n\tfsmonitor = x\n' > c && mv --exchange c sub/.git/config 2> /dev/null; \
         test -e c && perl -e 'syscall(316, -100, my $a = \"c\", -100, my $b = \"sub/.git/config\", 2)'; \
         git -C sub config core.fsmonitor && echo yes",
        "renameat2(2), RENAME_EXCHANGE",
    ),
    (
        "a configuration by link",
        "git init -q sub && printf '[core]\n\tfsmonitor = x\n' > c && rm -f sub/.git/config && ln c sub/.git/config; \
         git -C sub config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "a lock that is still open",
        "git init -q sub && cp sub/.git/config sub/.git/config.lock && exec 5>> sub/.git/config.lock && \
         mv -f sub/.git/config.lock sub/.git/config && printf '[core]\n\tfsmonitor = x\n' >&5; \
         git -C sub config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "settings that leave it to another file",
        "git init -q sub && printf '[core]\n\tfsmonitor = x\n' > c && git -C sub config include.path $PWD/c; \
         git -C sub config core.fsmonitor && echo yes",
        "git-config(1), include.path",
    ),
    (
        "where a person pushes to",
        "git init -q sub && git -C sub remote add origin https://example.org/a && \
         git -C sub remote set-url origin https://evil.example/a; git -C sub remote get-url origin | grep evil && echo yes",
        OURS,
    ),
    (
        "settings that a person made, removed",
        "rm -f .git/config; git config --local core.hooksPath || echo yes",
        OURS,
    ),
    (
        "a file that leads to one",
        "mkdir sub && echo 'gitdir: ../evil' > sub/.git && echo yes",
        "gitrepository-layout(5)",
    ),
    (
        "a link that leads to one",
        "mkdir sub && ln -s ../evil sub/.git && echo yes",
        "CVE-2021-21300",
    ),
    (
        "moved from the temporary directory",
        "git init -q $TMPDIR/e && git -C $TMPDIR/e config core.fsmonitor x && mv $TMPDIR/e sub; git -C sub config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "moved from an exception",
        "git init -q target/e && git -C target/e config core.fsmonitor x; mv target/e e; git -C e config core.fsmonitor && echo yes",
        OURS,
    ),
    (
        "unpacked",
        "git init -q $TMPDIR/e && git -C $TMPDIR/e config core.fsmonitor x && tar -C $TMPDIR -cf e.tar e && tar xf e.tar; \
         git -C e config core.fsmonitor && echo yes",
        "an archive with a .git",
    ),
    (
        "bare by git",
        "git init -q --bare b; git -C b rev-parse --is-bare-repository | grep -q true && echo yes",
        "justinsteven: embedded bare repositories",
    ),
    (
        "bare by hand",
        "mkdir b && cd b && echo 'ref: refs/heads/main' > HEAD && mkdir objects refs && touch config && echo yes",
        "justinsteven: embedded bare repositories",
    ),
    (
        "bare, its parts moved",
        "mkdir b o r && echo 'ref: refs/heads/main' > b/HEAD && mv o b/objects && mv r b/refs && echo yes",
        OURS,
    ),
    (
        "bare, its parts linked",
        "mkdir b && echo 'ref: refs/heads/main' > b/HEAD && ln -s ../.git/objects b/objects && ln -s ../.git/refs b/refs && echo yes",
        OURS,
    ),
    (
        "bare, its parts elsewhere",
        "mkdir b && echo 'ref: refs/heads/main' > b/HEAD && echo $PWD/.git > b/commondir && echo yes",
        "git's setup.c: a commondir stands for objects and refs",
    ),
    (
        "settings of a bare one that was there",
        "git -C fixture.git config core.fsmonitor 'touch ran' && echo yes",
        "justinsteven: embedded bare repositories",
    ),
    (
        "a hook of a bare one that was there",
        "echo x > fixture.git/hooks/pre-receive && echo yes",
        OURS,
    ),
];

pub(super) const METADATA: &[Attack] = &[
    ("mode of a directory", "chmod 000 $OUT/data && echo yes", OURS),
    ("mode of a file", "chmod 777 $OUT/canary && echo yes", OURS),
    (
        "mode by a link",
        "ln -s $OUT/data l && chmod 000 l && echo yes",
        OURS,
    ),
    (
        "mode by a linked directory",
        "ln -s $OUT l && chmod 000 l/data && echo yes",
        OURS,
    ),
    ("mode by dots", "chmod 000 ../outside/data && echo yes", OURS),
    ("mode of all", "chmod -R 000 ../outside && echo yes", OURS),
    (
        "times",
        "touch -c -d @1 $OUT/canary && test -e $OUT/canary && echo yes",
        OURS,
    ),
    (
        "times by perl",
        "perl -e 'utime(1, 1, \"$ENV{OUT}/canary\") and print \"yes\"'",
        OURS,
    ),
    (
        "times of a link",
        "touch -c -h -d @1 $OUT/canary && test -e $OUT/canary && echo yes",
        OURS,
    ),
    (
        "times of a directory",
        "touch -c -d @1 $OUT && test -d $OUT && echo yes",
        OURS,
    ),
    ("owner", "chown $(id -u) $OUT/canary && echo yes", OURS),
    (
        "owner without following",
        "chown -h $(id -u) $OUT/canary && echo yes",
        OURS,
    ),
    (
        "the place itself, from outside of it",
        "chmod 000 $PWD/../outside/../outside/data && echo yes",
        OURS,
    ),
];

/// By the system call numbers of x86_64.
pub(super) const METADATA_BY_NUMBER: &[Attack] = &[
    (
        "setxattr",
        "perl -e 'syscall(188, my $a = \"$ENV{OUT}/canary\", my $b = \"user.x\", my $c = \"y\", 1, 0) == 0 and print \"yes\"'",
        OURS,
    ),
    (
        "lsetxattr",
        "perl -e 'syscall(189, my $a = \"$ENV{OUT}/canary\", my $b = \"user.x\", my $c = \"y\", 1, 0) == 0 and print \"yes\"'",
        OURS,
    ),
    (
        "an access list",
        "perl -e 'my $acl = pack(\"V(vvV)3\", 2, 1, 7, -1, 4, 0, -1, 32, 0, -1); syscall(188, my $a = \"$ENV{OUT}/data\", my $b = \"system.posix_acl_access\", $acl, length $acl, 0) == 0 and print \"yes\"'",
        "acl(5)",
    ),
    (
        "fchmodat2 without a path",
        "perl -e 'my $f = syscall(257, -100, my $a = \"$ENV{OUT}/data\", 010000000); syscall(452, $f, my $b = \"\", 0, 0x1000) == 0 and print \"yes\"'",
        "fchmodat2(2): AT_EMPTY_PATH on an O_PATH descriptor",
    ),
    (
        "chmod by a descriptor's path",
        "perl -e 'my $f = syscall(257, -100, my $a = \"$ENV{OUT}/data\", 010000000); chmod(0, \"/proc/self/fd/$f\") and print \"yes\"'",
        "chmod through /proc/self/fd, as C libraries do",
    ),
    (
        "fchownat without a path",
        "perl -e 'my $f = syscall(257, -100, my $a = \"$ENV{OUT}/data\", 010000000); syscall(260, $f, my $b = \"\", $< + 0, -1, 0x1000) == 0 and print \"yes\"'",
        "chown(2): AT_EMPTY_PATH",
    ),
    (
        "utimensat without a path",
        "perl -e 'my $f = syscall(257, -100, my $a = \"$ENV{OUT}/data\", 010000000); syscall(280, $f, my $b = \"\", 0, 0x1000) == 0 and print \"yes\"'",
        "utimensat(2): AT_EMPTY_PATH",
    ),
    (
        "utime",
        "perl -e 'syscall(132, my $a = \"$ENV{OUT}/canary\", 0) == 0 and print \"yes\"'",
        OURS,
    ),
    (
        "futimesat",
        "perl -e 'syscall(261, -100, my $a = \"$ENV{OUT}/canary\", 0) == 0 and print \"yes\"'",
        OURS,
    ),
];

const TWO_PATHS: &str = r#"#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char path[64] = "inno/cent";
static void *swap(void *unused) {
    for (;;) { memcpy(path, ".git/hook", 9); memcpy(path, "inno/cent", 9); }
    return unused;
}
int main(int argc, char **argv) {
    long tries = atol(argv[argc - 1]);
    pthread_t thread;
    pthread_create(&thread, 0, swap, 0);
    for (long i = 0; i < tries && access(".git/hook", F_OK); i++) {
        int f = open(path, O_WRONLY | O_CREAT, 0755);
        if (f >= 0) close(f);
    }
    puts(access(".git/hook", F_OK) ? "no" : "yes");
    puts("done");
    return 0;
}"#;

const TWO_LINKS: &str = r#"#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long tries = atol(argv[argc - 1]);
    mkdir("free", 0755);
    symlink("free", "a");
    pid_t child = fork();
    if (!child) for (;;) {
        symlink(".git/hooks", "b"); rename("b", "a"); symlink("free", "b"); rename("b", "a");
    }
    for (long i = 0; i < tries && access(".git/hooks/pre-commit", F_OK); i++) {
        int f = open("a/pre-commit", O_WRONLY | O_CREAT, 0755);
        if (f >= 0) close(f);
    }
    kill(child, SIGKILL);
    puts(access(".git/hooks/pre-commit", F_OK) ? "no" : "yes");
    puts("done");
    return 0;
}"#;

const TWO_DESCRIPTORS: &str = r#"#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int git, plain;
static void *swap(void *unused) {
    for (;;) { dup2(git, 100); dup2(plain, 100); }
    return unused;
}
int main(int argc, char **argv) {
    long tries = atol(argv[argc - 1]);
    pthread_t thread;
    mkdir("plain", 0755);
    git = open(".git", O_RDONLY | O_DIRECTORY);
    plain = open("plain", O_RDONLY | O_DIRECTORY);
    dup2(plain, 100);
    pthread_create(&thread, 0, swap, 0);
    for (long i = 0; i < tries && access(".git/evil", F_OK); i++) {
        int f = openat(100, "evil", O_WRONLY | O_CREAT, 0755);
        if (f >= 0) close(f);
    }
    puts(access(".git/evil", F_OK) ? "no" : "yes");
    puts("done");
    return 0;
}"#;

/// What changes, the program, and its command. The first is the race of seccomp_unotify(2), "Interaction with
/// SECCOMP_RET_USER_NOTIF"; the second is the race of every check by path; the third replaces what a descriptor refers to.
pub(super) const RACES: &[(&str, &str, &str)] = &[
    ("the path in memory", TWO_PATHS, "mkdir -p inno && ./race $TRIES"),
    ("a link on the way", TWO_LINKS, "./race $TRIES"),
    (
        "the directory behind a descriptor",
        TWO_DESCRIPTORS,
        "./race $TRIES",
    ),
];
