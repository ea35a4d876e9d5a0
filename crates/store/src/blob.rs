//! The names of blobs, and their sizes.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Blobs up to this size are stored as rows, larger ones as files.
pub const ROW_LIMIT: usize = 256 * 1024;

/// The SHA-256 of the content in lower-case hex.
#[must_use]
pub fn name_of(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

/// Bytes in lower-case hex.
#[must_use]
pub fn digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether this is a valid blob name, and thus safe as a file name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
