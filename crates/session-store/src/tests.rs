//! Tests of the two actors on real ractor, with tokio's paused clock.

mod feed;
mod kit;
mod store;
