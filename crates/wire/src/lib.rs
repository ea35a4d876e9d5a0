//! The frames of the control protocol: a 4-byte big-endian length, then one MessagePack map with named keys.
//!
//! Sans-IO: bytes go in, frames come out. Limits are checked before memory is allocated: the length before the body is
//! buffered, the depth and number of values before the body is decoded.
//!
//! Invariant: I2 (an event travels as its stored JSON bytes, unchanged). A malformed frame is a typed error, never a panic.
//!
//! Flow: bytes -> [`Decoder::feed`] -> [`Decoder::next_frame`] -> [`decode_client`] -> [`ClientFrame`], or
//! [`decode`] -> [`ServerFrame`].
//!
//! ```
//! use agentd_wire::{ClientFrame, Decoder, FrameLimits, Request, decode_client, encode};
//!
//! let limits = FrameLimits::of_requests(1 << 20);
//! let params = serde_json::json!({ "limit": 10 });
//! let request = ClientFrame::Request(Request { id: 1, method: "session.list".to_owned(), params });
//! let bytes = encode(&request, limits.max_frame_bytes)?;
//!
//! let mut decoder = Decoder::new(limits);
//! let (head, rest) = bytes.split_at(7);
//! decoder.feed(head);
//! assert!(decoder.next_frame()?.is_none(), "the frame is incomplete");
//! decoder.feed(rest);
//! let body = decoder.next_frame()?.unwrap();
//! assert_eq!(decode_client(&body, limits)?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
mod error;
mod frame;
mod handshake;
mod limits;
mod scan;
mod server_frame;

pub use codec::{Decoder, decode, encode, encode_after};
pub use error::WireError;
pub use frame::{ClientFrame, Request, decode_client};
pub use handshake::{Hello, Limits, VersionRange, Welcome, negotiate};
pub use limits::FrameLimits;
pub use server_frame::{DeltaFrame, Ended, Push, ServerFrame, StoredEvent};

#[cfg(test)]
mod tests;
