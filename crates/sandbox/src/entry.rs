//! Enters a cgroup on behalf of a warden whose sandbox another program builds.

use crate::cgroup::enter;
use crate::resident::FAILED;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The second argument of a process that enters a cgroup first. The cgroup's door and the program to run follow.
pub(crate) const ENTER_ARG: &str = "enter";

/// Enters the cgroup that the arguments name, and executes the program that they name. Returns `None` if they ask for no
/// such thing, and an exit code on failure.
#[expect(
    clippy::disallowed_methods,
    reason = "it becomes the program that builds the walls"
)]
pub(crate) fn asked() -> Option<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    let mut words = std::env::args_os().skip(2);
    if words.next()? != ENTER_ARG {
        return None;
    }
    let door = words.next()?;
    // If the kernel denies entry, the watch still checks resource usage.
    let _ = enter(Path::new(&door));
    if let Some(program) = words.next() {
        let _ = Command::new(program).args(words).exec();
    }
    Some(FAILED.into())
}
