//! The load tool's parts that tests use, too: above all a model server that plays Anthropic and OpenAI.
//!
//! Flow: a request's last `plan:` words say what to answer; the count of assistant messages says at which step it is, so the
//! server keeps no conversation and its cost does not grow with history.

pub mod model_server;
