//! Replaces fetching in a program that judges addresses and fetches no pages.

use crate::error::WebError;
use crate::hops::Hops;
use crate::page::Fetch;
use crate::target::Target;
use agentd_settings::WebConfig;
use std::convert::Infallible;
use std::sync::Arc;

/// There is none: [`Fetcher::new`] fails. Callers do not see that, so that their code compiles the same with and without it.
#[derive(Debug)]
pub struct Fetcher(Infallible);

impl Fetcher {
    /// # Errors
    /// Always: the program was built without fetching.
    pub fn new(_: &WebConfig) -> Result<Self, WebError> {
        Err(WebError::Connection("this program fetches no pages".to_owned()))
    }

    /// The same fetcher with a judge for the addresses of redirects.
    #[must_use]
    pub fn judged_by(self, _: Arc<dyn Hops>) -> Self {
        self
    }

    /// Fetches a page as text.
    ///
    /// # Errors
    /// It does not return.
    #[expect(clippy::unused_async, reason = "a fetcher that fetches waits")]
    pub async fn fetch(&mut self, _: &Target, _: bool) -> Result<Fetch, WebError> {
        match self.0 {}
    }
}
