//! Halves of surrogate pairs. Some gateways cut an answer between the two escapes of one character, so each half arrives
//! in a frame of its own. A half is kept as a private character until its other half arrives. An answer with halves cannot
//! have those private characters itself; no writing uses them.

/// The 2,048 halves, from `U+D800` on, are mapped to the last characters of Unicode, which have no meaning.
const FIRST: u32 = 0x10_f800;
const SECOND: u32 = FIRST + 0x400;
const REPLACEMENT: char = '\u{fffd}';

/// Replaces each escape of half a pair by its private character; none if the text has no such escape.
#[must_use]
pub fn keep_halves(json: &str) -> Option<String> {
    let mut kept = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let unit = unit(json, at);
        let step = match unit {
            Some(0xd800..0xdc00) if matches!(self::unit(json, at + 6), Some(0xdc00..0xe000)) => 12,
            Some(half @ 0xd800..0xe000) => {
                kept.push_str(json.get(from..at).unwrap_or_default());
                kept.extend(char::from_u32(half - 0xd800 + FIRST));
                from = at + 6;
                6
            }
            // Any other escape; its second character may be a backslash.
            _ => 2,
        };
        at = json.ceil_char_boundary(at + step);
    }
    if from == 0 {
        return None;
    }
    kept.push_str(json.get(from..).unwrap_or_default());
    Some(kept)
}

fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Joins the kept halves of a whole text; a half without its other half becomes U+FFFD.
#[must_use]
pub fn mend(text: &str) -> String {
    let mut joiner = Joiner::default();
    let mut mended = joiner.feed(text);
    mended.extend(joiner.end());
    mended
}

/// Does the same for a text that arrives in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joiner(Option<u32>);

impl Joiner {
    /// The next piece, without a first half at its end.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut mended = String::with_capacity(piece.len());
        for character in piece.chars() {
            let code = u32::from(character);
            match (self.0.take(), code) {
                (Some(first), SECOND..) => {
                    let joined = char::from_u32(0x1_0000 + ((first - FIRST) << 10) + (code - SECOND));
                    mended.extend(joined);
                }
                (waiting, code) => {
                    mended.extend(waiting.map(|_| REPLACEMENT));
                    match code {
                        SECOND.. => mended.push(REPLACEMENT),
                        FIRST.. => self.0 = Some(code),
                        _ => mended.push(character),
                    }
                }
            }
        }
        mended
    }

    /// What a half at the very end becomes.
    pub fn end(&mut self) -> Option<char> {
        self.0.take().map(|_| REPLACEMENT)
    }
}
