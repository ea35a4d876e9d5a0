//! Workspaces of real repositories, made with the real git.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests; the lints' own exception for tests does not reach their support functions"
)]

#[cfg(feature = "fault-points")]
mod kill;
mod kit;
mod life;
mod making;
mod traps;
