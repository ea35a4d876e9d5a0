//! Checks the real code against recorded traffic and scenarios.
//!
//! An answer must decode to the same result at all chunk sizes, an error must be classified, and a request must be
//! encoded as it was recorded, except for the listed keys that are not modelled. The parsers of requests are in this
//! crate because nothing else needs them. A patch is applied by the tool that sessions use, and must produce the
//! expected files; a patch that must be refused must give an error.
//!
//! Invariant checked here: a recorded call is either complete or kept as text, so half an answer never runs anything (I4).
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
