//! A bounded record of an output: its beginning, its end, and its length. Pure.

use std::collections::VecDeque;

/// How much of an output to keep in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Bytes kept from the beginning.
    pub head: usize,
    /// Bytes kept from the end.
    pub tail: usize,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self {
            head: 64 << 10,
            tail: 64 << 10,
        }
    }
}

/// Output that was not reported before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Its offset in the whole output, in bytes. A gap after the preceding piece means that output was dropped.
    pub offset: u64,
    /// The output; invalid UTF-8 is replaced.
    pub text: String,
}

/// The maximum amount of output that waits to be reported.
const FRESH: usize = 16 << 10;

/// A bounded record of an output of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    limits: CaptureLimits,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
    fresh: VecDeque<u8>,
}

impl Capture {
    /// An empty record.
    #[must_use]
    pub const fn new(limits: CaptureLimits) -> Self {
        Self {
            limits,
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            newlines: 0,
            last: None,
            fresh: VecDeque::new(),
        }
    }

    /// Adds output.
    pub fn push(&mut self, chunk: &[u8]) {
        self.bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        self.newlines +=
            u64::try_from(chunk.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u64::MAX);
        self.last = chunk.last().copied().or(self.last);
        let room = self.limits.head.saturating_sub(self.head.len()).min(chunk.len());
        let (first, rest) = chunk.split_at_checked(room).unwrap_or((chunk, &[]));
        self.head.extend_from_slice(first);
        keep_last(&mut self.tail, rest, self.limits.tail);
        keep_last(&mut self.fresh, chunk, FRESH);
    }

    /// The length of the whole output in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of lines of the whole output; counts a last line without a line end.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        match self.last {
            None | Some(b'\n') => self.newlines,
            Some(_) => self.newlines + 1,
        }
    }

    /// The beginning of the output: all of it, as long as it fits.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The end, without the part that is in the beginning.
    #[must_use]
    pub fn tail(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    /// The number of dropped bytes between the beginning and the end.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        let kept = self.head.len().saturating_add(self.tail.len());
        self.bytes.saturating_sub(u64::try_from(kept).unwrap_or(u64::MAX))
    }

    /// Takes the output that was not reported yet. An incomplete character stays for the next call.
    pub fn take_fresh(&mut self) -> Option<Fresh> {
        let bytes = self.fresh.make_contiguous();
        let complete = bytes.len() - unfinished(bytes);
        let offset = self
            .bytes
            .saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let text = String::from_utf8_lossy(bytes.get(..complete).unwrap_or_default()).into_owned();
        self.fresh.drain(..complete);
        (!text.is_empty()).then_some(Fresh { offset, text })
    }
}

fn keep_last(queue: &mut VecDeque<u8>, chunk: &[u8], limit: usize) {
    let chunk = chunk.get(chunk.len().saturating_sub(limit)..).unwrap_or_default();
    let excess = (queue.len() + chunk.len()).saturating_sub(limit);
    queue.drain(..excess.min(queue.len()));
    queue.extend(chunk);
}

/// The number of bytes at the end that begin an incomplete character.
fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let Some(byte) = bytes.len().checked_sub(back).and_then(|at| bytes.get(at)) else {
            return 0;
        };
        let width = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if width > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Capture {
        Capture::new(CaptureLimits { head: 4, tail: 3 })
    }

    #[test]
    fn short_output_is_kept_whole() {
        let mut capture = small();
        capture.push(b"ab");
        capture.push(b"cd");
        assert_eq!(
            (capture.head(), capture.tail(), capture.skipped()),
            (&b"abcd"[..], Vec::new(), 0)
        );
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end_at_the_edge_and_beyond() {
        for (input, tail, skipped) in [
            ("abcdefg", "efg", 0),
            ("abcdefgh", "fgh", 1),
            ("abcdefghijklmnop", "nop", 9),
        ] {
            let mut whole = small();
            whole.push(input.as_bytes());
            let mut bytewise = small();
            input.bytes().for_each(|byte| bytewise.push(&[byte]));
            assert_eq!(whole, bytewise);
            assert_eq!(
                (whole.head(), whole.tail(), whole.skipped()),
                (&b"abcd"[..], tail.as_bytes().to_vec(), skipped)
            );
        }
    }

    #[test]
    fn lines_count_a_last_one_without_an_end() {
        for (input, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            let mut capture = small();
            capture.push(input.as_bytes());
            assert_eq!(capture.lines(), lines, "{input:?}");
        }
    }

    #[test]
    fn fresh_output_never_cuts_a_character() {
        let mut capture = Capture::new(CaptureLimits::default());
        let euro = "\u{20ac}".as_bytes();
        capture.push(b"a");
        capture.push(&euro[..2]);
        assert_eq!(
            capture.take_fresh(),
            Some(Fresh {
                offset: 0,
                text: "a".to_owned()
            })
        );
        assert_eq!(capture.take_fresh(), None);
        capture.push(&euro[2..]);
        assert_eq!(
            capture.take_fresh(),
            Some(Fresh {
                offset: 1,
                text: "\u{20ac}".to_owned()
            })
        );
    }

    #[test]
    fn fresh_output_is_bounded_and_says_where_it_begins() {
        let mut capture = Capture::new(CaptureLimits::default());
        capture.push(&vec![b'x'; FRESH + 10]);
        let fresh = capture.take_fresh().unwrap();
        assert_eq!((fresh.offset, fresh.text.len()), (10, FRESH));
    }
}
