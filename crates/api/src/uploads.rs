//! Pages of incomplete imports. Bounded in number, bytes and time: an abandoned upload is dropped.

use agentd_protocol::{Fault, Principal, Timestamp};
use bytes::Bytes;
use std::collections::BTreeMap;

const MAX_UPLOADS: usize = 8;
/// The maximum bytes of all uploads together.
const MAX_BYTES: usize = 256 << 20;
const PATIENCE_MS: u64 = 600_000;

#[derive(Debug)]
struct Upload {
    lines: Vec<Bytes>,
    bytes: usize,
    touched: Timestamp,
}

/// Imports in progress, by sender and key.
#[derive(Debug, Default)]
pub(crate) struct Uploads(BTreeMap<(Principal, String), Upload>);

impl Uploads {
    /// Stores a page.
    pub(crate) fn add(
        &mut self,
        who: &Principal,
        key: &str,
        lines: Vec<Bytes>,
        now: Timestamp,
    ) -> Result<(), Fault> {
        self.0
            .retain(|_, upload| now.since_ms(upload.touched) < PATIENCE_MS);
        let name = (who.clone(), key.to_owned());
        if self.0.len() >= MAX_UPLOADS && !self.0.contains_key(&name) {
            return Err(Fault::busy(
                "too_many_imports",
                format!("{MAX_UPLOADS} imports are already in progress"),
            )
            .hint("try again when one of them is done"));
        }
        let bytes: usize = lines.iter().map(Bytes::len).sum();
        let held: usize = self.0.values().map(|upload| upload.bytes).sum();
        if held + bytes > MAX_BYTES {
            self.0.remove(&name);
            return Err(Fault::limit(
                "import_too_large",
                format!("the imports in progress have more than {MAX_BYTES} bytes"),
            )
            .hint(
                "to copy a store of your own, stop its daemon and copy the files: docs/security/import.md",
            ));
        }
        let upload = self.0.entry(name).or_insert_with(|| Upload {
            lines: Vec::new(),
            bytes: 0,
            touched: now,
        });
        upload.lines.extend(lines);
        upload.bytes += bytes;
        upload.touched = now;
        Ok(())
    }

    /// All stored pages, with the last one.
    pub(crate) fn finish(&mut self, who: &Principal, key: &str, last: Vec<Bytes>) -> Vec<Bytes> {
        let kept = self.0.remove(&(who.clone(), key.to_owned()));
        let mut lines = kept.map(|upload| upload.lines).unwrap_or_default();
        lines.extend(last);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_joined_and_abandoned_uploads_are_dropped() {
        let mut uploads = Uploads::default();
        let who = Principal::user("ana");
        let page = |text: &'static str| vec![Bytes::from_static(text.as_bytes())];
        uploads.add(&who, "old", page("x"), Timestamp(0)).unwrap();
        uploads.add(&who, "k", page("a"), Timestamp(PATIENCE_MS)).unwrap();
        uploads.add(&who, "k", page("b"), Timestamp(PATIENCE_MS)).unwrap();
        assert_eq!(
            uploads.finish(&who, "k", page("c")),
            ["a", "b", "c"].map(Bytes::from).to_vec()
        );
        assert_eq!(uploads.finish(&who, "old", Vec::new()), Vec::<Bytes>::new());
    }

    #[test]
    fn uploads_are_bounded_in_number() {
        let mut uploads = Uploads::default();
        let who = Principal::user("ana");
        for n in 0..MAX_UPLOADS {
            uploads
                .add(&who, &n.to_string(), Vec::new(), Timestamp(0))
                .unwrap();
        }
        assert_eq!(
            uploads
                .add(&who, "more", Vec::new(), Timestamp(0))
                .unwrap_err()
                .code,
            "too_many_imports"
        );
    }
}
