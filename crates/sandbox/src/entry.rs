//! The way into a group of processes, for a warden that another program builds the walls around.

use crate::leaf::enter;
use crate::resident::FAILED;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The second argument of a process that goes into a group first. Then come the door of the group and the program to become.
pub(crate) const ENTER_ARG: &str = "enter";

/// Goes into the group that the arguments name, and becomes the program that they name. Nothing when they say nothing of it;
/// an exit code when it could not be done.
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
    // Where the kernel does not let it in, the watch still looks at what is used.
    let _ = enter(Path::new(&door));
    if let Some(program) = words.next() {
        let _ = Command::new(program).args(words).exec();
    }
    Some(FAILED.into())
}
