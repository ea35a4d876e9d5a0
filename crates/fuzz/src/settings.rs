//! The configuration: errors are named and never cause a panic.

use agentd_settings::{Sources, load};
use std::io::Write as _;

pub(crate) fn holds(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("it can be written");
    let sources = Sources {
        file: Some(file.path().to_owned()),
        ..Sources::default()
    };
    if let Err(error) = load(&sources) {
        let said = error.to_string();
        assert!(!said.trim().is_empty());
        assert!(said.len() < 4_096 + 64 * bytes.len(), "an error is not a flood");
    }
}
