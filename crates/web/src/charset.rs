//! Decodes text: by the byte order mark, else the server's header, else the page's own declaration, else a guess.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far to search a page for its own declaration.
const LOOK_AT: usize = 1_024;

/// Decodes a body; invalid bytes become U+FFFD.
pub(crate) fn decode(bytes: &[u8], content_type: &str, html: bool) -> String {
    let said = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| named(content_type))
        .or_else(|| meta(bytes).filter(|_| html));
    let encoding = said.unwrap_or_else(|| guess(bytes));
    let (text, _, _) = encoding.decode(bytes);
    text.into_owned()
}

/// The value of `charset=` in a text.
fn named(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let label = value
        .split(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
        .next()?;
    Encoding::for_label(label.as_bytes())
}

fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..bytes.len().min(LOOK_AT))?;
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let found = start
        .split("<meta")
        .skip(1)
        .find_map(|rest| named(rest.split('>').next()?))?;
    // A tag that is readable as ASCII cannot be in UTF-16.
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

/// UTF-8 unless the bytes are invalid in it. The end may be cut inside a character.
fn guess(bytes: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: &str, expected: &str) {
        assert_eq!(decode(bytes, content_type, true), expected, "{content_type}");
    }

    #[test]
    fn the_first_declared_charset_wins() {
        check(b"caf\xc3\xa9", "text/html; charset=utf-8", "caf\u{e9}");
        check(b"caf\xe9", "text/html; charset=ISO-8859-1", "caf\u{e9}");
        check(
            b"caf\xe9",
            "text/html; charset=\"windows-1252\"; x=y",
            "caf\u{e9}",
        );
        check(
            b"\x83\x65\x83\x58\x83\x67",
            "text/plain;charset=Shift_JIS",
            "\u{30c6}\u{30b9}\u{30c8}",
        );
        check(
            b"\xef\xbb\xbfcaf\xc3\xa9",
            "text/html; charset=latin1",
            "caf\u{e9}",
        );
        check(b"\xff\xfeh\0i\0", "text/html", "hi");
        check(
            b"<meta charset=koi8-r>\xc4\xc1",
            "text/html",
            "<meta charset=koi8-r>\u{434}\u{430}",
        );
        check(
            b"<META http-equiv=x content='text/html; charset=euc-kr'>\xb0\xa1",
            "",
            "<META http-equiv=x content='text/html; charset=euc-kr'>\u{ac00}",
        );
        check(b"<meta charset=utf-16>ok", "", "<meta charset=utf-16>ok");
    }

    #[test]
    fn a_wrong_or_missing_charset_is_guessed() {
        check(b"caf\xe9!", "text/html", "caf\u{e9}!");
        check(b"caf\xc3\xa9", "text/html; charset=nonsense", "caf\u{e9}");
        check(b"caf\xc3", "text/html", "caf\u{fffd}");
        check(b"caf\xe9!", "text/html; charset=utf-8", "caf\u{fffd}!");
    }
}
