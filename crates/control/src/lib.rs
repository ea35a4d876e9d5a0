//! The control socket: a codec over [`agentd_api::Api`]. No method is implemented here.
//!
//! Invariants: I6 (one connection's flood, stall or junk does not affect others: every queue has a bound, every wait a
//! deadline), I7 (a peer whose user or ancestry cannot be determined is refused; so a tool cannot approve its own
//! calls), I2 (pushed frames keep their order, and a subscription's answer comes before its first push).
//!
//! Flow: [`bind`] -> [`serve`] -> peer check -> `hello` -> `welcome` -> request -> [`agentd_api::Api::call`] -> answer.

mod connection;
mod connections;
mod error;
mod greeting;
mod listen;
mod peer;
mod reader;
mod requests;
mod serve;
mod writer;

pub use connections::Connections;
pub use error::ControlError;
pub use listen::{Listener, bind};
pub use serve::serve;
