//! The signature of a note: proves to a holder of the secret that the note is ours, and when it was sent.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// `sha256=…`: HMAC-SHA-256 of the time of sending in seconds, a dot, and the body.
#[must_use]
pub fn signature(secret: &[u8], seconds: u64, body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body.as_bytes());
    let digits: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(format!("sha256={digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        assert_eq!(
            signature(b"key", 1_700_000_000, "{\"a\":1}").as_deref(),
            Some("sha256=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03")
        );
        assert_ne!(signature(b"key", 1, "x"), signature(b"other", 1, "x"));
        assert_ne!(signature(b"key", 1, "x"), signature(b"key", 2, "x"));
    }
}
