//! The way of a warden into its group of processes, before it starts anything.

use crate::leaf::enter;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The second argument of a warden that goes into a group first. Then comes the door of the group, and after it the
/// program to become, if it is another one.
pub(crate) const ENTER_ARG: &str = "enter";

/// Goes into the group that the arguments name, and becomes the program that they name. Nothing when this process goes on
/// as a warden.
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
    let program = words.next()?;
    let _ = Command::new(program).args(words).exec();
    Some(ExitCode::from(70))
}
