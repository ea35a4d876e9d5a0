//! Where the requests of a connection begin and end. hyper is lenient in places where a proxy in front of agentd may read
//! other requests than hyper does (request smuggling): a bare LF ends its header lines, and it prefers one of two lengths. This
//! reads the same bytes first and refuses everything with two readings. Chunk extensions and trailers are refused, too: no
//! client of this API needs them.

/// The most bytes of a line of a head. hyper refuses a whole head of that length.
const LINE: usize = 64 << 10;
/// The most digits of a length, so that it cannot overflow.
const DIGITS: usize = 15;

/// A byte with which a request becomes invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Its index.
    pub(crate) at: usize,
    /// Whether the head was not complete.
    pub(crate) in_head: bool,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Part {
    Head(Head),
    Body(u64),
    /// The line with the size of a chunk.
    Size,
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// The empty line behind the last chunk.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

/// The fields of a head that say where the request ends.
#[derive(Debug, Default)]
struct Head {
    /// Whether the request line was read, and whether it is HTTP/1.0.
    version: Option<Version>,
    host: bool,
    length: Option<u64>,
    chunked: bool,
}

/// Follows the bytes of a connection.
#[derive(Debug)]
pub(crate) struct Framing {
    part: Part,
    line: Vec<u8>,
}

impl Framing {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::Head(Head::default()),
            line: Vec::new(),
        }
    }

    /// Whether the last byte was the end of a request.
    pub(crate) fn between(&self) -> bool {
        matches!(&self.part, Part::Head(head) if head.version.is_none()) && self.line.is_empty()
    }

    /// Follows the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let available = bytes.len() - at;
            match &mut self.part {
                Part::Body(left) | Part::Chunk(left) => {
                    let taken = usize::try_from(*left).map_or(available, |left| left.min(available));
                    *left -= u64::try_from(taken).unwrap_or(0);
                    at += taken;
                    if *left == 0 {
                        self.part = match self.part {
                            Part::Chunk(_) => Part::ChunkEnd,
                            _ => Part::Head(Head::default()),
                        };
                    }
                }
                _ => {
                    let in_head = matches!(self.part, Part::Head(_));
                    self.byte(*byte).ok_or(Refused { at, in_head })?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds a byte to the line. CR and LF come only together, and no other control character comes at all.
    fn byte(&mut self, byte: u8) -> Option<()> {
        let after_cr = self.line.last() == Some(&b'\r');
        match byte {
            b'\n' if after_cr => {
                self.line.pop();
                let line = std::mem::take(&mut self.line);
                self.part = std::mem::replace(&mut self.part, Part::End).after(&line)?;
                self.line = line;
                self.line.clear();
                Some(())
            }
            _ if after_cr || self.line.len() >= LINE => None,
            b'\r' | b'\t' | b' '..=b'~' | 0x80.. => {
                self.line.push(byte);
                Some(())
            }
            _ => None,
        }
    }
}

impl Part {
    /// What follows a line.
    fn after(self, line: &[u8]) -> Option<Self> {
        match self {
            Self::Head(head) => head.after(line),
            Self::Size => match number(line, 16)? {
                0 => Some(Self::End),
                size => Some(Self::Chunk(size)),
            },
            Self::ChunkEnd => line.is_empty().then_some(Self::Size),
            Self::End => line.is_empty().then(|| Self::Head(Head::default())),
            Self::Body(_) | Self::Chunk(_) => None,
        }
    }
}

impl Head {
    fn after(mut self, line: &[u8]) -> Option<Part> {
        if self.version.is_none() {
            // RFC 9112 allows empty lines before a request.
            self.version = (!line.is_empty()).then(|| match line.ends_with(b"HTTP/1.0") {
                true => Version::Http10,
                false => Version::Http11,
            });
            return Some(Part::Head(self));
        }
        if line.is_empty() {
            return match (self.chunked, self.length) {
                (true, Some(_)) => None,
                (true, None) if self.version == Some(Version::Http10) => None,
                (true, None) => Some(Part::Size),
                (false, Some(0) | None) => Some(Part::Head(Self::default())),
                (false, Some(length)) => Some(Part::Body(length)),
            };
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?.trim_ascii());
        // A name begins at the first byte of its line and ends at the colon: no folded line, no blank.
        if name.is_empty() || name.iter().any(|byte| !byte.is_ascii_graphic()) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10)?;
            self.length.replace(length).is_none().then_some(())?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            (!self.chunked && value.eq_ignore_ascii_case(b"chunked")).then_some(())?;
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"host") {
            (!self.host).then_some(())?;
            self.host = true;
        }
        Some(Part::Head(self))
    }
}

/// A number of digits only: no sign, no prefix, no blank.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let good = |byte: &u8| char::from(*byte).is_digit(radix);
    if digits.is_empty() || digits.len() > DIGITS || !digits.iter().all(good) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// Feeds the bytes whole and one by one, which must not differ.
    fn fed(text: &str) -> Result<bool, Refused> {
        let (mut whole, mut single) = (Framing::new(), Framing::new());
        let result = whole.feed(text.as_bytes());
        let bytes = text.as_bytes().chunks(1).enumerate();
        let one_by_one = bytes
            .map(|(at, byte)| single.feed(byte).map_err(|refused| Refused { at, ..refused }))
            .collect::<Result<Vec<()>, _>>();
        assert_eq!(result, one_by_one.map(drop), "{text:?}");
        result.map(|()| whole.between())
    }

    #[test]
    fn requests_in_sequence_are_followed_to_their_ends() {
        let body = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let chunks = format!("{CHUNKED}3\r\na\nb\r\n0A\r\n0123456789\r\n0\r\n\r\n");
        for text in [
            GET,
            body,
            &chunks,
            &format!("\r\n{GET}"),
            &format!("{body}{GET}{chunks}{GET}"),
        ] {
            assert_eq!(fed(text), Ok(true), "{text:?}");
            assert_eq!(fed(&text[..text.len() - 1]), Ok(false), "{text:?}");
        }
        assert_eq!(
            fed("GET / HTTP/1.1\r\nA:\tb\u{e9} \r\nContent-Length: 0\r\n\r\n"),
            Ok(true)
        );
    }

    #[test]
    fn redteam_49_a_head_with_two_readings_is_refused() {
        for field in [
            "A: b\nC: d",
            "A: b\rC: d",
            "A: b\n",
            "A : b",
            " A: b",
            "A: b\r\n c",
            "A: b\r\n\tc",
            "A",
            ": b",
            "A\u{1}: b",
            "A: \0",
            "Host: b",
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 1, 1",
            "Content-Length: +1",
            "Content-Length: -1",
            "Content-Length: 0x1",
            "Content-Length: 1 1",
            "Content-Length:",
            "Content-Length: 18446744073709551617",
            "Content-Length : 1",
            "Transfer-Encoding: chunked\r\nContent-Length: 1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: \u{b}chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding:",
        ] {
            let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
            assert!(fed(&text).is_err_and(|refused| refused.in_head), "{field:?}");
        }
        for text in [
            "GET / HTTP/1.1\nHost: a\n\n".to_owned(),
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\r\n\n".to_owned(),
            format!("\n{GET}"),
        ] {
            assert!(fed(&text).is_err(), "{text:?}");
        }
        assert_eq!(fed(GET), Ok(true), "positive control");
    }

    #[test]
    fn redteam_49_chunks_with_two_readings_are_refused() {
        for chunks in [
            "1\nx",
            "1;a=b\r\nx",
            "1;\nx",
            "1;a\rb\r\nx",
            "1 \r\nx",
            "+1\r\nx",
            "0x1\r\nx",
            "1_0\r\nx",
            "\r\nx",
            "10000000000000000\r\nx",
            "1\r\nxy\r\n",
            "1\r\nxZZ0\r\n\r\n",
            "1\r\nx\n",
            "0\r\nA: b\r\n\r\n",
            "0\r\n\n",
            "0\n\r\n",
        ] {
            let refused = fed(&format!("{CHUNKED}{chunks}"));
            assert!(refused.is_err_and(|refused| !refused.in_head), "{chunks:?}");
        }
        assert_eq!(
            fed(&format!("{CHUNKED}1\r\nx\r\n0\r\n\r\n")),
            Ok(true),
            "positive control"
        );
    }
}
