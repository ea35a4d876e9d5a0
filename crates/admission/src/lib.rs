//! Admission of clients: which connection gets a place ([`Seats`]), and how much memory requests may take ([`Budget`]). The
//! servers of all transports use both.
//!
//! Invariant: I6 (when all places are taken, the client that does the least loses its place; the memory of requests has one
//! bound over all connections).

mod budget;
mod seats;

pub use budget::{Account, Budget, Hold};
pub use seats::{Reading, Seat, Seats, Shares, Work};
