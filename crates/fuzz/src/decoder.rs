//! Model streams: chunk boundaries do not matter. (`crates/conformance/tests/it/fuzz.rs` does more, with recordings.)

use agentd_provider::{Decoder, Dialect, ModelError, ModelReply, ModelSpec, Script};
use std::sync::Arc;

const DIALECTS: [Dialect; 6] = [
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Gemini,
    Dialect::Ollama,
    Dialect::LlamaCompletion,
];

fn decoded(dialect: Dialect, bytes: &[u8], piece: usize) -> Result<ModelReply, ModelError> {
    let spec = ModelSpec {
        dialect,
        ..ModelSpec::scripted("fuzz", Arc::new(Script::default()))
    };
    let mut events = Vec::new();
    let mut decoder = Decoder::new(&spec, &[])?;
    for piece in bytes.chunks(piece.max(1)) {
        decoder.feed(piece, &mut events)?;
    }
    decoder.finish(&mut events)
}

pub(crate) fn holds(bytes: &[u8]) {
    for dialect in DIALECTS {
        let whole = decoded(dialect, bytes, usize::MAX);
        assert_eq!(whole, decoded(dialect, bytes, 7), "{dialect:?} in pieces");
    }
}
