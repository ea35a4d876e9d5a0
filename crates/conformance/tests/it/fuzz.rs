//! Streams that no server should send: recordings and seeds cut, doubled, flipped, spliced or reordered, and noise.
//!
//! `PROPTEST_CASES` sets the number of cases; `AGENTD_FIXTURES` adds recordings to the seeds.

use agentd_conformance::{Route, exchanges, files, route};
use agentd_protocol::Block;
use agentd_provider::{Decoder, Dialect, ModelError, ModelEvent, ModelReply, ModelSpec, Script};
use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Every dialect that is decoded from bytes, with the name of its seed.
const DIALECTS: [(Dialect, &str); 6] = [
    (Dialect::Anthropic, "anthropic"),
    (Dialect::OpenaiChat, "openai-chat"),
    (Dialect::OpenaiResponses, "openai-responses"),
    (Dialect::Gemini, "gemini"),
    (Dialect::Ollama, "ollama"),
    (Dialect::LlamaCompletion, "llama-completion"),
];

/// An answer is kept at most twice (decoded and raw), and escapes and invalid UTF-8 expand.
const GROWTH: usize = 16;

/// Memory that any answer needs, however short it is.
const BASE: usize = 4_096;

struct Seed {
    dialect: Dialect,
    bytes: Vec<u8>,
}

/// The seeds in the repository: a complete answer in each dialect.
static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    DIALECTS
        .iter()
        .map(|(dialect, name)| Seed {
            dialect: *dialect,
            bytes: std::fs::read(dir.join(format!("{name}.txt"))).unwrap(),
        })
        .collect()
});

/// The seeds and the recorded streams.
static CORPUS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let seeds = SEEDS.iter().map(|seed| Seed {
        dialect: seed.dialect,
        bytes: seed.bytes.clone(),
    });
    let recorded =
        std::env::var_os("AGENTD_FIXTURES").map(|dir| recordings(&Path::new(&dir).join("model-streams")));
    seeds.chain(recorded.into_iter().flatten()).collect()
});

fn recordings(dir: &Path) -> Vec<Seed> {
    let mut found = Vec::new();
    for path in files(dir, &["yaml"]).unwrap() {
        for exchange in exchanges(&path).unwrap().into_iter().flatten() {
            if let Route::Dialect(dialect) = route(&exchange.when) {
                let bytes = exchange.then.bytes().to_vec();
                found.push(Seed { dialect, bytes });
            }
        }
    }
    found
}

type Outcome = (Result<ModelReply, ModelError>, Vec<ModelEvent>);

fn spec(dialect: Dialect) -> ModelSpec {
    ModelSpec {
        dialect,
        ..ModelSpec::scripted("fuzz", Arc::new(Script::default()))
    }
}

/// Decodes bytes in chunks of these sizes, cyclically; no sizes: as one chunk.
fn decode(dialect: Dialect, bytes: &[u8], sizes: &[usize]) -> Outcome {
    let mut events = Vec::new();
    let reply = decoded(dialect, bytes, sizes, &mut events);
    (reply, events)
}

fn decoded(
    dialect: Dialect,
    mut bytes: &[u8],
    sizes: &[usize],
    events: &mut Vec<ModelEvent>,
) -> Result<ModelReply, ModelError> {
    let mut decoder = Decoder::new(&spec(dialect), &[])?;
    let mut sizes = sizes.iter().cycle();
    while !bytes.is_empty() {
        let size = sizes.next().map_or(bytes.len(), |size| (*size).min(bytes.len()));
        let (piece, rest) = bytes.split_at(size);
        decoder.feed(piece, events)?;
        bytes = rest;
    }
    decoder.finish(events)
}

/// The text of the pieces, joined per block.
fn shown(events: &[ModelEvent]) -> Vec<(u32, String)> {
    let mut seen: Vec<(u32, String)> = Vec::new();
    for event in events {
        let (ModelEvent::TextDelta { block, text }
        | ModelEvent::ThinkingDelta { block, text }
        | ModelEvent::ToolStart { block, name: text }
        | ModelEvent::ToolInputDelta { block, text }) = event;
        match seen.last_mut().filter(|(last, _)| last == block) {
            Some((_, words)) => words.push_str(text),
            None => seen.push((*block, text.clone())),
        }
    }
    seen
}

fn weight(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Thinking { text, raw } => text.len() + raw.as_ref().map_or(0, String::len),
        Block::ToolUse { id, name, input } => id.len() + name.len() + input.to_string().len(),
        Block::Image { .. } | Block::ToolResult { .. } | Block::Unknown => 0,
    }
}

/// Properties for all bytes: no panic, chunk sizes do not matter, and the result is not much larger than the input.
fn holds(dialect: Dialect, bytes: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let (whole, events) = decode(dialect, bytes, &[]);
    let (pieces, others) = decode(dialect, bytes, sizes);
    prop_assert_eq!(&pieces, &whole, "{:?} in pieces of {:?}", dialect, sizes);
    prop_assert_eq!(shown(&others), shown(&events));
    let kept: usize = whole.iter().flat_map(|reply| &reply.content).map(weight).sum();
    let told: usize = shown(&events).iter().map(|(_, text)| text.len()).sum();
    prop_assert!(
        kept.max(told) <= BASE + GROWTH * bytes.len(),
        "{} bytes became {kept} and {told}",
        bytes.len()
    );
    if let Err(error) = &whole {
        prop_assert!(!error.message.is_empty());
    }
    // The same bytes as a whole answer may give any result but a panic.
    let taken = Decoder::new(&spec(dialect), &[]).map(|decoder| decoder.whole(bytes, &mut Vec::new()));
    prop_assert!(taken.is_ok());
    Ok(())
}

/// One way to corrupt a stream; positions are fractions of its length.
#[derive(Debug, Clone)]
enum Harm {
    Cut(f64),
    Drop(f64, f64),
    Double(f64, f64),
    Flip(f64, u8),
    Insert(f64, Vec<u8>),
    Splice(f64, prop::sample::Index, f64),
    Reorder(prop::sample::Index, prop::sample::Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = || 0.0..1.0_f64;
    prop_oneof![
        at().prop_map(Harm::Cut),
        (at(), at()).prop_map(|(from, to)| Harm::Drop(from, to)),
        (at(), at()).prop_map(|(from, to)| Harm::Double(from, to)),
        (at(), any::<u8>()).prop_map(|(place, byte)| Harm::Flip(place, byte)),
        (at(), noise(40)).prop_map(|(place, bytes)| Harm::Insert(place, bytes)),
        (at(), any::<prop::sample::Index>(), at())
            .prop_map(|(place, other, from)| Harm::Splice(place, other, from)),
        (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(one, other)| Harm::Reorder(one, other)),
    ]
}

/// Tokens of streams in random order.
fn noise(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&[u8]; 22] = [
        b"data:",
        b"data: ",
        b"event: ",
        b"error",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b":",
        b"{}",
        b"[]",
        b"null",
        b"[DONE]",
        b"{\"type\":\"message_stop\"}",
        b"{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        b"{\"error\":{}}",
        b"{\"candidates\":[{\"finishReason\":\"STOP\"}]}",
        b"{\"done\":true}",
        b"\xEF\xBB\xBF",
        b"\xF0\x9F",
        b"\0",
        b"{\"type\":\"response.completed\",\"response\":{}}",
    ];
    let word = prop_oneof![
        3 => prop::sample::select(WORDS.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..16),
    ];
    prop::collection::vec(word, 0..longest).prop_map(|words| words.concat())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a fraction of a length is a place in it, wherever exactly"
)]
fn place(bytes: &[u8], fraction: f64) -> usize {
    ((bytes.len() as f64 * fraction) as usize).min(bytes.len())
}

/// The frames of a stream, with what ends them.
fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let end: &[u8] = if bytes.windows(2).any(|two| two == b"\n\n") {
        b"\n\n"
    } else {
        b"\n"
    };
    let text = String::from_utf8_lossy(bytes).into_owned();
    text.split_inclusive(std::str::from_utf8(end).unwrap())
        .map(|frame| frame.as_bytes().to_vec())
        .collect()
}

fn harmed(mut bytes: Vec<u8>, harm: &Harm) -> Vec<u8> {
    let range = |bytes: &[u8], from: f64, to: f64| place(bytes, from.min(to))..place(bytes, from.max(to));
    match harm {
        Harm::Cut(end) => bytes.truncate(place(&bytes, *end)),
        Harm::Drop(from, to) => drop(bytes.drain(range(&bytes, *from, *to))),
        Harm::Double(from, to) => {
            let range = range(&bytes, *from, *to);
            let (at, again) = (range.end, bytes.get(range).unwrap_or_default().to_vec());
            bytes.splice(at..at, again);
        }
        Harm::Flip(at, byte) => {
            let at = place(&bytes, *at);
            if let Some(hit) = bytes.get_mut(at) {
                *hit ^= byte;
            }
        }
        Harm::Insert(at, new) => {
            let at = place(&bytes, *at);
            bytes.splice(at..at, new.iter().copied());
        }
        Harm::Splice(at, other, from) => {
            bytes.truncate(place(&bytes, *at));
            let other = &CORPUS.get(other.index(CORPUS.len())).unwrap().bytes;
            bytes.extend_from_slice(other.get(place(other, *from)..).unwrap_or_default());
        }
        Harm::Reorder(one, other) => {
            let mut frames = frames(&bytes);
            if !frames.is_empty() {
                let (one, other) = (one.index(frames.len()), other.index(frames.len()));
                frames.swap(one, other);
            }
            bytes = frames.concat();
        }
    }
    bytes
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_broken_stream_gives_the_same_result_however_it_is_split(
        seed in any::<prop::sample::Index>(),
        harms in prop::collection::vec(harm(), 0..5),
        sizes in prop::collection::vec(1..64_usize, 1..6),
    ) {
        let seed = CORPUS.get(seed.index(CORPUS.len())).unwrap();
        let bytes = harms.iter().fold(seed.bytes.clone(), harmed);
        holds(seed.dialect, &bytes, &sizes)?;
    }

    #[test]
    fn a_stream_of_another_dialect_gives_the_same_result_however_it_is_split(
        seed in any::<prop::sample::Index>(),
        dialect in 0..DIALECTS.len(),
        sizes in prop::collection::vec(1..64_usize, 1..6),
    ) {
        let seed = CORPUS.get(seed.index(CORPUS.len())).unwrap();
        holds(DIALECTS.get(dialect).unwrap().0, &seed.bytes, &sizes)?;
    }

    #[test]
    fn noise_gives_neither_an_answer_nor_a_panic(
        bytes in noise(200),
        sizes in prop::collection::vec(1..16_usize, 1..6),
    ) {
        for (dialect, _) in DIALECTS {
            holds(dialect, &bytes, &sizes)?;
        }
    }
}

#[test]
fn i4_a_prefix_of_an_answer_is_not_an_answer() {
    for seed in SEEDS.iter() {
        let (whole, _) = decode(seed.dialect, &seed.bytes, &[]);
        let whole = whole.unwrap();
        assert!(!whole.content.is_empty(), "{:?}", seed.dialect);
        for end in 0..seed.bytes.len() {
            let (reply, _) = decode(seed.dialect, seed.bytes.get(..end).unwrap(), &[]);
            if let Ok(reply) = reply {
                assert_eq!(reply.content, whole.content, "{:?} cut at {end}", seed.dialect);
            }
        }
    }
}

#[test]
fn lines_may_end_in_any_way() {
    for seed in SEEDS.iter().filter(|seed| seed.dialect != Dialect::Ollama) {
        let (whole, _) = decode(seed.dialect, &seed.bytes, &[]);
        let text = String::from_utf8(seed.bytes.clone()).unwrap();
        for end in ["\r\n", "\r"] {
            let other = text.replace('\n', end);
            assert_eq!(
                decode(seed.dialect, other.as_bytes(), &[1]).0,
                whole,
                "{:?} with {end:?}",
                seed.dialect
            );
        }
    }
}
