//! Frames for terminals with 16 colours. crossterm names also those 16 by their numbers among 256 (`38;5;2`), which such a
//! terminal misreads: as blinking and dim text.

use std::io::{Stdout, Write, stdout};

/// Writes a frame in one piece.
#[derive(Debug)]
pub(crate) struct Frames {
    out: Stdout,
    frame: Vec<u8>,
    /// Whether the terminal has only 16 colours.
    few: bool,
}

impl Frames {
    pub(crate) fn new(few: bool) -> Self {
        Self {
            out: stdout(),
            frame: Vec::new(),
            few,
        }
    }
}

impl Write for Frames {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        if self.few {
            self.out.write_all(&with_16(&frame))?;
        } else {
            self.out.write_all(&frame)?;
        }
        self.out.flush()?;
        // The next frame is about as long.
        self.frame = frame;
        self.frame.clear();
        Ok(())
    }
}

/// The frame with the first 16 of 256 colours in their short form.
fn with_16(frame: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(frame.len());
    let mut rest = frame;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\x1b[") {
        let (text, sequence) = rest.split_at(at + 2);
        written.extend_from_slice(text);
        let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
        let (parameters, after) = sequence.split_at(end.unwrap_or(sequence.len()));
        match std::str::from_utf8(parameters) {
            Ok(parameters) if after.first() == Some(&b'm') => {
                written.extend_from_slice(short(parameters).as_bytes());
            }
            _ => written.extend_from_slice(parameters),
        }
        rest = after;
    }
    written.extend_from_slice(rest);
    written
}

/// The parameters of one sequence.
fn short(parameters: &str) -> String {
    let all: Vec<&str> = parameters.split(';').collect();
    let mut short: Vec<String> = Vec::new();
    let mut rest = all.as_slice();
    while let [first, after @ ..] = rest {
        let (ground, colour) = match (*first, after) {
            ("38", ["5", colour, ..]) => (30, colour.parse::<u8>().ok()),
            ("48", ["5", colour, ..]) => (40, colour.parse::<u8>().ok()),
            _ => (0, None),
        };
        match colour {
            Some(colour @ 0..8) => short.push((ground + colour).to_string()),
            Some(colour @ 8..16) => short.push((ground + 60 + colour - 8).to_string()),
            _ => {
                short.push((*first).to_owned());
                rest = after;
                continue;
            }
        }
        rest = after.get(2..).unwrap_or_default();
    }
    short.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(frame: &str) -> String {
        String::from_utf8(with_16(frame.as_bytes())).unwrap()
    }

    #[test]
    fn the_first_sixteen_colours_get_their_short_form() {
        assert_eq!(
            rewritten("\x1b[2;1H\x1b[38;5;2m●\x1b[0m \x1b[1;38;5;12;48;5;1mx\x1b[39;49m 38;5;2m"),
            "\x1b[2;1H\x1b[32m●\x1b[0m \x1b[1;94;41mx\x1b[39;49m 38;5;2m"
        );
    }

    #[test]
    fn everything_else_stays() {
        for same in [
            "\x1b[38;5;176m",
            "\x1b[38;2;1;2;3m",
            "\x1b[?25l",
            "\x1b[m",
            "\x1b[38;5",
            "\x1b[",
            "結果\x1b",
            "\x1b[38;5m",
        ] {
            assert_eq!(rewritten(same), same);
        }
    }
}
