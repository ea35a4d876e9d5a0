//! Paths in the stream of `git fast-import`.

use std::io::{self, Write};

/// Writes a path in quotes; it may have any bytes except NUL.
pub(crate) fn write(out: &mut impl Write, path: &[u8]) -> io::Result<()> {
    out.write_all(b"\"")?;
    let mut plain = path;
    while let Some(at) = plain.iter().position(|byte| special(*byte)) {
        let (before, rest) = plain.split_at(at);
        out.write_all(before)?;
        let Some((byte, rest)) = rest.split_first() else {
            break;
        };
        write!(out, "\\{byte:03o}")?;
        plain = rest;
    }
    out.write_all(plain)?;
    out.write_all(b"\"")
}

const fn special(byte: u8) -> bool {
    matches!(byte, 0..=31 | b'"' | b'\\' | 127)
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_can_be_in_a_path() {
        let mut out = Vec::new();
        super::write(&mut out, b"a b\n\"c\\d\xff\x7f").unwrap();
        assert_eq!(out, b"\"a b\\012\\042c\\134d\xff\\177\"");
    }
}
