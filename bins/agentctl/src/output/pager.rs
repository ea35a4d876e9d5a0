//! The user's pager, for long texts.

use crate::environment::Environment;
use crate::failure::Failure;
use agentd_protocol::Fault;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Shows colours, exits at once for short texts, and leaves the text on the screen.
const DEFAULT: &str = "less -FRX";
/// Exit codes of a shell for a program that cannot be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// A running pager. Dropping it waits until the user leaves it.
#[derive(Debug)]
pub(crate) struct Pager {
    command: String,
    child: Child,
    stdin: Option<ChildStdin>,
    /// Keeps Ctrl-C from ending this program while the pager runs; the pager handles it.
    _interrupt: Signal,
}

/// The user's pager command; `None` if the user wants none or none is installed.
pub(crate) fn chosen(environment: &Environment) -> Option<String> {
    let asked = ["AGENTD_PAGER", "PAGER"]
        .iter()
        .find_map(|name| environment.get(name));
    match asked.map(str::trim) {
        Some("cat" | "") => None,
        Some(command) => Some(command.to_owned()),
        None => environment.find_on_path("less").map(|_| DEFAULT.to_owned()),
    }
}

impl Pager {
    #[expect(clippy::disallowed_methods, reason = "the person's own pager")]
    pub(crate) fn start(command: String, environment: &Environment) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&command).stdin(Stdio::piped());
        if environment.get("LESS").is_none() {
            // With `PAGER=less` alone, less would show colour codes as text.
            shell.env("LESS", "FRX");
        }
        let interrupt = signal(SignalKind::interrupt())?;
        let mut child = shell.spawn()?;
        Ok(Self {
            command,
            stdin: child.stdin.take(),
            child,
            _interrupt: interrupt,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(stdin) = &mut self.stdin else {
            return Err(Failure::Pipe);
        };
        match stdin.write_all(bytes) {
            Ok(()) => Ok(()),
            // The user left the pager early; that is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.end()?;
                Err(Failure::Pipe)
            }
            Err(error) => Err(Failure::output(error)),
        }
    }

    /// Waits until the user leaves the pager.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        drop(self.stdin.take());
        let ended = self.child.wait().map_err(Failure::Output)?;
        if ended.code().is_some_and(|code| NOT_RUN.contains(&code)) {
            let message = format!("cannot run the pager {:?}", self.command);
            let fault = Fault::invalid("no_pager", message);
            return Err(fault.hint("set AGENTD_PAGER or PAGER, or use --no-pager").into());
        }
        Ok(())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_variable_comes_first_and_cat_disables_paging() {
        let chosen = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            chosen(&Environment::new(variables, None))
        };
        assert_eq!(
            chosen(&[("PAGER", "more"), ("AGENTD_PAGER", "bat -p")]),
            Some("bat -p".to_owned())
        );
        assert_eq!(chosen(&[("PAGER", "more")]), Some("more".to_owned()));
        assert_eq!(chosen(&[("PAGER", "more"), ("AGENTD_PAGER", "cat")]), None);
        assert_eq!(chosen(&[]), None, "less is not on the empty PATH");
    }
}
