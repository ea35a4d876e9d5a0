//! Which kernel sandbox there is.

use crate::error::SandboxError;
use agentd_protocol::SandboxLevel;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The level at which sessions run when at least `require` is asked for. There is no kernel sandbox yet, so anything but
/// none is refused; it never falls back silently.
///
/// # Errors
/// [`SandboxError::Unsupported`] for every level but none.
pub const fn check(require: SandboxLevel) -> Result<SandboxLevel, SandboxError> {
    match require {
        SandboxLevel::None => Ok(SandboxLevel::None),
        SandboxLevel::Confined | SandboxLevel::Isolated => {
            Err(SandboxError::Unsupported { required: require })
        }
    }
}

/// Hides this process's memory and environment from other processes of the same user (not from root): no debugger, no
/// `/proc/PID/environ`, no core file. For the daemon, which holds credentials; wardens and commands start visible again (I8).
///
/// # Errors
/// When the kernel refuses.
pub fn conceal() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_a_level_that_is_not_there_is_refused_and_never_lowered() {
        assert_eq!(check(SandboxLevel::None).unwrap(), SandboxLevel::None);
        for level in [SandboxLevel::Confined, SandboxLevel::Isolated] {
            assert!(matches!(check(level), Err(SandboxError::Unsupported { required }) if required == level));
        }
    }
}
