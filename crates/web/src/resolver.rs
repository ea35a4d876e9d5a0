//! Looking up names.

use agentd_name_lookup::Names;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// The addresses of a name, when they are known.
pub type Looking<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks up names; another one stands in for the system's in tests.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// All addresses of a name.
    fn look_up<'a>(&'a self, host: &'a str) -> Looking<'a>;

    /// The same for another session: names that are never answered take no place of each other's.
    fn apart(&self) -> Arc<dyn Resolver>;
}

/// The system's own look-up, for one session.
#[derive(Debug, Clone)]
pub struct SystemResolver(Names);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Names::of_session())
    }
}

impl Resolver for SystemResolver {
    fn look_up<'a>(&'a self, host: &'a str) -> Looking<'a> {
        Box::pin(self.0.look_up(host))
    }

    fn apart(&self) -> Arc<dyn Resolver> {
        Arc::new(Self::default())
    }
}
