//! Output contents that an exported file has after its events, in parts. Names are checked against the events and the
//! bytes: a file adds nothing to the store but outputs that its own events name.

use agentd_protocol::{BlobParams, BlobPart, Fault, Seq};
use agentd_store::StoreError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum bytes of a part, so that a line of an export fits into a frame of the usual size.
const PART_BYTES: u64 = 3 << 20;
/// Maximum number of contents in one import, as many as can be read from a session.
const MAX_CONTENTS: usize = 1_024;
/// How the line of a part begins; no event begins this way.
const MARK: &[u8] = br#"{"blob":"#;

/// One part of a content, small enough for a frame of `frame` bytes.
pub(crate) fn part(params: BlobParams, content: &Bytes, frame: u64) -> Result<BlobPart, Fault> {
    let of = size(content.len());
    if params.offset > of {
        let what = format!(
            "the content has {of} bytes; cannot read a part at offset {}",
            params.offset
        );
        return Err(Fault::invalid("bad_offset", what));
    }
    // A multiple of three, so that the concatenated parts are the Base64 of the whole.
    let most = (frame / 2).min(PART_BYTES) / 3 * 3;
    let end = params.offset.saturating_add(most).min(of);
    let range = index(params.offset)..index(end);
    Ok(BlobPart {
        blob: params.name,
        at: params.offset,
        of,
        data: STANDARD.encode(content.get(range).unwrap_or_default()),
    })
}

/// Splits a file into its events and the parts of contents after them.
pub(crate) fn split(mut lines: Vec<Bytes>) -> (Vec<Bytes>, Vec<Bytes>) {
    let events = lines.iter().position(|line| line.starts_with(MARK));
    let parts = lines.split_off(events.unwrap_or(lines.len()));
    (lines, parts)
}

/// Contents whose bytes match the checksums that name them.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    lines: Vec<Bytes>,
    /// Each content with the number of its lines.
    contents: Vec<(String, usize)>,
}

impl Contents {
    /// Checks the parts after the `events` lines: in order, complete, named by the events, at most `max` bytes each, and
    /// with the checksum that they state.
    pub(crate) async fn read(
        lines: Vec<Bytes>,
        events: usize,
        named: &BTreeSet<String>,
        max: u64,
    ) -> Result<Self, Fault> {
        let mut found = Self::default();
        let mut under_way: Option<Checked> = None;
        let mut number = size(events);
        for line in &lines {
            number += 1;
            let part = decode(line, number)?;
            let mut checked = match under_way.take() {
                Some(checked) => checked,
                None => found.begin(&part, named, max, number)?,
            };
            checked.take(&part, number)?;
            if checked.at < checked.of {
                under_way = Some(checked);
            } else {
                found.contents.push(checked.whole(number)?);
            }
            // Checksums of many megabytes take long: other tasks get a turn between two parts.
            tokio::task::yield_now().await;
        }
        if let Some(checked) = under_way {
            let (blob, at, of) = (checked.blob, checked.at, checked.of);
            return Err(bad(
                number,
                format!("content {blob} ends after {at} of {of} bytes"),
            ));
        }
        found.lines = lines;
        Ok(found)
    }

    fn begin(&self, part: &Part, named: &BTreeSet<String>, max: u64, number: Seq) -> Result<Checked, Fault> {
        let blob = &part.blob;
        if !named.contains(blob) {
            return Err(bad(
                number,
                format!("no event of the file refers to content {blob}"),
            ));
        }
        if self.contents.iter().any(|(name, _)| name == blob) {
            return Err(bad(number, format!("content {blob} appears twice")));
        }
        if part.of > max {
            let what = format!(
                "line {number}: content {blob} has {} bytes, the limit is {max}",
                part.of
            );
            return Err(Fault::limit("blob_too_large", what)
                .hint("raise limits.blob_bytes, or export without contents: agentctl export --no-blobs"));
        }
        if self.contents.len() >= MAX_CONTENTS {
            let what = format!("the file has more than {MAX_CONTENTS} contents");
            return Err(Fault::limit("too_many_blobs", what)
                .hint("export without contents: agentctl export --no-blobs"));
        }
        Ok(Checked {
            blob: blob.clone(),
            at: 0,
            of: part.of,
            lines: 0,
            sum: Sha256::new(),
        })
    }

    /// The names, in the order of the file.
    pub(crate) fn names(&self) -> Vec<String> {
        self.contents.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The contents one by one; only one at a time is in memory as bytes.
    pub(crate) fn each(&self) -> impl Iterator<Item = Result<Bytes, Fault>> {
        let mut rest = self.lines.as_slice();
        self.contents.iter().map(move |(_, count)| {
            let (lines, later) = rest.split_at_checked(*count).unwrap_or((rest, &[]));
            rest = later;
            let mut content = Vec::new();
            for line in lines {
                content.extend(decode(line, 0)?.bytes);
            }
            Ok(content.into())
        })
    }
}

/// A content that is partly read.
#[derive(Debug)]
struct Checked {
    blob: String,
    at: u64,
    of: u64,
    lines: usize,
    sum: Sha256,
}

impl Checked {
    fn take(&mut self, part: &Part, number: Seq) -> Result<(), Fault> {
        let (blob, at, of) = (&self.blob, self.at, self.of);
        if (&part.blob, part.at, part.of) != (blob, at, of) {
            let expected = format!("expected content {blob} from byte {at} of {of}");
            let found = format!("{} from byte {} of {}", part.blob, part.at, part.of);
            return Err(bad(number, format!("{expected}, found {found}")));
        }
        let bytes = size(part.bytes.len());
        if bytes > of - at || (bytes == 0 && of > 0) {
            return Err(bad(
                number,
                format!("the part has {bytes} bytes, {} are missing", of - at),
            ));
        }
        self.sum.update(&part.bytes);
        self.at += bytes;
        self.lines += 1;
        Ok(())
    }

    fn whole(self, number: Seq) -> Result<(String, usize), Fault> {
        let mut sum = String::with_capacity(64);
        for byte in self.sum.finalize() {
            let _ = write!(sum, "{byte:02x}");
        }
        if sum != self.blob {
            return Err(bad(
                number,
                format!("the SHA-256 of content {} is {sum}: it was changed", self.blob),
            ));
        }
        Ok((self.blob, self.lines))
    }
}

#[derive(Debug)]
struct Part {
    blob: String,
    at: u64,
    of: u64,
    bytes: Vec<u8>,
}

fn decode(line: &Bytes, number: Seq) -> Result<Part, Fault> {
    let part: BlobPart = serde_json::from_slice(line)
        .map_err(|error| bad(number, format!("not a valid part of a content: {error}")))?;
    let bytes = STANDARD
        .decode(&part.data)
        .map_err(|error| bad(number, format!("data: {error}")))?;
    Ok(Part {
        blob: part.blob.chars().take(64).collect(),
        at: part.at,
        of: part.of,
        bytes,
    })
}

fn bad(line: Seq, reason: String) -> Fault {
    Fault::from(StoreError::BadImport { line, reason })
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
