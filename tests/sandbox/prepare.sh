#!/bin/sh
# Makes what operations.sh works on: `prepare.sh DIR` fills DIR/w, the working directory, and DIR/out, the place outside,
# starts the other side of each operation, and writes DIR/env. It prints the process to end afterwards.
set -e
dir=$1
mkdir -p "$dir/w/sub" "$dir/w/fresh.d" "$dir/w/.vscode" "$dir/out/home/.ssh" "$dir/open"
git init -q "$dir/w"
git init -q "$dir/w/sub"
git -C "$dir/w" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
git init -q --bare "$dir/w/mirror.git"
mkdir -p "$dir/w/.git/modules/m"
: > "$dir/w/.git/modules/m/config"
for file in w/.envrc w/.vscode/tasks.json w/AGENTS.md open/file out/file out/deleted out/home/.bashrc; do : > "$dir/$file"; done
echo secret-canary > "$dir/out/home/.ssh/id"
chmod 600 "$dir/out/home/.ssh/id"
CANARY=canary-$$ perl -MSocket -e '
    my ($dir, $id) = @ARGV;
    socket(T, AF_INET, SOCK_STREAM, 0) && bind(T, pack_sockaddr_in(0, inet_aton("127.0.0.1"))) && listen(T, 8) or die;
    socket(U, AF_INET, SOCK_DGRAM, 0) && bind(U, pack_sockaddr_in(0, inet_aton("127.0.0.1"))) or die;
    socket(P, AF_UNIX, SOCK_STREAM, 0) && bind(P, pack_sockaddr_un("$dir/out/socket")) && listen(P, 8) or die;
    socket(W, AF_UNIX, SOCK_STREAM, 0) && bind(W, pack_sockaddr_un("$dir/w/socket")) && listen(W, 8) or die;
    socket(D, AF_UNIX, SOCK_DGRAM, 0) && bind(D, pack_sockaddr_un("$dir/w/datagrams")) or die;
    socket(A, AF_UNIX, SOCK_STREAM, 0) && bind(A, pack_sockaddr_un("\0canary-$id")) && listen(A, 8) or die;
    my $key = 0x61670000 + $id % 0xffff;
    syscall(29, $key, 4096, 01600);
    open(F, ">", "/tmp/agentd-shared-$id") or die;
    open(E, ">", "$dir/env.new") or die;
    my ($tcp) = unpack_sockaddr_in(getsockname T); my ($udp) = unpack_sockaddr_in(getsockname U);
    print E "OUT=$dir/out OPEN=$dir/open TCP=$tcp UDP=$udp VICTIM=$$ CANARY=canary-$id KEY=$key SHARED=/tmp/agentd-shared-$id SURVIVOR=86$id.5\n";
    close E; rename("$dir/env.new", "$dir/env");
    $SIG{TERM} = sub { unlink "/tmp/agentd-shared-$id"; my $i = syscall(29, $key, 4096, 0600); syscall(31, $i, 0, 0); exit };
    sleep 600; kill "TERM", $$;
' "$dir" $$ > /dev/null 2>&1 &
while [ ! -e "$dir/env" ]; do kill -0 $!; done
echo $!
