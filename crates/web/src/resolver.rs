//! Looking up names.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The addresses of a name, when they are known.
pub type Looking<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks up names; another one stands in for the system's in tests.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// All addresses of a name.
    fn look_up<'a>(&'a self, host: &'a str) -> Looking<'a>;
}

/// The system's own look-up.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn look_up<'a>(&'a self, host: &'a str) -> Looking<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
