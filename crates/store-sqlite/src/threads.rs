//! The store's own threads. No other work can occupy them, so a read waits only for other reads.

use agentd_store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long an idle thread is kept.
const KEPT: Duration = Duration::from_secs(2);

/// A few threads for blocking work. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Threads(Arc<Owned>);

/// A runtime that runs no tasks and only provides its blocking threads.
#[derive(Debug)]
struct Owned(Option<Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting here would block an async thread. All reads have ended, because their futures hold the store.
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    pub(crate) fn new(most: usize) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(most.max(1))
            .thread_keep_alive(KEPT)
            .thread_name("agentd-store")
            .build()
            .map_err(|error| {
                StoreError::Refused(format!("could not start threads for the store: {error}"))
            })?;
        Ok(Self(Arc::new(Owned(Some(runtime)))))
    }

    /// Runs work on one of these threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(runtime) = &self.0.0 else {
            return Err(StoreError::Stopped("it was closed".to_owned()));
        };
        let done = runtime.spawn_blocking(work).await;
        done.unwrap_or_else(|error| {
            Err(StoreError::Refused(format!(
                "a task of the store failed: {error}"
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn i6_the_store_reads_when_all_other_blocking_threads_are_taken() {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let (hold, held) = channel::<()>();
        drop(runtime.spawn_blocking(move || held.recv()));
        let threads = Threads::new(1).unwrap();
        assert_eq!(runtime.block_on(threads.run(|| Ok(7))).unwrap(), 7);
        drop(hold);
    }
}
