//! Converts bytes to frames and back.

use crate::error::WireError;
use crate::limits::FrameLimits;
use crate::scan;
use serde::Serialize;
use serde::de::DeserializeOwned;

const PREFIX: usize = 4;
/// The maximum buffer size that a connection keeps between frames, in bytes.
const KEPT: usize = 64 << 10;

/// Cuts a stream of bytes into frame bodies. An error is final: every later call returns the same error.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    limits: FrameLimits,
    broken: Option<WireError>,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub const fn new(limits: FrameLimits) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            limits,
            broken: None,
        }
    }

    /// Takes received bytes. The caller reads in small chunks, and takes the frames out after each chunk.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The body of the next complete frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] as soon as the length is known.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let unread = self.buffer.get(self.start..).unwrap_or_default();
        let Some((prefix, rest)) = unread.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        let limit = self.limits.max_frame_bytes;
        if length > limit {
            let error = WireError::TooLarge { length, limit };
            self.broken = Some(error.clone());
            self.buffer = Vec::new();
            self.start = 0;
            return Err(error);
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        self.start += PREFIX + length;
        if self.start == self.buffer.len() || length > KEPT {
            self.buffer.drain(..self.start);
            // A large frame must not pin its memory for the connection's life, whatever follows it.
            self.buffer.shrink_to(KEPT);
            self.start = 0;
        }
        Ok(Some(body))
    }

    /// The announced size of the incomplete frame, as soon as it is known: the memory that its reader will need.
    #[must_use]
    pub fn announced(&self) -> Option<usize> {
        let prefix = self.buffer.get(self.start..)?.first_chunk::<PREFIX>()?;
        usize::try_from(u32::from_be_bytes(*prefix)).ok()
    }

    /// Whether the bytes so far end inside a frame.
    #[must_use]
    pub const fn mid_frame(&self) -> bool {
        self.start < self.buffer.len()
    }
}

/// The bytes of a frame, length included. Struct fields are named, ids and times are text.
///
/// # Errors
/// [`WireError::Encode`] if the value cannot be serialized, [`WireError::TooLarge`] if it is over the limit.
pub fn encode<T: Serialize>(frame: &T, max_frame_bytes: usize) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    encode_after(&mut bytes, frame, max_frame_bytes)?;
    Ok(bytes)
}

/// Appends a frame's bytes, so that several frames can be sent at once. After an error nothing was appended.
///
/// # Errors
/// As [`encode`].
pub fn encode_after<T: Serialize>(
    bytes: &mut Vec<u8>,
    frame: &T,
    max_frame_bytes: usize,
) -> Result<(), WireError> {
    let start = bytes.len();
    let written = write_frame(bytes, frame, max_frame_bytes);
    if written.is_err() {
        bytes.truncate(start);
    }
    written
}

fn write_frame<T: Serialize>(
    bytes: &mut Vec<u8>,
    frame: &T,
    max_frame_bytes: usize,
) -> Result<(), WireError> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; PREFIX]);
    let mut serializer = rmp_serde::Serializer::new(&mut *bytes)
        .with_struct_map()
        .with_human_readable();
    frame
        .serialize(&mut serializer)
        .map_err(|error| WireError::Encode(error.to_string()))?;
    let length = bytes.len().saturating_sub(start + PREFIX);
    let too_large = WireError::TooLarge {
        length,
        limit: max_frame_bytes,
    };
    let prefix = u32::try_from(length).map_err(|_| too_large.clone())?;
    if length > max_frame_bytes {
        return Err(too_large);
    }
    if let Some(head) = bytes
        .get_mut(start..)
        .and_then(|frame| frame.first_chunk_mut::<PREFIX>())
    {
        *head = prefix.to_be_bytes();
    }
    Ok(())
}

/// Decodes the frame in a body. Ignores unknown fields.
///
/// # Errors
/// [`WireError`] if the body is over a limit, not a single map, or not the expected frame.
pub fn decode<T: DeserializeOwned>(body: &[u8], limits: FrameLimits) -> Result<T, WireError> {
    scan::check(body, limits)?;
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(body).with_human_readable();
    // The scan enforces the depth limit; the decoder's own limit has some slack, since serde counts differently.
    deserializer.set_max_depth(limits.max_depth.saturating_mul(2).saturating_add(16));
    T::deserialize(&mut deserializer).map_err(|error| WireError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redteam_49_i6_a_large_frame_does_not_retain_memory() {
        let mut decoder = Decoder::new(FrameLimits::default());
        let frame = [&(4_u32 << 20).to_be_bytes()[..], &vec![b'x'; 4 << 20], &[0]].concat();
        for chunk in frame.chunks(16 << 10) {
            decoder.feed(chunk);
        }
        assert_eq!(decoder.announced(), Some(4 << 20));
        assert!(decoder.buffer.capacity() > 4 << 20);
        assert_eq!(
            decoder.next_frame().map(|body| body.map(|body| body.len())),
            Ok(Some(4 << 20))
        );
        assert!(decoder.buffer.capacity() <= KEPT, "{}", decoder.buffer.capacity());
        // The extra byte begins the next frame.
        assert!(decoder.mid_frame() && decoder.announced().is_none());
        decoder.feed(&[0, 0, 1, b'y']);
        assert_eq!(decoder.next_frame(), Ok(Some(vec![b'y'])));
    }
}
