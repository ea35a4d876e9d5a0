//! Protects the memory of a process that holds credentials.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Hides this process's memory and environment from the user's other processes (not from root): no debugger, no
/// `/proc/PID/environ`, no core file. For the daemon, which holds credentials; its children start visible again (I8).
///
/// # Errors
/// When the kernel refuses.
pub fn conceal() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
