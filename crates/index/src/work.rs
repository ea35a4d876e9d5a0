//! The blocking work of a complete pass and of a complete query.

use crate::database::Reader;
use crate::embedder::Embedder;
use crate::embedding::embed;
use crate::error::IndexError;
use crate::find::find;
use crate::pace::Pace;
use crate::pass::{Job, Pass, Progress};
use crate::vector::to_bytes;
use agentd_tools::{SearchFound, SearchQuery};
use rusqlite::InterruptHandle;
use std::path::Path;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Brings an index up to date: words and places first, then vectors if there is a source for them.
///
/// # Errors
/// The directory cannot be opened, or the index cannot be written.
pub fn bring_up_to_date(
    job: &Job,
    pace: &mut Pace,
    tell: &watch::Sender<Progress>,
    embedder: Option<(&dyn Embedder, &Handle)>,
) -> Result<(), IndexError> {
    let mut pass = Pass::begin(job, pace, tell)?;
    pass.words()?;
    if let Some((embedder, runtime)) = embedder
        && !pass.pace.is_over()
    {
        match embed(&mut pass, embedder, runtime) {
            Err(error) if error.is_full() => {
                pass.writer.roll_back();
                pass.progress.unembedded = Some("the index is full (index.max_index_bytes)".to_owned());
            }
            other => other?,
        }
        pass.progress.vectors |= !pass.pace.is_over();
    }
    pass.writer.complete()?;
    pass.tell();
    Ok(())
}

/// The name of the vector's source, and the vector of the query.
pub type QueryVector = (String, Vec<f32>);

/// Answers a query from an index as it is. `begun` receives the handle that interrupts it.
///
/// # Errors
/// The index or the directory cannot be read.
pub fn ask(
    (file, workdir): (&Path, &Path),
    query: &SearchQuery,
    vector: Option<&QueryVector>,
    max_file_bytes: u64,
    begun: impl FnOnce(InterruptHandle),
) -> Result<SearchFound, IndexError> {
    let Some(reader) = Reader::open(file)? else {
        return Ok(SearchFound::default());
    };
    begun(reader.interrupt_handle());
    let (files, complete) = reader.extent()?;
    let ours = match vector {
        Some((name, vector)) if reader.embedded_by()?.as_ref() == Some(name) => to_bytes(vector),
        _ => None,
    };
    let hits = find(&reader, workdir, query, ours.as_deref(), max_file_bytes)?;
    Ok(SearchFound {
        hits,
        files,
        complete,
        notes: Vec::new(),
    })
}
