//! Hears of the commits of other nodes: hints, because a notification may be lost with the connection.

use crate::error::store_error;
use crate::server::{SCHEMA, Server};
use agentd_store::StoreError;
use futures_util::{StreamExt as _, pin_mut, stream};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

/// The pause before the next try to connect.
const AGAIN: Duration = Duration::from_secs(1);

/// Listens until dropped.
#[derive(Debug)]
pub(crate) struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    pub(crate) fn start(server: Server, committed: watch::Sender<u64>) -> Self {
        Self(tokio::spawn(async move {
            loop {
                if let Err(error) = listen(&server, &committed).await {
                    tracing::debug!(%error, "cannot listen to the database; trying again");
                }
                tokio::time::sleep(AGAIN).await;
            }
        }))
    }
}

/// Raises the cursor of the last known commit.
pub(crate) fn raise(committed: &watch::Sender<u64>, cursor: u64) {
    committed.send_if_modified(|seen| std::mem::replace(seen, cursor.max(*seen)) < cursor);
}

/// Returns when the connection has ended.
async fn listen(server: &Server, committed: &watch::Sender<u64>) -> Result<(), StoreError> {
    let (client, mut connection) = server.dial().await?;
    let messages = stream::poll_fn(move |context| connection.poll_message(context));
    pin_mut!(messages);
    let asking = async {
        // Only those who come late need the cursor; the notifications of others follow.
        let listens = client.batch_execute("LISTEN agentd_stream").await;
        listens.map_err(|error| store_error(&error))?;
        let cursor = format!("SELECT cursor FROM {SCHEMA}.stream");
        let row = client.query_one(&cursor, &[]).await;
        let cursor: i64 = row.map_err(|error| store_error(&error))?.get(0);
        raise(committed, agentd_store::backend::size(cursor));
        std::future::pending::<Result<(), StoreError>>().await
    };
    let hearing = async {
        while let Some(message) = messages.next().await {
            match message {
                Ok(AsyncMessage::Notification(hint)) => {
                    if let Ok(cursor) = hint.payload().parse() {
                        raise(committed, cursor);
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
        Ok(())
    };
    tokio::select! {
        failed = asking => failed,
        ended = hearing => ended,
    }
}
