//! Scans MessagePack bytes without allocating, so that a frame that would explode in memory is rejected in time.

use crate::error::WireError;
use crate::limits::FrameLimits;

/// Checks that `body` is exactly one MessagePack map within the limits, with valid UTF-8 in every string.
pub(crate) fn check(body: &[u8], limits: FrameLimits) -> Result<(), WireError> {
    let mut scan = Scan { rest: body, limits };
    match body.first() {
        Some(0x80..=0x8f | 0xde | 0xdf) => scan.walk(),
        Some(_) => Err(malformed("not a map")),
        None => Err(malformed("empty")),
    }
}

struct Scan<'a> {
    rest: &'a [u8],
    limits: FrameLimits,
}

/// The item that a marker announces.
enum Item {
    Leaf(usize),
    Text(usize),
    Children(usize),
}

impl Scan<'_> {
    fn walk(&mut self) -> Result<(), WireError> {
        let mut open: [usize; 256] = [0; 256];
        let depth_limit = self.limits.max_depth.min(open.len());
        let (mut depth, mut items) = (0_usize, 0_usize);
        loop {
            items += 1;
            if items > self.limits.max_items {
                return Err(WireError::TooManyItems {
                    limit: self.limits.max_items,
                });
            }
            match self.item()? {
                Item::Leaf(bytes) => {
                    self.take(bytes)?;
                }
                Item::Text(bytes) => {
                    let text = self.take(bytes)?;
                    std::str::from_utf8(text).map_err(|_| malformed("a string is not UTF-8"))?;
                }
                // The announced children are only counted; no memory is allocated for them.
                Item::Children(0) => {}
                Item::Children(count) => {
                    if depth == depth_limit {
                        return Err(WireError::TooDeep { limit: depth_limit });
                    }
                    if let Some(level) = open.get_mut(depth) {
                        *level = count + 1;
                    }
                    depth += 1;
                }
            }
            while let Some(level) = depth.checked_sub(1).and_then(|top| open.get_mut(top)) {
                *level -= 1;
                if *level > 0 {
                    break;
                }
                depth -= 1;
            }
            if depth == 0 {
                break;
            }
        }
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(malformed("bytes after the map"))
        }
    }

    fn item(&mut self) -> Result<Item, WireError> {
        let marker = self.number(1)?;
        Ok(match marker {
            0x80..=0x8f => Item::Children((marker & 0x0f) * 2),
            0x90..=0x9f => Item::Children(marker & 0x0f),
            0xa0..=0xbf => Item::Text(marker & 0x1f),
            0xc4 => Item::Leaf(self.number(1)?),
            0xc5 => Item::Leaf(self.number(2)?),
            0xc6 => Item::Leaf(self.number(4)?),
            0xcc | 0xd0 => Item::Leaf(1),
            0xcd | 0xd1 => Item::Leaf(2),
            0xca | 0xce | 0xd2 => Item::Leaf(4),
            0xcb | 0xcf | 0xd3 => Item::Leaf(8),
            0xd9 => Item::Text(self.number(1)?),
            0xda => Item::Text(self.number(2)?),
            0xdb => Item::Text(self.number(4)?),
            0xdc => Item::Children(self.number(2)?),
            0xdd => Item::Children(self.number(4)?),
            0xde => Item::Children(self.number(2)?.saturating_mul(2)),
            0xdf => Item::Children(self.number(4)?.saturating_mul(2)),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(malformed("an extension type")),
            _ => Item::Leaf(0),
        })
    }

    fn number(&mut self, bytes: usize) -> Result<usize, WireError> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], WireError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or_else(|| malformed("cut off"))?;
        self.rest = rest;
        Ok(taken)
    }
}

fn malformed(why: &str) -> WireError {
    WireError::Malformed(why.to_owned())
}
