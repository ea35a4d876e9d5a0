//! The hash of what was shown. An answer repeats it, so it cannot be an answer to anything else.

use super::hex;
use agentd_protocol::{QuestionLine, QuestionMark, QuestionVoice as Voice};
use sha2::{Digest as _, Sha256};

/// A new encoding of the lines gets a new number.
const DOMAIN: &[u8] = b"agentd question v1\n";

/// The SHA-256 of a question's lines, in hexadecimal. Every part is encoded with its type and its length, so no two
/// questions have the same encoding.
#[must_use]
pub fn shown(lines: &[QuestionLine]) -> String {
    let mut hash = Sha256::new_with_prefix(DOMAIN);
    number(&mut hash, lines.len());
    for line in lines {
        let voice = match line.voice {
            Voice::Ours => b'o',
            Voice::Risk => b'r',
            Voice::Content => b'c',
            Voice::Model => b'm',
        };
        hash.update([voice, u8::from(line.quoted), u8::from(line.label.is_some())]);
        text(&mut hash, line.label.as_deref().unwrap_or_default());
        number(&mut hash, line.spans.len());
        for span in &line.spans {
            hash.update([match span.mark {
                None => b'p',
                Some(QuestionMark::Hidden) => b'h',
                Some(QuestionMark::Added) => b'+',
                Some(QuestionMark::Removed) => b'-',
            }]);
            text(&mut hash, &span.text);
        }
    }
    hex(&hash.finalize())
}

fn text(hash: &mut Sha256, text: &str) {
    number(hash, text.len());
    hash.update(text.as_bytes());
}

fn number(hash: &mut Sha256, number: usize) {
    hash.update((number as u64).to_be_bytes());
}
