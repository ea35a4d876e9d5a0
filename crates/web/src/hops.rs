//! Where a server sends a fetch on, judged by somebody else before it is followed.

use std::fmt::Debug;
use std::pin::Pin;

/// What somebody says of the address of a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hop {
    /// It may be followed.
    Allowed,
    /// Nobody has an opinion: it is followed at the same server only.
    Unjudged,
    /// A person has to be asked.
    Asked,
    /// It may not be followed, and why.
    Denied(String),
}

/// Judges the addresses of redirects.
pub trait Hops: Debug + Send + Sync {
    /// Judges one, in its one spelling.
    fn judge(&self, url: &str) -> Pin<Box<dyn Future<Output = Hop> + Send + '_>>;
}

/// Has no opinion.
#[derive(Debug)]
pub(crate) struct NoOpinion;

impl Hops for NoOpinion {
    fn judge(&self, _: &str) -> Pin<Box<dyn Future<Output = Hop> + Send + '_>> {
        Box::pin(std::future::ready(Hop::Unjudged))
    }
}
