//! Frames of the control protocol: chunk boundaries do not matter, and a decoded frame survives a round trip.

use agentd_wire::{Decoder, FrameLimits, ServerFrame, decode, decode_client, encode};

const LIMITS: FrameLimits = FrameLimits::of_requests(1 << 16);

fn frames(bytes: &[u8], piece: usize) -> Vec<Result<Vec<u8>, String>> {
    let mut decoder = Decoder::new(LIMITS);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        decoder.feed(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push(Ok(frame)),
                Ok(None) => break,
                Err(error) => {
                    found.push(Err(error.to_string()));
                    return found;
                }
            }
        }
    }
    found
}

pub(crate) fn holds(bytes: &[u8]) {
    let whole = frames(bytes, usize::MAX);
    assert_eq!(whole, frames(bytes, 3), "frames do not depend on how they arrive");
    let kept: usize = whole.iter().flatten().map(Vec::len).sum();
    assert!(kept <= bytes.len());
    let bodies = whole.into_iter().flatten();
    for body in bodies.chain([bytes.to_vec()]) {
        if let Ok(frame) = decode_client(&body, LIMITS) {
            let again = encode(&frame, usize::MAX).expect("what was read can be written");
            let read = decode_client(&again[4..], FrameLimits::of_requests(1 << 20));
            assert_eq!(read.expect("what was written can be read"), frame);
        }
        let _ = decode::<ServerFrame>(&body, LIMITS);
    }
}
