//! An incremental decoder of server-sent events, without I/O.

use memchr::memchr2;

/// One event: its name and its data lines joined by newlines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// The event's name; empty if the server gave none.
    pub(crate) name: String,
    /// The data.
    pub(crate) data: String,
}

/// An item of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SseItem {
    /// An event.
    Event(SseEvent),
    /// A comment: the server is alive, but there is no progress.
    Comment,
}

/// A line or an event is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Splits bytes into events. Lines end in LF, CR or CRLF, whatever the chunk boundaries; invalid UTF-8 becomes
/// replacement characters; a byte order mark at the start is dropped.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    first_line: bool,
}

impl SseDecoder {
    /// The default limit of a line and of an event.
    pub(crate) const DEFAULT_LIMIT: usize = 8 << 20;

    /// A decoder that refuses lines and events of more than `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes the next bytes and appends the items that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        while let Some(first) = bytes.first() {
            if self.after_cr {
                self.after_cr = false;
                if *first == b'\n' {
                    bytes = bytes.get(1..).unwrap_or_default();
                    continue;
                }
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + line.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(line);
            bytes = rest;
            if let Some((terminator, rest)) = bytes.split_first() {
                self.after_cr = *terminator == b'\r';
                bytes = rest;
                self.end_line(items)?;
            }
        }
        Ok(())
    }

    /// Ends the stream. An event without its final blank line still counts: many servers forget it.
    pub(crate) fn finish(&mut self, items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        if !self.line.is_empty() {
            self.end_line(items)?;
        }
        self.dispatch(items);
        Ok(())
    }

    fn end_line(&mut self, items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        let taken = std::mem::take(&mut self.line);
        let mut line = taken.as_slice();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        let result = self.take_line(line, items);
        // Keeps the buffer, so that a long stream allocates only once.
        self.line = taken;
        self.line.clear();
        result
    }

    fn take_line(&mut self, line: &[u8], items: &mut Vec<SseItem>) -> Result<(), TooLong> {
        if line.is_empty() {
            self.dispatch(items);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => {
                items.push(SseItem::Comment);
                return Ok(());
            }
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() > self.limit {
                    return Err(TooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, items: &mut Vec<SseItem>) {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            let data = String::from_utf8_lossy(&self.data).into_owned();
            self.data.clear();
            items.push(SseItem::Event(SseEvent { name, data }));
        }
    }
}

#[cfg(test)]
mod tests;
