//! HTTP over the real api, store and feed; the supervisor and the gate are fakes.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod crowd;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the tests of the api, which use more of it")]
#[path = "../../../api/tests/it/harness.rs"]
mod harness;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod page;
mod requests;
#[cfg(test)]
mod server;
#[cfg(test)]
mod several;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod smuggling;
#[cfg(test)]
mod streaming;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod unknown_keys;
#[cfg(test)]
mod websocket;
