//! The socket over the real api, store and feed; the supervisor and the gate are fakes.

#[cfg(test)]
mod abuse;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the tests of the api, which use more of it")]
#[path = "../../../api/tests/it/harness.rs"]
mod harness;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod wire_client;
#[cfg(test)]
mod work;
