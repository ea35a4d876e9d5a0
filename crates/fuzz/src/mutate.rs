//! Generates new inputs from old ones, deterministically from a seed.

/// The most bytes of an input.
const MAX: usize = 64 * 1024;

/// Byte sequences with a meaning for parsers.
const WORDS: [&str; 28] = [
    "\"",
    "'",
    "\\",
    "$(",
    "`",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[",
    "\u{9b}",
    "\u{202e}",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    "<<E",
    ";",
    "&&",
    "|",
    "=",
    "*** ",
    "@@",
    "data: ",
    "-1",
    "18446744073709551616",
    "\\u0000",
    "@",
];

/// Generates inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Creates a mutator with a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below a bound (splitmix64).
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from((mixed ^ (mixed >> 31)) % bound).unwrap_or(0)
    }

    /// Mutates an input, possibly splicing in a piece of another.
    #[must_use]
    pub fn change(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            self.once(&mut bytes, other);
        }
        bytes.truncate(MAX);
        bytes
    }

    fn once(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.below(32)).min(bytes.len());
        match self.below(8) {
            0 => {
                bytes.drain(at..end);
            }
            1 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            2 => {
                let word = WORDS[self.below(WORDS.len())];
                bytes.splice(at..end.min(at + 1), word.bytes());
            }
            3 => bytes.truncate(at),
            4 => {
                let from = self.below(other.len() + 1);
                let to = (from + self.below(256)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            5 => {
                let byte = u8::try_from(self.below(256)).unwrap_or_default();
                bytes.insert(at, byte);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }
}
