//! The import of a log: what is taken comes out again byte for byte, numbered without a gap.

use agentd_protocol::{Stamp, Timestamp};
use agentd_store::{Options, export, import, open};
use bytes::Bytes;
use std::path::Path;
use std::sync::OnceLock;
use tokio::runtime::Runtime;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

pub(crate) fn holds(bytes: &[u8]) {
    let lines: Vec<Bytes> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(Bytes::copy_from_slice)
        .collect();
    runtime().block_on(async {
        let log = open("memory:", Path::new("."), Options::default()).expect("a store in memory");
        let mut stamp = Stamp::new(Timestamp(1), 7);
        let Ok(imported) = import(&*log, &lines, &mut stamp, |_, _| Ok(None)).await else {
            return;
        };
        let stored = export(&*log, imported.session, 0, 0).await.expect("it is there");
        assert!(stored.len() >= lines.len(), "{} of {}", stored.len(), lines.len());
        let taken = stored.iter().zip(&lines);
        for (place, (stored, line)) in taken.enumerate() {
            assert_eq!(stored, line, "line {place} is as it was");
        }
    });
}
