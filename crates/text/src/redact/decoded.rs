//! A text without its escapes or without its line breaks, in which each byte still knows where it came from.

use memchr::{memchr2, memchr3};

/// Consecutive bytes of the result.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first byte in the result.
    at: usize,
    /// The bytes in the source.
    from: usize,
    to: usize,
    /// The bytes are the source's own, one for one. Otherwise all of them stand for the whole range.
    same: bool,
}

/// A changed text and its origin.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    runs: Vec<Run>,
}

impl Decoded {
    fn push(&mut self, source: &[u8], from: usize, to: usize) {
        if let Some(same) = source.get(from..to).filter(|same| !same.is_empty()) {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(same);
            let same = true;
            self.runs.push(Run { at, from, to, same });
        }
    }

    /// The range of the source from which a range of the result came.
    pub(super) fn origin(&self, (start, end): (usize, usize)) -> (usize, usize) {
        let run = |byte: usize| {
            let after = self.runs.partition_point(|run| run.at <= byte);
            after.checked_sub(1).and_then(|index| self.runs.get(index))
        };
        let first = run(start).map_or(0, |run| {
            if run.same {
                run.from + start - run.at
            } else {
                run.from
            }
        });
        let last = end.saturating_sub(1);
        let past = run(last).map_or(first, |run| {
            if run.same {
                run.from + last - run.at + 1
            } else {
                run.to
            }
        });
        (first, past)
    }
}

/// Removes line breaks with the blanks around them, and the `=` or `\` by which a line continues. `None`: there are none.
pub(super) fn joined(source: &[u8]) -> Option<Decoded> {
    let blank = |byte: &u8| matches!(byte, b'\n' | b'\r' | b' ' | b'\t');
    let mut next = memchr2(b'\n', b'\r', source)?;
    let (mut decoded, mut from) = (Decoded::default(), 0);
    decoded.bytes.reserve(source.len());
    loop {
        let line = source.get(from..next).unwrap_or_default();
        let mut line = line.trim_ascii_end();
        if let Some((b'=' | b'\\', rest)) = line.split_last() {
            line = rest;
        }
        decoded.push(source, from, from + line.len());
        let rest = source.get(next..).unwrap_or_default();
        from = next + rest.iter().position(|byte| !blank(byte)).unwrap_or(rest.len());
        let rest = source.get(from..).unwrap_or_default();
        match memchr2(b'\n', b'\r', rest) {
            Some(length) => next = from + length,
            None => break,
        }
    }
    decoded.push(source, from, source.len());
    Some(decoded)
}

/// Resolves the escapes of URLs, JSON, programming languages and HTML, once. `None`: there are none.
pub(super) fn unescaped(source: &[u8]) -> Option<Decoded> {
    let (mut decoded, mut from, mut at) = (Decoded::default(), 0, 0);
    while let Some(found) = source.get(at..).and_then(|rest| memchr3(b'%', b'\\', b'&', rest)) {
        at += found;
        let rest = source.get(at..).unwrap_or_default();
        let Some((length, character)) = escape(rest) else {
            at += 1;
            continue;
        };
        decoded.push(source, from, at);
        let run = Run {
            at: decoded.bytes.len(),
            from: at,
            to: at + length,
            same: false,
        };
        decoded.runs.push(run);
        match character {
            Escaped::Byte(byte) => decoded.bytes.push(byte),
            Escaped::Char(character) => {
                let mut buffer = [0; 4];
                decoded
                    .bytes
                    .extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            }
        }
        at += length;
        from = at;
    }
    if decoded.runs.is_empty() {
        return None;
    }
    decoded.push(source, from, source.len());
    Some(decoded)
}

/// What an escape stands for.
enum Escaped {
    Byte(u8),
    Char(char),
}

/// The escape at the beginning of these bytes, with its length.
fn escape(bytes: &[u8]) -> Option<(usize, Escaped)> {
    match bytes {
        [b'%', b'u' | b'U', rest @ ..] => fixed(rest, 4, 16).map(|character| (6, character)),
        [b'%', rest @ ..] => Some((3, Escaped::Byte(u8::try_from(value(rest.get(..2)?, 16)?).ok()?))),
        [b'&', rest @ ..] => entity(rest).map(|(length, character)| (1 + length, character)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let digits = rest.iter().take(9).position(|byte| *byte == b'}')?;
            Some((digits + 4, character(value(rest.get(..digits)?, 16)?)?))
        }
        [b'\\', b'u', rest @ ..] => fixed(rest, 4, 16).map(|character| (6, character)),
        [b'\\', b'U', rest @ ..] => fixed(rest, 8, 16).map(|character| (10, character)),
        [b'\\', b'x' | b'X', rest @ ..] => {
            Some((4, Escaped::Byte(u8::try_from(value(rest.get(..2)?, 16)?).ok()?)))
        }
        [b'\\', b'0'..=b'3', ..] => {
            let octal = value(bytes.get(1..4)?, 8)?;
            Some((4, Escaped::Byte(u8::try_from(octal).ok()?)))
        }
        [b'\\', b'n', ..] => Some((2, Escaped::Byte(b'\n'))),
        [b'\\', b'r', ..] => Some((2, Escaped::Byte(b'\r'))),
        [b'\\', b't', ..] => Some((2, Escaped::Byte(b'\t'))),
        [b'\\', byte, ..] if byte.is_ascii_punctuation() || *byte == b' ' => Some((2, Escaped::Byte(*byte))),
        _ => None,
    }
}

/// A reference to a character in HTML, behind its `&`.
fn entity(bytes: &[u8]) -> Option<(usize, Escaped)> {
    let length = bytes.iter().take(10).position(|byte| *byte == b';')?;
    let name = bytes.get(..length)?;
    let character = match name {
        [b'#', b'x' | b'X', digits @ ..] => character(value(digits, 16)?)?,
        [b'#', digits @ ..] => character(value(digits, 10)?)?,
        b"amp" => Escaped::Byte(b'&'),
        b"lt" => Escaped::Byte(b'<'),
        b"gt" => Escaped::Byte(b'>'),
        b"quot" => Escaped::Byte(b'"'),
        b"apos" => Escaped::Byte(b'\''),
        _ => return None,
    };
    Some((length + 1, character))
}

/// A character with a fixed number of digits.
fn fixed(bytes: &[u8], digits: usize, radix: u32) -> Option<Escaped> {
    character(value(bytes.get(..digits)?, radix)?)
}

fn character(value: u32) -> Option<Escaped> {
    char::from_u32(value).map(Escaped::Char)
}

/// The value of at most eight digits.
fn value(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits.iter().try_fold(0_u32, |value, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        value.checked_mul(radix)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(decoded: Option<Decoded>) -> Option<String> {
        decoded.map(|decoded| String::from_utf8(decoded.bytes).unwrap())
    }

    #[test]
    fn escapes_are_resolved_once_and_other_text_stays() {
        for (text, plain) in [
            ("a%2Db", "a-b"),
            ("a%2db%", "a-b%"),
            ("%252D", "%2D"),
            (r"\u0073\U00000074\u{75}\x76\167", "stuvw"),
            (r#"\"\\\/"#, r#""\/"#),
            ("&amp;&#115;&#x73;&#X74;", "&sst"),
            ("%C3%A9", "\u{e9}"),
            (r"\u00e9%u0073", "\u{e9}s"),
        ] {
            assert_eq!(
                shown(unescaped(text.as_bytes())).as_deref(),
                Some(plain),
                "{text}"
            );
        }
        for text in [
            "",
            "50%",
            "%zz",
            r"\",
            r"\q",
            r"\u12",
            "&",
            "&none;",
            "&#;",
            "&#x110000;",
            r"\ud800",
        ] {
            assert_eq!(shown(unescaped(text.as_bytes())), None, "{text}");
        }
    }

    #[test]
    fn lines_are_joined_without_the_blanks_around_their_ends() {
        for (text, plain) in [
            ("a\nb", "ab"),
            ("a \r\n\t b\n", "ab"),
            ("a=\r\nb\\\nc", "abc"),
            ("\n\n", ""),
        ] {
            assert_eq!(shown(joined(text.as_bytes())).as_deref(), Some(plain), "{text:?}");
        }
        assert!(joined(b"a b").is_none());
    }

    #[test]
    fn each_byte_knows_its_origin() {
        let decoded = unescaped(b"ab%2Dcd&amp;").unwrap();
        assert_eq!(decoded.bytes, b"ab-cd&");
        assert_eq!(decoded.origin((0, 2)), (0, 2));
        assert_eq!(decoded.origin((1, 4)), (1, 6));
        assert_eq!(decoded.origin((2, 3)), (2, 5));
        assert_eq!(decoded.origin((5, 6)), (7, 12));
    }
}
