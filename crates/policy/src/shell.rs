//! The effects of a command, as far as its text shows them.

use crate::nested::{crude, unfold};
use crate::plain::{NotPlain, segments};
use crate::tree::{Input, Pattern, read};

/// A longer command is not read.
const MAX_COMMAND: usize = 65_536;

/// The result of analysing a command.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The commands of a plain text, each allowed separately; or why the text is not plain.
    pub(crate) segments: Result<Vec<Vec<String>>, NotPlain>,
    /// Every command found anywhere, including nested ones.
    pub(crate) commands: Vec<Vec<String>>,
    /// Those of them that are commands as a shell sees them, not parts of other words.
    pub(crate) whole: Vec<Vec<String>>,
    /// Words whose value a shell computes.
    pub(crate) patterns: Vec<Pattern>,
    /// Commands whose name a shell computes; the first word is its pattern.
    pub(crate) computed: Vec<Vec<String>>,
    /// Variables in the environment of one command.
    pub(crate) given: Vec<(String, String)>,
    /// Variables that the shell sets.
    pub(crate) assigned: Vec<(String, String)>,
    /// Text that programs read from their input and may interpret.
    pub(crate) inputs: Vec<Input>,
    /// The words of all commands.
    pub(crate) words: Vec<String>,
    /// Files that redirections write.
    pub(crate) writes: Vec<String>,
    /// Files that redirections read.
    pub(crate) reads: Vec<String>,
    /// The grammar found errors in it, so there may be more commands than were found.
    pub(crate) broken: bool,
    /// It could not be parsed, so there are more commands than were found.
    pub(crate) unread: bool,
}

impl Analysis {
    /// The files that redirections write, except the devices that every program may use.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        let writes = self.writes.iter().map(String::as_str);
        writes.filter(|path| !matches!(*path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"))
    }
}

/// Analyses a command.
pub(crate) fn analyse(command: &str) -> Analysis {
    if command.contains('\0') {
        return unread(command, "a NUL character");
    }
    if command.len() > MAX_COMMAND {
        return unread(command, "more than 64 KiB");
    }
    let Some(found) = read(command) else {
        return unread(command, "too many parts");
    };
    let segments = match segments(command) {
        Ok(_) if found.broken || !found.plain => Err("a shell construct that is not a plain command"),
        Ok(segments) if segments != found.commands => Err("ambiguous words"),
        other => other,
    };
    match unfold(found, command) {
        Some(found) => Analysis {
            segments,
            commands: found.commands,
            whole: found.whole,
            patterns: found.patterns,
            computed: found.computed,
            given: found.given,
            assigned: found.assigned,
            inputs: found.inputs,
            words: found.words,
            writes: found.writes,
            reads: found.reads,
            broken: found.broken,
            unread: false,
        },
        None => unread(command, "too many nested commands"),
    }
}

/// Uses a crude split, so that deny rules still have something to match.
fn unread(command: &str, why: NotPlain) -> Analysis {
    let commands = crude(command);
    let words = commands.iter().flatten().cloned().collect();
    Analysis {
        segments: Err(why),
        commands,
        whole: Vec::new(),
        patterns: Vec::new(),
        computed: Vec::new(),
        given: Vec::new(),
        assigned: Vec::new(),
        inputs: Vec::new(),
        words,
        writes: Vec::new(),
        reads: Vec::new(),
        broken: true,
        unread: true,
    }
}
