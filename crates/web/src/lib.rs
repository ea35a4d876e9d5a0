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

#[cfg(feature = "fetch")]
mod address;
#[cfg(feature = "fetch")]
mod charset;
#[cfg(feature = "fetch")]
mod content;
mod error;
#[cfg_attr(not(feature = "fetch"), path = "no_fetch.rs")]
mod fetch;
#[cfg(feature = "fetch")]
mod guard;
mod hops;
#[cfg(feature = "fetch")]
mod markdown;
mod page;
#[cfg(feature = "fetch")]
mod pins;
#[cfg(feature = "fetch")]
mod resolver;
mod target;

#[cfg(feature = "fetch")]
pub use address::not_public;
pub use error::WebError;
pub use fetch::Fetcher;
#[cfg(feature = "fetch")]
pub use guard::Guard;
pub use hops::{Hop, Hops};
pub use page::{Elsewhere, Fetch, Page};
#[cfg(feature = "fetch")]
pub use resolver::{Looking, Resolver, SystemResolver};
pub use target::Target;

#[cfg(test)]
mod tests;
