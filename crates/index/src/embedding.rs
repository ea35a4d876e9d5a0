//! Makes vectors for chunks without one. If that fails, searches still work with words.

use crate::database::Waiting;
use crate::embedder::{Embedder, Unembedded};
use crate::error::IndexError;
use crate::pass::Pass;
use crate::vector::to_bytes;
use std::time::Duration;
use tokio::runtime::Handle;

/// The maximum size of a text in bytes.
const MAX_TEXT: usize = 6_000;
/// The first pause after a failure; each next one is twice as long,
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// up to this maximum.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Makes vectors until every chunk has one, or the source fails.
pub(crate) fn embed(
    pass: &mut Pass<'_>,
    embedder: &dyn Embedder,
    runtime: &Handle,
) -> Result<(), IndexError> {
    pass.writer.embedded_by(&embedder.name())?;
    let mut after = i64::MIN;
    loop {
        let waiting = pass.writer.without_vector(after, pass.limits().batch)?;
        let Some(last) = waiting.last() else {
            return Ok(());
        };
        after = last.chunk;
        let (ids, texts): (Vec<i64>, Vec<String>) = waiting
            .iter()
            .filter_map(|piece| Some((piece.chunk, text(pass, piece)?)))
            .unzip();
        if texts.is_empty() {
            continue;
        }
        match try_often(pass, embedder, runtime, &texts) {
            Ok(Some(vectors)) => {
                let kept: Vec<(i64, Vec<u8>)> = ids
                    .into_iter()
                    .zip(&vectors)
                    .filter_map(|(id, vector)| Some((id, to_bytes(vector)?)))
                    .collect();
                pass.progress.embedded += u64::try_from(kept.len()).unwrap_or_default();
                pass.writer.put_vectors(&kept)?;
                pass.tell();
                pass.pace.rest();
            }
            Ok(None) => return Ok(()),
            Err(failure) => {
                tracing::warn!(why = %failure.why, "could not make vectors; searches use words only");
                pass.progress.unembedded = Some(failure.why);
                return Ok(());
            }
        }
    }
}

/// The text sent for a chunk: its path and its lines, without anything that looks like a key (I8).
fn text(pass: &Pass<'_>, piece: &Waiting) -> Option<String> {
    let lines = pass.lines(&piece.path, piece.stamp, piece.first, piece.last)?;
    let text = format!("{}\n{lines}", piece.path);
    let text = agentd_text::redact(&text).into_owned();
    let end = text.floor_char_boundary(MAX_TEXT);
    Some(text.get(..end).unwrap_or_default().to_owned())
}

/// Requests vectors, with a limited number of retries. `None`: the pass must end.
fn try_often(
    pass: &Pass<'_>,
    embedder: &dyn Embedder,
    runtime: &Handle,
    texts: &[String],
) -> Result<Option<Vec<Vec<f32>>>, Unembedded> {
    let mut pause = FIRST_PAUSE;
    let mut tries = 0;
    loop {
        if pass.pace.is_over() {
            return Ok(None);
        }
        let failure = match runtime.block_on(embedder.embed(texts.to_vec())) {
            Ok(vectors) if vectors.len() == texts.len() => return Ok(Some(vectors)),
            Ok(vectors) => Unembedded {
                why: format!("sent {} texts, but got {} vectors", texts.len(), vectors.len()),
                again: false,
            },
            Err(failure) => failure,
        };
        if !failure.again || tries >= pass.limits().retries {
            return Err(failure);
        }
        tries += 1;
        if !pass.pace.wait(pause) {
            return Ok(None);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
