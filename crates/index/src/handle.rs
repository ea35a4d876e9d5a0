//! The indexer's interface for tools.

use crate::actor::IndexMsg;
use crate::answer::WITHIN;
use agentd_actor_kit::Handle;
use agentd_settings::{IndexConfig, Indexing};
use agentd_tools::{Search, SearchFound, SearchQuery};
use async_trait::async_trait;
use std::path::Path;
use std::time::Duration;

/// A handle with which tools search.
#[derive(Debug, Clone)]
pub struct IndexHandle {
    indexer: Handle<IndexMsg>,
    /// Whether directories are indexed before their first search.
    early: bool,
    within: Duration,
}

impl IndexHandle {
    /// A handle to an indexer; `None` if search is off.
    #[must_use]
    pub fn new(indexer: Handle<IndexMsg>, config: &IndexConfig) -> Option<Self> {
        (config.enabled != Indexing::Off).then(|| Self {
            indexer,
            early: config.enabled == Indexing::On,
            within: WITHIN + Duration::from_millis(config.wait_ms),
        })
    }
}

#[async_trait]
impl Search for IndexHandle {
    fn touched(&self, workdir: &Path) {
        if self.early {
            self.indexer.cast(IndexMsg::Touched {
                workdir: workdir.to_owned(),
            });
        }
    }

    async fn search(&self, workdir: &Path, query: SearchQuery) -> Result<SearchFound, String> {
        let workdir = workdir.to_owned();
        let ask = |done| IndexMsg::Search { workdir, query, done };
        match self.indexer.call(self.within, ask).await {
            Ok(answer) => answer,
            Err(error) => Err(error.to_string()),
        }
    }
}
