//! Tests of every backend, and shared helpers.

/// Runs each function over every backend.
macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::memory()).await; })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name(super::Kit::sqlite()).await; })*
        }
    };
}

mod conformance;
mod jsonl;
pub(crate) mod kit;
mod tokens;
