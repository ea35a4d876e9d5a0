//! The names of blobs, and their sizes.

use sha2::{Digest, Sha256};

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
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Whether this is a valid blob name, and thus safe as a file name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
