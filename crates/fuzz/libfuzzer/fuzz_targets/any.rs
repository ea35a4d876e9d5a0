//! One of the targets of `crates/fuzz`, chosen by `AGENTD_FUZZ_TARGET`, under libFuzzer.
#![no_main]

use agentd_fuzz::{Target, target};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("AGENTD_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("AGENTD_FUZZ_TARGET={name:?} is none of {:?}", agentd_fuzz::TARGETS.map(|(name, _)| name)))
});

fuzz_target!(|data: &[u8]| (*CHOSEN)(data));
