//! Pages from the web for agents: which addresses may be reached, fetching, and HTML as Markdown.
//!
//! An address has one spelling, [`Target`]: what is judged by rules is what is fetched. A name is looked up once, every
//! address that it stands for is judged, and the connection goes to exactly these. Each
//! address of a redirect is judged like the first one, and by the rules through [`Hops`]: one that they allow is followed,
//! one of the same server also where they say nothing, any other is given back, so that somebody can ask for it.
//! HTML is read token by token, without a tree: no depth of nesting and no table makes the result much larger than the page.
//!
//! Invariants: I6 (time, bytes and redirects of a fetch are bounded, whatever a server sends), I7 (an address that is not
//! known to be public, or cannot be judged, is refused), I8 (no credential, cookie, proxy setting or referrer is sent).
//!
//! Flow: text -> [`Target::parse`] -> [`Guard`] -> look-up -> [`Guard`] -> GET -> [`Answer`].

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
pub use fetch::{Answer, Elsewhere, Fetcher, Page};
pub use guard::Guard;
pub use hops::{Hop, Hops};
pub use resolver::{Looking, Resolver, SystemResolver};
pub use target::Target;

#[cfg(test)]
mod tests;
