//! Web pages for agents: address checks, fetching, and conversion of HTML to Markdown.
//!
//! An address has one spelling, [`Target`]: what the rules judge is what is fetched. A name is looked up once, each of
//! its addresses is judged, and the connection goes to exactly these. The address of each redirect is judged like the
//! first one, and by the rules through [`Hops`]: the fetch follows it if they allow it, or, on the same server, if they
//! do not cover it; otherwise it returns the address, so that the caller can ask for permission. HTML is converted
//! token by token, without a tree, so neither deep nesting nor a table makes the result much larger than the page.
//!
//! Invariants: I6 (time, bytes and redirects of a fetch are bounded, whatever a server sends), I7 (an address that is not
//! known to be public, or cannot be judged, is refused), I8 (no credential, cookie, proxy setting or referrer is sent).
//!
//! Flow: text -> [`Target::parse`] -> [`Guard`] -> look-up -> [`Guard`] -> GET -> [`Fetch`].

mod address;
mod charset;
mod content;
mod error;
mod fetch;
mod guard;
mod hops;
#[cfg_attr(not(feature = "html"), path = "no_markdown.rs")]
mod markdown;
mod pins;
mod resolver;
mod target;

pub use address::not_public;
pub use error::WebError;
pub use fetch::{Elsewhere, Fetch, Fetcher, Page};
pub use guard::Guard;
pub use hops::{Hop, Hops};
pub use resolver::{Looking, Resolver, SystemResolver};
pub use target::Target;

#[cfg(test)]
mod tests;
