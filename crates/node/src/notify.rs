//! Notifies the service manager.

use std::io;

/// Tells the service manager that the node is ready, if there is one.
///
/// # Errors
/// The manager's socket cannot be written to.
pub fn notify_ready() -> io::Result<()> {
    sd_notify::notify(&[sd_notify::NotifyState::Ready])
}
