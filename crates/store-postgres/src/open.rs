//! Opens a database: checks the server, migrates, starts the writer.

use crate::fleet::Membership;
use crate::listener::Listener;
use crate::reads::{Plans, Reads};
use crate::server::Server;
use crate::store::PostgresStore;
use crate::writer::{Shared, Writer};
use crate::{rules, schema};
use agentd_store::backend::Counters;
use agentd_store::{Backend, Options, Purpose, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tokio::sync::watch;

/// Opens `postgres://USER@HOST/DATABASE`. `password` replaces the one in the URL.
///
/// # Errors
/// The URL is invalid; the server cannot be reached, would lose data, or is behind a pooler in transaction mode; a newer
/// agentd wrote the database.
pub async fn open(
    url: &str,
    password: Option<&str>,
    options: Options,
) -> Result<Arc<dyn Backend>, StoreError> {
    let server = Server::parse(url, password)?;
    let client = server.connect().await?;
    rules::check(&server, &client).await?;
    let fatal = watch::channel(None).0;
    schema::migrate(&client).await?;
    drop(client);
    let pool = |plans| Reads::new(&server, plans, options.readers.div_ceil(2), options.read_timeout);
    let (reads, pages) = (pool(Plans::ByValue)?, pool(Plans::Once)?);
    if options.purpose != Purpose::Destination {
        reads.run(crate::parts::refuse_unfinished).await?;
    }
    let cursor = reads.run(|client| async move { crate::queries::cursor(&client).await });
    let shared = Shared {
        server,
        clock: options.clock,
        node: Arc::new(AtomicI64::new(0)),
        counters: Arc::new(Counters::default()),
        committed: watch::channel(cursor.await?).0,
        own: Arc::default(),
        fatal,
    };
    let writer = Writer::start(shared.clone(), options.write_timeout);
    let node = Arc::clone(&shared.node);
    let patience = options.membership_timeout;
    let fleet = Membership::new(shared.server.clone(), node, patience, reads.clone());
    let listener = Listener::start(shared.server.clone(), shared.committed.clone());
    Ok(Arc::new(PostgresStore::new(
        shared,
        writer,
        (reads, pages),
        (fleet, listener),
    )))
}
