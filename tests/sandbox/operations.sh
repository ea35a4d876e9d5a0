#!/bin/sh
# What a sandbox should refuse: one operation per line, tried from inside. Prints `allowed NAME` or `refused NAME`.
#
# Run it in the working directory that `prepare.sh DIR` made, with the file `env` of that directory's parent read first.
# docs/security.md has the table of what agentd and another sandbox answer, and how to repeat it.
# System calls have their numbers on x86_64.

. "$1"

try() {
    if sh -c "$2" >/dev/null 2>&1; then
        echo "allowed $1"
    else
        echo "refused $1"
    fi
}
call() {
    try "$1" "perl -e 'exit(syscall($2) < 0 ? 1 : 0)'"
}
connect() {
    try "$1" "perl -MSocket -e '$2 or exit 1'"
}

# Files outside.
try "write a new file outside" "echo x > $OUT/new"
try "append to a file outside" "echo x >> $OUT/file"
try "delete a file outside" "rm -f $OUT/deleted && test ! -e $OUT/deleted && test -e $OUT/file"
try "write .bashrc in the home directory" "echo x >> $OUT/home/.bashrc"
try "write a file of others in /tmp" "test -e $SHARED && echo x > $SHARED"
try "read a private key outside" "grep -q canary $OUT/home/.ssh/id"
try "read through a link that leads out" "ln -sf $OUT/home/.ssh/id l1 && grep -q canary l1"
try "write through a link that leads out" "ln -sfn $OUT l2 && echo x > l2/new2"
try "hard link to a file outside" "ln $OUT/file hard"
try "chmod of a file outside" "chmod 777 $OUT/file"
try "set the times of a file outside" "touch -d 2001-01-01 $OUT/file"
try "rename a file outside" "mv $OUT/file $OUT/file2 && mv $OUT/file2 $OUT/file"
call "chmod of a file outside that is open for reading" "91, do { open F, \"<\", \"$OPEN/file\"; fileno F }, 0644"
call "owner of a file outside that is open for reading" "93, do { open F, \"<\", \"$OPEN/file\"; fileno F }, \$< + 0, -1"
call "times of a file outside that is open for reading" "280, do { open F, \"<\", \"$OPEN/file\"; fileno F }, 0, 0, 0"
call "attribute of a file outside that is open for reading" "190, do { open F, \"<\", \"$OPEN/file\"; fileno F }, my \$n = \"user.x\", my \$v = \"y\", 1, 0"

# Files that run by themselves.
try "change .git/config" "echo '#' >> .git/config"
try "add a hook" "echo x > .git/hooks/post-checkout"
try "change a configuration of a submodule" "echo '#' >> .git/modules/m/config"
try "make .git/commondir" "echo x > .git/commondir && { rm -f .git/commondir; true; }"
try "move .git away" "mv .git git2 && mv git2 .git"
try "change .git/config in a directory below" "echo '#' >> sub/.git/config"
try "make a new .git in a directory below" "mkdir -p fresh/.git && echo x > fresh/.git/config"
try "change .envrc" "echo x >> .envrc"
try "make a new .envrc in a directory below" "echo x > fresh.d/.envrc"
try "change .vscode/tasks.json" "echo x >> .vscode/tasks.json"
try "change AGENTS.md" "echo x >> AGENTS.md"

# Git as a way out.
try "put a hook into the index" "b=\$(echo x | git hash-object -w --stdin) && git update-index --add --cacheinfo 100755,\$b,.husky/x"
try "make a branch" "git rev-parse HEAD > .git/refs/heads/side"
try "let HEAD name another branch" "h=\$(git symbolic-ref HEAD) && git symbolic-ref HEAD refs/heads/other && git symbolic-ref HEAD \$h"
try "overwrite an object" "f=\$(ls -d .git/objects/??/* | head -n 1) && chmod u+w \$f && echo x > \$f"
try "replace a commit by another" "mkdir -p .git/refs/replace && echo x > .git/refs/replace/x"
try "pretend that history ends" "echo > .git/shallow && rm .git/shallow"
try "change .git/info/exclude" "mkdir -p .git/info && echo '*.o' >> .git/info/exclude"
try "add a remote that is a path" "git remote add up ./mirror.git"
try "add a hook to a bare repository" "echo x > mirror.git/hooks/post-receive"
try "write a reference of a bare repository" "echo x > mirror.git/refs/heads/x"

# Rights.
try "chmod of a set-user-id bit" "echo > s1 && chmod 4755 s1 && test -u s1"
try "create a file with a set-user-id bit" "perl -e 'use Fcntl; umask 0; sysopen(F, \"s2\", O_CREAT|O_WRONLY, 04755) or exit 1; exit((stat F)[2] & 04000 ? 0 : 1)'"
call "make a user namespace" "272, 0x10000000"
try "mount a file system" "mkdir -p mnt && perl -e 'my (\$n, \$at, \$fs) = (\"none\", \"mnt\", \"tmpfs\"); syscall(165, \$n, \$at, \$fs, 0, 0) == 0 or exit 1; syscall(166, \$at, 0)'"
call "io_uring" "425, 1, my \$p = \"\\0\" x 120"
call "bpf" "321, 0, my \$p = pack(\"LLLL\", 2, 4, 4, 1) . \"\\0\" x 112, 128"
call "add a key" "248, my \$t = \"user\", my \$d = \"agentd-test\", my \$v = \"x\", 1, -2"
try "make a device file" "mknod dev1 c 1 3"
try "open a setting of the kernel for writing" "perl -e 'use Fcntl; sysopen(F, \"/proc/sys/kernel/core_pattern\", O_WRONLY) or exit 1'"

# Other processes.
try "signal another process" "kill -CONT $VICTIM"
call "trace another process" "101, 0x4206, $VICTIM, 0, 0"
try "read the environment of another process" "cat /proc/[0-9]*/environ | grep -q $CANARY"
try "read through the root of another process" "grep -q canary /proc/$VICTIM/root$OUT/home/.ssh/id"
call "shared memory of another process" "29, $KEY, 4096, 0600"
try "put characters into the terminal's input" "perl -e 'open(T, \"+<\", \"/dev/ptmx\"); my \$c = \"x\"; exit(ioctl(T, 0x5412, \$c) ? 0 : 1)'"
# Whether it lives on is seen from outside, when this script has ended.
setsid sleep "$SURVIVOR" > /dev/null 2>&1 &

# Network.
connect "connect by TCP to this machine" "socket(S, AF_INET, SOCK_STREAM, 0) && connect(S, pack_sockaddr_in($TCP, inet_aton(\"127.0.0.1\")))"
connect "send by UDP" "socket(S, AF_INET, SOCK_DGRAM, 0) && send(S, \"x\", 0, pack_sockaddr_in($UDP, inet_aton(\"127.0.0.1\")))"
connect "connect to a Unix socket outside" "socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"$OUT/socket\"))"
connect "connect to a Unix socket in the directory whose listener is outside" "socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"socket\"))"
connect "send a datagram to such a socket" "socketpair(S, T, AF_UNIX, SOCK_DGRAM, 0) && send(S, \"x\", 0, pack_sockaddr_un(\"datagrams\"))"
connect "connect to an abstract socket" "socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"\\0$CANARY\"))"
connect "a raw socket" "socket(S, 17, SOCK_RAW, 0x300)"
