//! The decoders with recorded and with broken streams.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its seeds must fail")]

mod fuzz;
mod recordings;
