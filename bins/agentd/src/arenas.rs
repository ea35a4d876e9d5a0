//! One setting of the C library's allocator that can only be given at the start of a process.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The variable that glibc reads (mallopt(3)).
const ARENAS: &str = "MALLOC_ARENA_MAX";

/// Starts this program again, in the same process, with two allocation arenas instead of eight a core: what a burst of
/// sessions used is then used by the next one, and not kept once per thread (measured: 10 MB of 60 after 200 sessions).
/// Returns when that is done already, when somebody chose another number, or when it cannot be done: it is only memory.
#[expect(
    clippy::disallowed_methods,
    reason = "replaces this process by itself; nothing else is started"
)]
pub(crate) fn few(environment: &BTreeMap<String, String>) {
    if environment.contains_key(ARENAS) {
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let error = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(ARENAS, "2")
        .exec();
    // No log is open yet, and a person cannot do anything about it.
    drop(error);
}
