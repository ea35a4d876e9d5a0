//! Name resolution.

use agentd_name_lookup::Names;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// The pending addresses of a name.
pub type Looking<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Resolves names; tests substitute another implementation.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Resolves all addresses of a name.
    fn look_up<'a>(&'a self, host: &'a str) -> Looking<'a>;

    /// A resolver for another session, so that one session's unanswered names do not block another's.
    fn apart(&self) -> Arc<dyn Resolver>;
}

/// The system's name resolution, for one session.
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
