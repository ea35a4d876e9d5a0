//! The suite of all backends over the one in memory, and its helpers.

/// Runs each function over a store in memory.
macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::memory()).await; })*
        }
    };
}

/// Runs each function over a source of new stores.
macro_rules! jsonl {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::memory).await; })*
        }
    };
}

mod conformance;
mod jsonl;
mod kit;
mod tokens;
