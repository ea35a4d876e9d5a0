//! Unix sockets in the working directory whose listener is outside of the sandbox, and those of the session itself.

use super::levels;
use super::world::{World, is_here};
use agentd_process_tests::skipped;
use agentd_protocol::SandboxLevel::{self, Confined, Isolated, None as Open};
use agentd_sandbox::Findings;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

/// What listens outside: `out.sock`, `packets.sock` and `datagrams.sock` in the working directory.
struct Outside {
    stream: UnixListener,
    packets: UnixListener,
    datagrams: UnixDatagram,
}

impl Outside {
    fn listen(dir: &Path) -> Self {
        let stream = UnixListener::bind(dir.join("out.sock")).unwrap();
        let packets: OwnedFd = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        let address = SocketAddrUnix::new(dir.join("packets.sock")).unwrap();
        rustix::net::bind(&packets, &address).unwrap();
        rustix::net::listen(&packets, 8).unwrap();
        let packets = UnixListener::from(packets);
        let datagrams = UnixDatagram::bind(dir.join("datagrams.sock")).unwrap();
        stream.set_nonblocking(true).unwrap();
        packets.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        Self {
            stream,
            packets,
            datagrams,
        }
    }

    /// Whether anything arrived.
    fn was_reached(&self) -> bool {
        let nothing = |error: std::io::Error| {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        };
        let accepted = |listener: &UnixListener| listener.accept().map_or_else(nothing, |_| true);
        let received = self.datagrams.recv(&mut [0; 8]).map_or_else(nothing, |_| true);
        accepted(&self.stream) | accepted(&self.packets) | received
    }
}

async fn world(level: SandboxLevel) -> (World, Outside) {
    let mut outside = None;
    let world = World::new(level, |dir| outside = Some(Outside::listen(dir))).await;
    (world, outside.unwrap())
}

const SOCKET: &str = "socket(S, AF_UNIX, SOCK_STREAM, 0) or die";
const SAFEHOUSE: &str = "eugene1g/agent-safehouse#19: connect() is no file operation";
const KILO: &str = "Kilo-Org/kilocode#11650: a listener acts with rights that the caller lacks";
const NONO: &str = "oalders/dot-files#1003 (nono): Landlock covers open, not connect";
const GREYWALL: &str = "GreyhavenHQ/greywall#55: a socket on a read-only mount accepts connections";

/// A name, what the shell does before, the Perl code that reaches a listener, and the source.
const ATTACKS: &[(&str, &str, &str, &str)] = &[
    (
        "by its name",
        ":",
        "connect(S, pack_sockaddr_un(\"out.sock\"))",
        SAFEHOUSE,
    ),
    (
        "by its path",
        ":",
        "connect(S, pack_sockaddr_un(\"$ENV{PWD}/out.sock\"))",
        KILO,
    ),
    (
        "by a link",
        "ln -s out.sock l",
        "connect(S, pack_sockaddr_un(\"l\"))",
        NONO,
    ),
    (
        "by a linked directory",
        "ln -s . l",
        "connect(S, pack_sockaddr_un(\"l/out.sock\"))",
        NONO,
    ),
    (
        "by another name",
        "ln out.sock h",
        "connect(S, pack_sockaddr_un(\"h\"))",
        "agentd's own review",
    ),
    (
        "moved",
        "mv out.sock m",
        "connect(S, pack_sockaddr_un(\"m\"))",
        "agentd's own review",
    ),
    (
        "in the place of an own socket",
        "perl -MSocket -e 'socket(B, AF_UNIX, SOCK_STREAM, 0); bind(B, pack_sockaddr_un(\"own\")); listen(B, 1)'; mv out.sock own",
        "connect(S, pack_sockaddr_un(\"own\"))",
        "checks by name: allowed paths of other sandboxes",
    ),
    (
        "by the own directory",
        ":",
        "connect(S, pack_sockaddr_un(\"/proc/self/cwd/out.sock\"))",
        "CVE-2024-21626: /proc/self as a way back",
    ),
    (
        "by the own root",
        ":",
        "connect(S, pack_sockaddr_un(\"/proc/self/root$ENV{PWD}/out.sock\"))",
        "CVE-2024-21626",
    ),
    (
        "by the directory of a descriptor",
        ":",
        "opendir(D, \".\") && connect(S, pack_sockaddr_un(\"/proc/self/fd/\" . fileno(D) . \"/out.sock\"))",
        "CVE-2024-21626",
    ),
    (
        "without waiting",
        ":",
        "do { use Fcntl; fcntl(S, F_SETFL, O_NONBLOCK) } && connect(S, pack_sockaddr_un(\"out.sock\"))",
        GREYWALL,
    ),
    (
        "from a named socket",
        ":",
        "bind(S, pack_sockaddr_un(\"mine\")) && connect(S, pack_sockaddr_un(\"out.sock\"))",
        GREYWALL,
    ),
    (
        "packets",
        ":",
        "socket(P, AF_UNIX, SOCK_SEQPACKET, 0) && connect(P, pack_sockaddr_un(\"packets.sock\"))",
        KILO,
    ),
    (
        "a datagram",
        ":",
        "socket(P, AF_UNIX, SOCK_DGRAM, 0) && send(P, \"x\", 0, pack_sockaddr_un(\"datagrams.sock\"))",
        "sd_notify(3), syslog(3): listeners of datagrams",
    ),
    (
        "a datagram of a connected socket",
        ":",
        "socket(P, AF_UNIX, SOCK_DGRAM, 0) && connect(P, pack_sockaddr_un(\"datagrams.sock\")) && send(P, \"x\", 0)",
        "sd_notify(3), syslog(3)",
    ),
    (
        "a datagram of a raw socket",
        ":",
        "socket(P, AF_UNIX, SOCK_RAW, 0) && send(P, \"x\", 0, pack_sockaddr_un(\"datagrams.sock\"))",
        "unix(7): the kernel makes it a datagram socket",
    ),
];

/// Also at `confined`, which has no other Unix sockets.
const PAIRS: &[(&str, &str, &str, &str)] = &[
    (
        "a datagram of a pair",
        ":",
        "socketpair(P, Q, AF_UNIX, SOCK_DGRAM, 0) && send(P, \"x\", 0, pack_sockaddr_un(\"datagrams.sock\"))",
        "filters on socket() alone",
    ),
    (
        "a datagram of a pair that connects again",
        ":",
        "socketpair(P, Q, AF_UNIX, SOCK_DGRAM, 0) && connect(P, pack_sockaddr_un(\"datagrams.sock\")) && send(P, \"x\", 0)",
        "filters on socket() alone",
    ),
    (
        "a datagram of a raw pair",
        ":",
        "socketpair(P, Q, AF_UNIX, SOCK_RAW, 0) && send(P, \"x\", 0, pack_sockaddr_un(\"datagrams.sock\"))",
        "unix(7): the kernel makes it a datagram socket",
    ),
];

pub(super) async fn redteam_no_command_reaches_a_listener_outside(found: Findings) {
    for (name, before, reach, _source) in ATTACKS.iter().chain(PAIRS) {
        let socket = if PAIRS.iter().any(|pair| pair.0 == *name) {
            "1"
        } else {
            SOCKET
        };
        let script = format!("{before}; perl -MSocket -e '{socket}; {reach} and print \"yes\"'");
        let (open, outside) = world(Open).await;
        assert_eq!(open.says(&script).await, "yes", "control: {name}");
        assert!(outside.was_reached(), "control: {name}");
        for level in levels(&found) {
            let (walled, outside) = world(level).await;
            let said = walled.says(&script).await;
            assert!(!said.contains("yes"), "{level:?}: {name}: {said}");
            assert!(!outside.was_reached(), "{level:?}: {name}");
        }
    }
}

/// The address in memory or the file behind a name changes while the call waits.
const RACES: &[(&str, &str)] = &[
    (
        "the address in memory",
        "memcpy(to.sun_path, \"out.sock\", 9); memcpy(to.sun_path, \"own.sock\", 9);",
    ),
    (
        "the file behind a name",
        "unlink(\"a\"); link(\"out.sock\", \"a\"); unlink(\"a\"); link(\"own.sock\", \"a\");",
    ),
];

fn race(swap: &str) -> String {
    let path = if swap.contains("link") { "a" } else { "own.sock" };
    format!(
        r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static struct sockaddr_un to = {{AF_UNIX, "{path}"}}, own = {{AF_UNIX, "own.sock"}};
static void *swap(void *unused) {{
    for (;;) {{ {swap} }}
    return unused;
}}
int main(int argc, char **argv) {{
    long tries = atol(argv[1]);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (void *)&own, sizeof own) || listen(server, 4096)) return 1;
    pthread_t thread;
    pthread_create(&thread, 0, swap, 0);
    for (long i = 0; i < tries; i++) {{
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct sockaddr_un peer = {{0}};
        socklen_t length = sizeof peer;
        if (!connect(s, (void *)&to, sizeof to) && !getpeername(s, (void *)&peer, &length)
            && strstr(peer.sun_path, "out.sock")) {{ puts("yes"); return 0; }}
        close(s);
    }}
    puts("done");
    return 0;
}}"#
    )
}

pub(super) async fn redteam_a_listener_is_judged_as_it_is_reached(found: Findings) {
    if !is_here("gcc") {
        return skipped("gcc is not on the PATH", "broker: races to a listener");
    }
    for (name, swap) in RACES {
        let source = race(swap);
        let script = |tries: u32| {
            format!("cat > race.c <<'END'\n{source}\nEND\ngcc -pthread -o race race.c && ./race {tries}")
        };
        let (open, _outside) = world(Open).await;
        assert_eq!(open.says(&script(1_000_000)).await, "yes", "control: {name}");
        if found.isolated.works() {
            let (walled, outside) = world(Isolated).await;
            assert_eq!(walled.says(&script(3_000)).await, "done", "{name}");
            assert!(!outside.was_reached(), "{name}");
        }
    }
}

/// A server and a client in one session.
const SERVER: &str = "my $at = $ARGV[0]; my $name = $at =~ s/^@/\\0/r; socket(L, AF_UNIX, SOCK_STREAM, 0) && \
    bind(L, pack_sockaddr_un($name)) && listen(L, 1) or die \"bind: $!\"; (unpack_sockaddr_un(getsockname L)) eq $name or die \"name\"; \
    my $child = fork; if (!$child) { for (1..5) { accept(C, L) or die; print C \"x\"; close C } exit } \
    for (1..5) { socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un($name)) or die \"connect: $!\"; \
    read(S, my $got, 1); $got eq \"x\" or die \"read\"; } wait; $? == 0 or die; print \"good\\n\"";

pub(super) async fn listeners_of_the_session_are_reached(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "broker: own listeners");
    }
    let places = "mkdir d; for at in s d/s $PWD/t $TMPDIR/s @abstract /dev/shm/s-$$; do";
    let script = format!(
        "{places} perl -MSocket -e '{SERVER}' $at; done; umask 077; cd d; \
         perl -MSocket -e '{SERVER}' m; stat -c %a m; perl -MSocket -e '{SERVER}' m 2>&1 | cut -d ' ' -f 1-4; \
         rm m; perl -MSocket -e '{SERVER}' m; mv m n; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
         connect(S, pack_sockaddr_un(\"n\")) or print $! + 0, \"\\n\"; connect(S, pack_sockaddr_un(\"none\")) or print $! + 0, \"\\n\"; \
         connect(S, pack_sockaddr_un(\"/dev/null\")) or print $! + 0, \"\\n\"; bind(S, pack_sockaddr_un(\"\")) or print $! + 0, \"\\n\"; \
         socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) and print \"pair\\n\"'; rm -f /dev/shm/s-$$"
    );
    let (open, _outside) = world(Open).await;
    let expected = open.says(&script).await;
    assert_eq!(expected.matches("good").count(), 8, "control: {expected}");
    let (walled, _outside) = world(Isolated).await;
    assert_eq!(walled.says(&script).await, expected);
}

/// A listener that accepts no connection holds up only the processes that wait for it.
pub(super) async fn i6_a_connection_that_waits_holds_nobody_up(found: Findings) {
    if !found.isolated.works() {
        return skipped("isolated does not work", "broker: waiting connections");
    }
    let script = "perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0); bind(L, pack_sockaddr_un(\"s\")); listen(L, 0); \
                  for (1..80) { my $child = fork; if ($child) { push @all, $child; next } socket(S, AF_UNIX, SOCK_STREAM, 0); \
                  connect(S, pack_sockaddr_un(\"s\")); exit } open F, \">\", \"f\" or die; print \"here\"; kill 9, @all; wait for @all'";
    let (walled, _outside) = world(Isolated).await;
    assert_eq!(walled.says(script).await, "here");
    // Their places become free when the listener is gone.
    let again = format!("until perl -MSocket -e '{SERVER}' again 2> /dev/null; do rm -f again; done");
    assert_eq!(walled.says(&again).await, "good");
}

/// Without the broker nothing decides which listeners are reached.
pub(super) async fn i7_without_a_broker_there_are_no_unix_sockets(found: Findings) {
    let script = "perl -MSocket -e 'print socket(S, AF_UNIX, SOCK_STREAM, 0) ? \"yes\" : $! + 0'";
    for level in levels(&found) {
        let said = World::without_broker(level, |_| {}).await.says(script).await;
        assert_eq!(said, "1", "{level:?}");
        let said = World::new(level, |_| {}).await.says(script).await;
        assert_eq!(
            said,
            if level == Confined { "1" } else { "yes" },
            "control: {level:?}"
        );
    }
}
