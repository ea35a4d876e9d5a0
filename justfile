# What CI runs, in the order of what fails fastest.
check: fmt-check lint tidy doc test

# Format everything.
fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# The house rules: layers, sizes, names, invariants, documented keys.
tidy:
    cargo xtask tidy

test *args:
    cargo test --workspace --locked {{args}}

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --locked

# The main job without a key or any set-up.
demo n="3":
    cargo run -p agentd -- --demo {{n}}

run *args:
    cargo run -p agentd -- {{args}}

# Figures: 10,000 idle sessions, a burst, the cost of a step.
bench *args:
    cargo run --release -p agentd-bench -- {{args}}
