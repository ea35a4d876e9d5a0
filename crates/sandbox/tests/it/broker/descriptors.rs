//! Files outside that a command may read: an open descriptor must not be a way to change their modes, owners, times and
//! attributes. Landlock restricts none of these calls, and a descriptor open for reading is enough for each of them.

use super::attacks::Attack;
use super::world::{World, is_here, repository};
use super::{all_fail, levels};
use agentd_process_tests::skipped;
use agentd_protocol::SandboxLevel::{Confined, None as Open};
use agentd_sandbox::Findings;

const LANDLOCK: &str = "landlock(7) and nolabs-ai/nono#914: Landlock does not restrict it";

/// `$OPEN` is readable at every level. Perl's functions act on the descriptor if they get a handle.
const BY_HANDLE: &[Attack] = &[
    (
        "mode",
        "perl -e 'open F, \"<\", \"$ENV{OPEN}/f\"; chmod(0, *F) and print \"yes\"'",
        LANDLOCK,
    ),
    (
        "mode of a directory",
        "perl -e 'open F, \"<\", \"$ENV{OPEN}\"; chmod(0, *F) and print \"yes\"'",
        LANDLOCK,
    ),
    (
        "owner",
        "perl -e 'open F, \"<\", \"$ENV{OPEN}/f\"; chown($<, -1, *F) and print \"yes\"'",
        LANDLOCK,
    ),
    (
        "times",
        "perl -e 'open F, \"<\", \"$ENV{OPEN}/f\"; utime(1, 1, *F) and print \"yes\"'",
        LANDLOCK,
    ),
    (
        "mode through an inherited descriptor",
        "exec 7< $OPEN/f; perl -e 'open F, \"<&=7\"; chmod(0, *F) and print \"yes\"'",
        "CVE-2024-21626 (runc): a descriptor that was left open",
    ),
    (
        "mode through a descriptor of a linked path",
        "ln -s $OPEN/f l; perl -e 'open F, \"<\", \"l\"; chmod(0, *F) and print \"yes\"'",
        "agentd's own review",
    ),
    (
        "mode by the path of a descriptor",
        "exec 7< $OPEN/f; chmod 000 /proc/self/fd/7 && echo yes || chmod 000 /dev/fd/7 && echo yes",
        "CVE-2024-21626: /proc/self/fd as a way back",
    ),
    (
        "times by the path of a descriptor",
        "exec 7< $OPEN/f; touch -c -d @1 /proc/self/fd/7 && test $(stat -c %Y $OPEN/f) = 1 && echo yes",
        "CVE-2024-21626: /proc/self/fd as a way back",
    ),
];

macro_rules! on_descriptor {
    ($calls:literal) => {
        concat!(
            "perl -e 'open F, \"<\", \"$ENV{OPEN}/f\"; my $f = fileno F; my $x = \"user.x\"; my $v = \"y\"; my $none = \"\"; ",
            $calls,
            " == 0 and print \"yes\"'"
        )
    };
}

/// By the system call numbers of x86_64.
const BY_NUMBER: &[Attack] = &[
    ("fchmod", on_descriptor!("syscall(91, $f, 0777)"), LANDLOCK),
    ("fchown", on_descriptor!("syscall(93, $f, $< + 0, -1)"), LANDLOCK),
    (
        "futimens",
        on_descriptor!("syscall(280, $f, 0, 0, 0)"),
        "Zouuup/landrun#58: times of files that may only be read",
    ),
    (
        "futimesat without a path",
        on_descriptor!("syscall(261, $f, 0, 0)"),
        "futimesat(2): a null path means the descriptor",
    ),
    (
        "fsetxattr",
        on_descriptor!("syscall(190, $f, $x, $v, 1, 0)"),
        LANDLOCK,
    ),
    (
        "fremovexattr",
        on_descriptor!("(syscall(190, $f, $x, $v, 1, 0), syscall(199, $f, $x))[1]"),
        LANDLOCK,
    ),
    (
        "an access list",
        on_descriptor!(
            "do { my $acl = pack(\"V(vvV)3\", 2, 1, 7, -1, 4, 0, -1, 32, 0, -1); \
             syscall(190, $f, my $n = \"system.posix_acl_access\", $acl, length $acl, 0) }"
        ),
        "acl(5)",
    ),
    (
        "fchmodat2 without a path",
        on_descriptor!("syscall(452, $f, $none, 0777, 0x1000)"),
        "NixOS/nix#10424, multikernel/sandlock#211: filters that do not know fchmodat2(2)",
    ),
    (
        "fchownat without a path",
        on_descriptor!("syscall(260, $f, $none, $< + 0, -1, 0x1000)"),
        "chown(2): AT_EMPTY_PATH",
    ),
    (
        "utimensat without a path",
        on_descriptor!("syscall(280, $f, $none, 0, 0x1000)"),
        "utimensat(2): AT_EMPTY_PATH",
    ),
    (
        "setxattr by the path of the descriptor",
        on_descriptor!("syscall(188, my $p = \"/proc/self/fd/$f\", $x, $v, 1, 0)"),
        "CVE-2024-21626: /proc/self/fd as a way back",
    ),
    (
        "FS_IOC_SETFLAGS",
        on_descriptor!("syscall(16, $f, 0x40086602, my $flags = pack(\"L\", 0x40))"),
        "ioctl_iflags(2), as chattr",
    ),
    (
        "FS_IOC_SETFLAGS with a wide number",
        on_descriptor!("syscall(16, $f, 0x140086602, my $flags = pack(\"L\", 0x40))"),
        "CVE-2019-7303 (snapd): the kernel ignores the upper half of an ioctl's number",
    ),
    (
        "FS_IOC_FSSETXATTR",
        on_descriptor!("syscall(16, $f, 0x401c5820, my $attributes = pack(\"L7\", 0x80))"),
        "ioctl_xfs_fssetxattr(2), as chattr",
    ),
];

const SWAP: &str = r#"#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int theirs, own;
static void *swap(void *unused) {
    for (;;) { dup2(theirs, 100); dup2(own, 100); }
    return unused;
}
int main(int argc, char **argv) {
    long tries = atol(argv[2]);
    struct stat found = {0};
    pthread_t thread;
    theirs = open(argv[1], O_RDONLY);
    own = open("own", O_RDONLY | O_CREAT, 0644);
    dup2(own, 100);
    pthread_create(&thread, 0, swap, 0);
    for (long i = 0; i < tries && (found.st_mode & 07777) != 0600; i++) {
        fchmod(100, 0600);
        fstat(theirs, &found);
    }
    puts((found.st_mode & 07777) == 0600 ? "yes" : "done");
    return 0;
}"#;

pub(super) async fn redteam_descriptors_change_no_file_outside(found: Findings) {
    let x86 = std::env::consts::ARCH == "x86_64";
    let by_number = if x86 { BY_NUMBER } else { &[] };
    for attacks in [BY_HANDLE, by_number] {
        all_fail(&found, attacks).await;
        // Landlock alone stops none of them.
        if found.confined.works() {
            for (name, script, _source) in attacks {
                let said = World::without_broker(Confined, repository)
                    .await
                    .says(script)
                    .await;
                assert!(said.contains("yes"), "control without broker: {name}: {said}");
            }
        }
    }
}

/// A descriptor changes its meaning while the call waits for the broker.
pub(super) async fn redteam_a_descriptor_that_changes_meanwhile_is_judged_as_it_is_used(found: Findings) {
    if !is_here("gcc") {
        skipped("gcc is not on the PATH", "broker: a descriptor that changes");
        return;
    }
    let script = |tries: u32| {
        format!("cat > race.c <<'END'\n{SWAP}\nEND\ngcc -pthread -o race race.c && ./race $OPEN/f {tries}")
    };
    let said = World::new(Open, repository)
        .await
        .says(&script(1_000_000_000))
        .await;
    assert_eq!(said, "yes", "control");
    for level in levels(&found) {
        let said = World::new(level, repository).await.says(&script(5_000)).await;
        assert_eq!(said, "done", "{level:?}");
    }
}

/// The same calls on files of the session, and on what has no path.
pub(super) async fn own_descriptors_take_modes_and_times(found: Findings) {
    let script = "set -e; echo x > f; perl -e 'open F, \"<\", \"f\"; chmod(0751, *F) && chown($<, -1, *F) && utime(5, 6, *F) or die 1'; \
                  test $(stat -c %a,%X,%Y f) = 751,5,6; perl -e 'open F, \"<\", \"$ENV{TMPDIR}\"; chmod(0700, *F) or die 2'; \
                  perl -e 'pipe(R, W); chmod(0600, *W) or die 3; open F, \"+>\", \"gone\"; unlink \"gone\"; chmod(0640, *F) or die 4; \
                  die 99 unless ((stat F)[2] & 0777) == 0640'; mkdir a; echo y > a/b; touch -d @7 a/b; tar cf t.tar a; rm -r a; tar xpf t.tar; \
                  test $(stat -c %Y a/b) = 7; cp -p f g; test $(stat -c %a,%Y g) = 751,6; install -m 705 f h; test $(stat -c %a h) = 705";
    let by_number = "&& perl -e 'my $m = syscall(319, my $n = \"m\", 0); chmod(0600, \"/proc/self/fd/$m\") or die 5; \
                     syscall(91, $m, 0600) == 0 or die 6; open F, \"<\", \"f\"; my $f = fileno F; \
                     syscall(190, $f, my $x = \"user.x\", my $v = \"y\", 1, 0) == 0 or die 7; syscall(199, $f, $x) == 0 or die 8; \
                     syscall(91, -1, 0) == -1 && $! == 9 or die 9; syscall(280, -100, 0, 0, 0) == -1 && $! == 14 or die 10; \
                     syscall(16, $f, 0x40086602, my $l = pack(\"L\", 0x40)) == 0 or die 11; \
                     syscall(16, $f, 0x80086601, my $g = pack(\"L\", 0)) == 0 or die 12; die 98 unless unpack(\"L\", $g) & 0x40'";
    let by_number = if std::env::consts::ARCH == "x86_64" {
        by_number
    } else {
        ""
    };
    for level in [vec![Open], levels(&found)].concat() {
        let world = World::new(level, repository).await;
        let said = world.says(&format!("{script} {by_number} && echo good")).await;
        assert_eq!(said, "good", "{level:?}");
    }
}
