//! One search, from waiting for the index to the answer.

use crate::embedder::Embedder;
use crate::limits::Limits;
use crate::pass::Progress;
use crate::work::{QueryVector, ask};
use agentd_file_work::{FileWork, Turns};
use agentd_tools::{SearchFound, SearchQuery};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// How long a search waits for pending changes if an index already exists.
const REFRESH: Duration = Duration::from_secs(1);
/// How long a search waits for a permit,
const TURN: Duration = Duration::from_secs(10);
/// for the vector of its query,
const VECTOR: Duration = Duration::from_secs(5);
/// for its answer before slow index queries are interrupted,
const QUICK: Duration = Duration::from_secs(5);
/// and after that.
const LAST: Duration = Duration::from_secs(5);
/// The maximum total time, without the wait for a first index.
pub(crate) const WITHIN: Duration = Duration::from_secs(30);

/// The arguments of a search.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) file: PathBuf,
    pub(crate) workdir: PathBuf,
    pub(crate) query: SearchQuery,
    pub(crate) limits: Limits,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) at_once: Arc<Turns>,
}

/// Answers a search. Calls `no_vector` if the query's vector could not be made.
pub(crate) async fn answer(
    question: Question,
    mut progress: watch::Receiver<Progress>,
    no_vector: impl FnOnce(),
) -> Result<SearchFound, String> {
    let by_meaning = question.embedder.is_some();
    let first = {
        let progress = progress.borrow();
        !progress.complete || (by_meaning && !progress.vectors)
    };
    let patience = if first {
        question.limits.wait
    } else {
        question.limits.wait.min(REFRESH)
    };
    // After the timeout, the search uses what is indexed so far.
    let ready = |progress: &Progress| {
        progress.current && (progress.vectors || !by_meaning || progress.failed.is_some())
    };
    let _ = timeout(patience, progress.wait_for(ready)).await;
    let mut notes = Vec::new();
    let vector = match &question.embedder {
        Some(embedder) => match vector(embedder.as_ref(), &question.query.text).await {
            Ok(vector) => Some(vector),
            Err(why) => {
                tracing::warn!(why, "got no vector for a query; searching by words");
                notes.push(
                    "The embedding model does not answer: these results come from word search alone."
                        .to_owned(),
                );
                no_vector();
                None
            }
        },
        None => None,
    };
    let turn = timeout(TURN, question.at_once.on(&question.workdir)).await;
    let Ok(Ok(turn)) = turn else {
        return Err("too many searches are running".to_owned());
    };
    let found = read(question, vector).await;
    drop(turn);
    let progress = progress.borrow().clone();
    let mut found = match (found, progress.failed) {
        (Ok(found), Some(why)) if found.files == 0 => {
            let _ = found;
            return Err(format!("could not index the directory: {why}"));
        }
        (found, _) => found?,
    };
    found.complete |= progress.complete;
    if by_meaning && !progress.vectors {
        notes.push(format!(
            "The vectors of the index are being computed, {} in this pass so far: these results come from words. A later search may \
             find more.",
            progress.embedded
        ));
    }
    notes.extend(progress.left_out.map(|why| format!("Of this directory {why}.")));
    found.notes = notes;
    Ok(found)
}

async fn vector(embedder: &dyn Embedder, text: &str) -> Result<QueryVector, String> {
    let asked = timeout(VECTOR, embedder.embed(vec![text.to_owned()])).await;
    let vectors = asked
        .map_err(|_| format!("no answer within {} s", VECTOR.as_secs()))?
        .map_err(|failure| failure.why)?;
    let vector = vectors
        .into_iter()
        .next()
        .ok_or("the provider returned no vector")?;
    Ok((embedder.name(), vector))
}

/// Reads on a blocking thread. Interrupts slow index queries and uses what was found before.
async fn read(question: Question, vector: Option<QueryVector>) -> Result<SearchFound, String> {
    let (begun, handle) = oneshot::channel();
    let dir = question.workdir.clone();
    let files = FileWork::of_directory(&dir);
    let reading = files.run(&dir, QUICK + LAST, move || {
        let Question {
            file,
            workdir,
            query,
            limits,
            ..
        } = question;
        ask(
            (&file, &workdir),
            &query,
            vector.as_ref(),
            limits.max_file_bytes,
            |interrupt| {
                let _ = begun.send(interrupt);
            },
        )
    });
    tokio::pin!(reading);
    let read = match timeout(QUICK, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            if let Ok(interrupt) = handle.await {
                interrupt.interrupt();
            }
            reading.await
        }
    };
    read.map_err(|failed| failed.to_string())?
        .map_err(|error| error.to_string())
}
