//! A database for each test, on the server that all tests share.

use crate::kit::{Kit, moving_clock};
use agentd_process_tests::Postgres;
use agentd_store::{Backend, Options, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// A database of a test.
pub(crate) struct Database(agentd_process_tests::Database<'static>);

impl std::ops::Deref for Database {
    type Target = agentd_process_tests::Database<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Database {
    /// `None`: PostgreSQL is not installed, which is reported.
    pub(crate) fn create(test: &str) -> Option<Self> {
        Postgres::database(test).map(Self)
    }

    pub(crate) async fn open(&self, options: Options) -> Result<Arc<dyn Backend>, StoreError> {
        // A test may wait for the disk for a long time while other tests create databases.
        let options = Options {
            membership_timeout: Duration::from_secs(300),
            ..options
        };
        agentd_store_postgres::open(&self.url, None, options).await
    }

    pub(crate) async fn kit(&self) -> Kit {
        let (clock, now) = moving_clock();
        let options = Options {
            clock,
            readers: 8,
            read_timeout: Duration::from_secs(300),
            ..Options::default()
        };
        let backend = self.open(options).await.unwrap();
        Kit::new(tempfile::tempdir().unwrap(), backend, now)
    }
}
