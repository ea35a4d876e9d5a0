//! Decodes answers with one JSON object per line.

use crate::sse::{SseEvent, SseItem, TooLong};
use memchr::memchr;

/// Splits bytes into lines, whatever the chunk boundaries.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    line: Vec<u8>,
    limit: usize,
}

impl LineDecoder {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            limit,
        }
    }

    /// Takes the next bytes and appends the lines that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (head, tail) = bytes.split_at(end);
            self.grow(head)?;
            self.flush(items);
            bytes = tail.get(1..).unwrap_or_default();
        }
        self.grow(bytes)
    }

    /// Ends the input; the last line needs no line end.
    pub(crate) fn finish(&mut self, items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        self.flush(items);
        Ok(())
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len().saturating_add(bytes.len()) > self.limit {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self, items: &mut Vec<SseItem>) {
        let line = std::mem::take(&mut self.line);
        if !line.iter().all(u8::is_ascii_whitespace) {
            items.push(SseItem::Event(SseEvent {
                name: String::new(),
                data: String::from_utf8_lossy(&line).into_owned(),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]], limit: usize) -> Result<Vec<String>, TooLong> {
        let (mut decoder, mut items) = (LineDecoder::new(limit), Vec::new());
        for chunk in chunks {
            decoder.feed(chunk, &mut items)?;
        }
        decoder.finish(&mut items)?;
        let data = |item| match item {
            SseItem::Event(event) => event.data,
            SseItem::Comment => String::new(),
        };
        Ok(items.into_iter().map(data).collect())
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let whole = lines(&[b"{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}"], 100);
        assert_eq!(
            whole,
            lines(&[b"{\"a\"", b":1}", b"\n\n{\"b\":2}\r", b"\n{\"c\":3}"], 100)
        );
        assert_eq!(whole.unwrap(), ["{\"a\":1}", "{\"b\":2}\r", "{\"c\":3}"]);
    }

    #[test]
    fn a_line_has_a_longest_length() {
        assert!(lines(&[b"12345\n"], 5).is_ok());
        assert!(lines(&[b"12345", b"6"], 5).is_err());
    }
}
