//! What a command does, as far as its text tells.

use crate::nested::unfold;
use crate::plain::{NotPlain, segments};
use crate::tree::read;

/// A longer command is not read.
const MAX_COMMAND: usize = 65_536;

/// What was found in a command.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The commands of a plain text, each to be allowed on its own; or why the text is not plain.
    pub(crate) segments: Result<Vec<Vec<String>>, NotPlain>,
    /// Every command found anywhere, nested ones included.
    pub(crate) commands: Vec<Vec<String>>,
    /// The words of all of them.
    pub(crate) words: Vec<String>,
    /// Files that redirections write.
    pub(crate) writes: Vec<String>,
    /// Files that redirections read.
    pub(crate) reads: Vec<String>,
}

/// Reads a command. `Err` says why it cannot be read at all.
pub(crate) fn analyse(command: &str) -> Result<Analysis, NotPlain> {
    if command.contains('\0') {
        return Err("a NUL character");
    }
    if command.len() > MAX_COMMAND {
        return Err("more than 64 KiB");
    }
    let found = read(command).ok_or("a text that takes too long to read")?;
    let segments = match segments(command) {
        Ok(_) if found.broken || !found.plain => Err("a shell construct that is not plain"),
        Ok(segments) if segments != found.commands => Err("words that can be read in two ways"),
        other => other,
    };
    let found = unfold(found, command).ok_or("too many nested commands")?;
    Ok(Analysis {
        segments,
        commands: found.commands,
        words: found.words,
        writes: found.writes,
        reads: found.reads,
    })
}
