//! Escape attempts made from inside the sandbox: the program starts itself there and tries what must fail.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// The second argument of a warden that only makes an escape attempt.
pub(crate) const ATTEMPT_ARG: &str = "attempt";
/// The exit code when the sandbox held.
pub(crate) const HELD: u8 = 3;

/// The connection timeout: inside a working sandbox a connection fails at once.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Makes the attempt that the arguments name; `None` when they name none.
pub(crate) fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(2);
    if words.next()? != ATTEMPT_ARG {
        return None;
    }
    let (kind, target) = (
        words.next()?.into_string().ok()?,
        words.next()?.into_string().ok()?,
    );
    Some(match attempt(&kind, &target) {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::from(HELD),
        None => ExitCode::from(2),
    })
}

/// Whether the attempt succeeded.
fn attempt(kind: &str, target: &str) -> Option<bool> {
    Some(match kind {
        "write" => fs::write(target, "written").is_ok(),
        "read" => fs::read(target).is_ok(),
        "connect" => {
            let address: SocketAddr = target.parse().ok()?;
            TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_ok()
        }
        _ => return None,
    })
}
