//! The port to the judge of redirects, which decides before the fetch follows one.

use std::fmt::Debug;
use std::pin::Pin;

/// The verdict on the address of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hop {
    /// It may be followed.
    Allowed,
    /// No rule covers it: it is followed only on the same server.
    Unjudged,
    /// A person has to approve it.
    Asked,
    /// It may not be followed, with the reason.
    Denied(String),
}

/// Judges the addresses of redirects.
pub trait Hops: Debug + Send + Sync {
    /// Judges an address in its normalized form.
    fn judge(&self, url: &str) -> Pin<Box<dyn Future<Output = Hop> + Send + '_>>;
}

/// Leaves every redirect unjudged.
#[cfg(feature = "fetch")]
#[derive(Debug)]
pub(crate) struct NoOpinion;

#[cfg(feature = "fetch")]
impl Hops for NoOpinion {
    fn judge(&self, _: &str) -> Pin<Box<dyn Future<Output = Hop> + Send + '_>> {
        Box::pin(std::future::ready(Hop::Unjudged))
    }
}
