//! Looks up the addresses of names. The system's look-up blocks its thread, for half a minute if no name server answers,
//! and cannot be cancelled. So it never runs on threads that other work needs, each requester has few look-ups under way,
//! and all requests for one name share one look-up.
//!
//! Invariants: I6 (a name server that does not answer affects only requests for its names).
//!
//! Flow: [`Names::look_up`] -> a look-up of the same name already under way, or slots of the requester and of its pool -> a
//! thread -> the addresses, or an error at the deadline.

mod names;
mod pool;

pub use names::Names;
