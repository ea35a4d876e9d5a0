# xtask with the features of `cargo test --workspace`: `cargo xtask` selects others, and compiles a hundred packages again.
xtask := "cargo build --quiet --workspace --locked --profile test --test arming --bin xtask && target/debug/xtask"

# What the changes since the main line concern: format, house rules, lints, unit tests.
check *args:
    {{xtask}} check {{args}}

# `.ci/run` in a fresh clone of HEAD. If it passes, target/ci-passed gets the hash of the tree.
ci:
    #!/usr/bin/env bash
    set -euo pipefail
    if [ -n "$(git status --porcelain)" ]; then
        git status --short
        echo "just ci tests HEAD: commit or stash these changes first"
        exit 1
    fi
    if [ -z "${AGENTD_FIXTURES:-}" ] && [ -d ../shared/fixtures ]; then
        AGENTD_FIXTURES="$(cd ../shared/fixtures && pwd)"
        export AGENTD_FIXTURES
    fi
    clone="$PWD/target/ci-clone"
    rm -rf "$clone"
    git clone --quiet . "$clone"
    tree="$(git -C "$clone" rev-parse 'HEAD^{tree}')"
    if ! CI=true bash "$clone/.ci/run" </dev/null; then
        echo "just ci: $tree failed; its clone is in $clone"
        exit 1
    fi
    echo "$tree" >>target/ci-passed
    rm -rf "$clone"
    echo "just ci: $tree passed"

# Everything that CI checks apart from other languages, in this tree.
check-all: fmt-check tidy doc lint test

# Tests many times with little of the processor and a busy disk: `just stress cancel:: --times 20`.
stress *args:
    {{xtask}} stress {{args}}

# Format everything.
fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# The house rules: layers, sizes, names, invariants, documented keys.
tidy:
    {{xtask}} tidy

test *args:
    cargo test --workspace --locked {{args}}

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --locked

# The demo: agents at work, without an API key or any setup.
demo n="3":
    cargo run -p agentd -- --demo {{n}}

# A PostgreSQL server and nodes that share it, in one command; Ctrl-C ends them. Needs PostgreSQL's programs.
cluster nodes="3":
    cargo build -p agentd -p agentctl -p agentd-tags
    {{xtask}} cluster {{nodes}}

# Random faults of three nodes, their database, connections and clocks: the seed, the number of faults and of sessions. CI runs
# seed 1 with 16 and 30.
chaos seed="1" faults="60" sessions="300":
    AGENTD_SEED={{seed}} AGENTD_FAULTS_AT_RANDOM={{faults}} AGENTD_SESSIONS_AT_RANDOM={{sessions}} cargo test -p agentd-tests --test suite cluster::chaos

# The pictures of README.md and docs/page.md, from a scripted fleet. Needs chromium and tests/page/package.json installed in target/page.
pictures into="docs/pictures":
    cargo build -p agentd -p agentctl -p agentd-tags
    node tests/page/pictures.mjs {{into}}

# The pictures of the terminal in README.md and docs/terminal.md, from the same fleet. Needs node and tmux.
pictures-terminal into="docs/pictures":
    cargo build -p agentd -p agentctl -p agentd-tags
    node tests/page/terminal.mjs {{into}}

run *args:
    cargo run -p agentd -- {{args}}

# Benchmarks with the release build: `just bench idle`, `just bench fleet`, ...; `just bench --help` lists the modes.
bench *args:
    cargo build --release -p agentd -p agentd-bench -p agentd-tags
    target/release/agentd-bench {{args}}

# The programs that packages ship, in target/dist: stripped, with fat LTO. The build takes half an hour on two cores. One
# after the other: in one build, agentctl would get all features of its dependencies that only agentd needs.
dist:
    cargo build --profile dist --locked -p agentd -p agentd-tags
    cargo build --profile dist --locked -p agentctl
    @ls -l target/dist/agentd target/dist/agentctl target/dist/agentd-tags

# Simulated runs: their number, the first seed, the nodes. `cargo run -p agentd-simulator -- --seed N` replays one.
simulate runs="20000" from="100000" nodes="1":
    cargo run -p agentd-simulator -- --runs {{runs}} --from {{from}} --nodes {{nodes}}

# The fault matrix with random faults: the number of rounds and the seed.
matrix rounds="20" seed="1":
    AGENTD_MATRIX_ROUNDS={{rounds}} AGENTD_MATRIX_SEED={{seed}} cargo test -p agentd-tests --test suite matrix::

# Targets: wire import settings shell patch terminal fold decoder typed. On the stable toolchain, `cargo test -p agentd-fuzz`
# runs the same targets over mutated inputs.
# Coverage-guided fuzzing (libFuzzer). Needs the nightly toolchain and `cargo install cargo-fuzz`.
fuzz target seconds="60":
    @cargo +nightly --version >/dev/null || { echo "just fuzz needs the nightly toolchain: rustup toolchain install nightly"; exit 1; }
    @cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "just fuzz needs cargo-fuzz: cargo install cargo-fuzz"; exit 1; }
    mkdir -p target/fuzz/{{target}}
    AGENTD_FUZZ_TARGET={{target}} cargo +nightly fuzz run --fuzz-dir crates/fuzz/libfuzzer any target/fuzz/{{target}} crates/fuzz/corpus/{{target}} -- -max_total_time={{seconds}} -max_len=65536

# The same targets over more mutations of the corpus, with the stable toolchain.
fuzz-stable runs="100000" seed="1":
    AGENTD_FUZZ_RUNS={{runs}} AGENTD_FUZZ_SEED={{seed}} cargo test --release -p agentd-fuzz --test replay

# Adds the log of an end-to-end test (`history::a_fork_goes_its_own_way`) to the golden logs, with its snapshot.
golden test name:
    rm -rf target/kept-logs
    AGENTD_KEEP_LOGS={{justfile_directory()}}/target/kept-logs cargo test -p agentd-tests --test suite {{test}}
    cp target/kept-logs/*.jsonl tests/golden/logs/{{name}}.jsonl
    INSTA_UPDATE=always cargo test -p agentd-tests --test suite golden::

# Microbenchmarks: frames, decoder, verdict, fold and decision, append.
bench-micro *args:
    cargo bench -p agentd-wire -p agentd-provider -p agentd-policy -p agentd-turn -p agentd-store-sqlite --bench frames --bench decoder --bench verdict --bench fold --bench append -- {{args}}

# Appends to PostgreSQL at a fixed rate: `just bench-appends 1000 2 10` for 1,000 a second of 2 events each, for 10 s.
bench-appends *args:
    cargo bench -p agentd-store-postgres --bench open_loop -- {{args}}

# The demo runs in one tmux session; in another one a scripted person attaches and approves.
# Print the terminal output in README.md, recorded from the second session.
picture:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p agentd -p agentctl -p agentd-tags
    dir=$(mktemp -d)
    export AGENTD_SOCKET="$dir/agentd.sock" PATH="$PWD/target/debug:$PATH"
    tmux() { command tmux -L agentd-picture -f /dev/null "$@"; }
    shown() { tmux capture-pane -p -S - -t person; }
    await() { for _ in $(seq 300); do if eval "$1"; then return; fi; sleep 0.2; done; echo "not seen: $1" >&2; exit 1; }
    trap 'tmux kill-server 2>/dev/null; rm -rf "$dir"' EXIT
    tmux new-session -d -s demo -x 96 -y 50 agentd --demo --socket "$AGENTD_SOCKET"
    tmux new-session -d -s person -x 96 -y 100 env PS1='$ ' sh
    await 'agentctl ps -q 2>/dev/null | grep -q .'
    tmux send-keys -t person 'agentctl ps' Enter
    await 'shown | grep -q "demo 3"'
    tmux send-keys -t person 'agentctl attach --no-tui "demo 1"' Enter
    await 'shown | grep -q "y allow"'
    tmux send-keys -t person y Enter
    await 'shown | grep -q "^turn"'
    tmux send-keys -t person C-c
    await 'shown | grep -q "^detached"'
    agentctl -q wait "demo 2" "demo 3" >/dev/null
    tmux send-keys -t person 'agentctl ps' Enter
    await '[ "$(shown | grep -c ^SESSION)" = 2 ]'
    shown | sed -e "s/ *$//" -e "/^$/d" -e "/^[$]$/d"

# Build the book of docs/ into target/book. Needs mdbook (`cargo install mdbook --locked`).
book:
    mdbook build
