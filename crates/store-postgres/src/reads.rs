//! Pools of connections for reads and small changes, on the runtime that opened the store: callers may be on others.

use crate::error::words;
use crate::server::{Server, settings};
use agentd_store::StoreError;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// When the server plans a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// For the values of each call, if that may gain anything.
    ByValue,
    /// Once per connection, whatever the tables contain then; rows are read in the order of an index. By default the server plans
    /// each page of a log again, which takes longer than a small page: it does not know the limit, and expects a tenth of the table.
    Once,
}

impl Plans {
    fn settings(self) -> String {
        let once = match self {
            Self::ByValue => "",
            Self::Once => {
                "; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off"
            }
        };
        settings() + once
    }
}

/// A pool.
#[derive(Debug, Clone)]
pub(crate) struct Reads {
    pool: Pool,
    runtime: Handle,
    closed: watch::Sender<bool>,
}

impl Reads {
    pub(crate) fn new(
        server: &Server,
        plans: Plans,
        most: usize,
        wait: Duration,
    ) -> Result<Self, StoreError> {
        let config = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(server.config().clone(), server.tls(), config);
        let set = Hook::async_fn(move |client, _| {
            Box::pin(async move {
                let set = client.batch_execute(&plans.settings()).await;
                set.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(most.max(1))
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(wait),
                create: Some(wait),
                recycle: Some(wait),
            })
            .post_create(set)
            .build();
        Ok(Self {
            pool: pool.map_err(|error| server.unreachable(error))?,
            runtime: Handle::current(),
            closed: watch::channel(false).0,
        })
    }

    /// Runs statements on a connection of the pool.
    pub(crate) async fn run<T, F>(
        &self,
        work: impl FnOnce(Object) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if *self.closed.borrow() {
            return Err(StoreError::Stopped("it was closed".to_owned()));
        }
        let pool = self.pool.clone();
        let done = self.runtime.spawn(async move {
            let client = pool.get().await.map_err(|error| match error {
                deadpool_postgres::PoolError::Timeout(_) => {
                    StoreError::Busy("no connection to the database became free in time")
                }
                deadpool_postgres::PoolError::Backend(error) => StoreError::Server(words(&error)),
                other => StoreError::Server(other.to_string()),
            })?;
            work(client).await
        });
        done.await
            .map_err(|error| StoreError::Stopped(error.to_string()))?
    }

    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
        self.pool.close();
    }
}
