//! Holds recorded traffic and scenarios against the real code.
//!
//! An answer must decode to the same whatever the size of its pieces, an error must be classified, and a request must
//! come out of our own encoders as it was recorded, but for the listed keys that are not modelled. The readers of requests
//! live here because nothing else needs them. A patch is applied by the tool that sessions have, and must leave the files
//! that are expected; where it is to be refused, that must be an error.
//!
//! Invariant checked here: a recorded call is whole or kept as text, so nothing runs from half an answer (I4).
//!
//! Flow: directory -> suites -> files -> exchanges -> checks -> [`Report`]s.

mod answer;
mod apply_patch;
mod cassette;
mod dump;
mod error;
mod evidence;
mod json;
mod keys;
mod model_streams;
mod report;
mod request;
mod route;
mod suites;

pub use cassette::{Exchange, Header, Then, When, exchanges, files};
pub use dump::dump;
pub use error::ConformanceError;
pub use keys::{KEYS, Key, Side};
pub use report::{Finding, Report};
pub use route::{Route, route};
pub use suites::run;
