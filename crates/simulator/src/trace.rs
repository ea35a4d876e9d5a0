//! The trace of a run: the last lines, and a checksum of all of them.

use std::collections::VecDeque;

/// How many lines of a failed run are shown.
pub(crate) const LAST: usize = 50;

/// The trace of one run.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) last: VecDeque<String>,
    /// All lines, if requested.
    pub(crate) all: Option<Vec<String>>,
    pub(crate) lines: u64,
    /// FNV-1a of all lines: equal runs have equal checksums.
    pub(crate) sum: u64,
}

impl Trace {
    pub(crate) fn new(keep_all: bool) -> Self {
        Self {
            all: keep_all.then(Vec::new),
            sum: 0xCBF2_9CE4_8422_2325,
            ..Self::default()
        }
    }

    pub(crate) fn say(&mut self, line: String) {
        for byte in line.bytes().chain([b'\n']) {
            self.sum = (self.sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.lines += 1;
        if let Some(all) = &mut self.all {
            all.push(line.clone());
        }
        if self.last.len() >= LAST {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}
