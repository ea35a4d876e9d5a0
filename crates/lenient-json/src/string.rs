//! Strings, with the mistakes that models make in them.

use crate::fault::Mistake;
use crate::parse::{Parser, mistake};
use crate::repair::Repair;

/// Stands in for half of a surrogate pair.
const REPLACEMENT: char = '\u{fffd}';

impl Parser<'_> {
    /// The string at the current place, which holds its opening quote.
    pub(crate) fn string(&mut self, quote: u8) -> Result<String, Mistake> {
        let start = self.at;
        self.at += 1;
        if quote == b'\'' {
            self.repairs.add(Repair::SingleQuotes);
        }
        let mut text = String::new();
        loop {
            let from = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte != quote && byte != b'\\' && byte >= 0x20)
            {
                self.at += 1;
            }
            text.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.peek() {
                None => return Err(mistake(start, "the string that begins here does not end")),
                Some(b'\\') => self.escape(&mut text)?,
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                // Each control character is one byte.
                Some(control) => {
                    self.repairs.add(Repair::ControlCharacter);
                    text.push(char::from(control));
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), Mistake> {
        let plain = match self.byte_at(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'\'') => {
                self.repairs.add(Repair::Escape);
                '\''
            }
            Some(b'u') => return self.unicode(text),
            Some(_) => {
                let what = "this escape is not one of JSON; write a backslash as \\\\";
                return Err(mistake(self.at, what));
            }
            None => return Err(mistake(self.at, "the text ends within an escape")),
        };
        text.push(plain);
        self.at += 2;
        Ok(())
    }

    /// A `\u` escape, or two that form a pair.
    fn unicode(&mut self, text: &mut String) -> Result<(), Mistake> {
        let first = self.unit(self.at)?;
        self.at += 6;
        let character = if (0xd800..0xdc00).contains(&first) {
            self.second_half().map(|second| {
                self.at += 6;
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            })
        } else {
            Some(first)
        };
        // A half of a pair is no character.
        let character = character.and_then(char::from_u32).unwrap_or_else(|| {
            self.repairs.add(Repair::LoneSurrogate);
            REPLACEMENT
        });
        text.push(character);
        Ok(())
    }

    fn second_half(&self) -> Option<u32> {
        if self.byte_at(self.at) != Some(b'\\') || self.byte_at(self.at + 1) != Some(b'u') {
            return None;
        }
        self.unit(self.at)
            .ok()
            .filter(|second| (0xdc00..0xe000).contains(second))
    }

    /// The four digits of the escape at a place.
    fn unit(&self, at: usize) -> Result<u32, Mistake> {
        let digits = self
            .text
            .get(at + 2..at + 6)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| mistake(at, "\\u needs four hexadecimal digits"))
    }
}
