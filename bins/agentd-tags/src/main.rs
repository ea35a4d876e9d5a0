//! The helper that parses source files for the daemon. It reads files on its standard input and writes what they define
//! and use on its standard output, one after another (`crates/repo-map/src/messages.rs`). It opens no file and no socket,
//! and has no setting and no key: the parsers are written in C, and the files may be hostile.

mod serve;

use agentd_grammars::Taggers;
use agentd_repo_map::BACKGROUND;
use std::io::{BufReader, Write as _};
use std::process::ExitCode;

/// Wrong usage.
const EXIT_USAGE: u8 = 2;
/// How much lower the priority of work in the background is.
const NICER: i32 = 10;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => {}
        [only] if only == BACKGROUND => {
            // If this fails, the work competes with other work; the daemon's pauses still limit it.
            let _ = rustix::process::nice(NICER);
        }
        _ => {
            // If stderr is closed, there is nowhere to report that.
            let _ = writeln!(
                std::io::stderr(),
                "agentd-tags is a helper of agentd, which starts it: there is nothing to call it for"
            );
            return ExitCode::from(EXIT_USAGE);
        }
    }
    let stdin = BufReader::new(std::io::stdin().lock());
    match serve::serve(stdin, std::io::stdout().lock(), &mut Taggers::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
