//! The client against the real server, and against servers that misbehave.

#[cfg(test)]
mod daemon;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the tests of the api, which use more of it")]
#[path = "../../../api/tests/it/harness.rs"]
mod harness;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod web;
