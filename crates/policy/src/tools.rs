//! The tools whose rules take patterns, by name. A rule can name any other tool as a whole, and the rules of the tool that
//! does the same kind of thing also ask about it and forbid it (I7).

use crate::request::Subject;

/// The tool that reads files: its rules apply to everything that reads.
pub const READ: &str = "Read";
/// The tool that lists directories.
pub const LS: &str = "Ls";
/// The tool that writes files: its rules apply to everything that writes.
pub const WRITE: &str = "Write";
/// The tool that runs commands.
pub const BASH: &str = "Bash";
/// The tool that changes files.
pub(crate) const EDIT: &str = "Edit";
const FETCH: &str = "WebFetch";
/// The tool that runs commands like Bash, in the background.
const BACKGROUND: &str = "BashStart";

/// The kind of pattern that a rule takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Command,
    Path { write: bool },
    Url,
}

struct Row {
    name: &'static str,
    form: Form,
    /// The tool whose ask and deny rules also apply to this one.
    kin: Option<&'static str>,
}

const fn row(name: &'static str, form: Form, kin: Option<&'static str>) -> Row {
    Row { name, form, kin }
}

const READS: Form = Form::Path { write: false };
const WRITES: Form = Form::Path { write: true };
const ROWS: [Row; 13] = [
    row(BASH, Form::Command, None),
    row(BACKGROUND, Form::Command, Some(BASH)),
    // Its input may be a shell command or something else, so Bash's allow rules do not apply to it.
    row("BashWrite", Form::Command, Some(BACKGROUND)),
    row(READ, READS, None),
    row(WRITE, WRITES, None),
    row(EDIT, WRITES, None),
    row("MultiEdit", WRITES, Some(EDIT)),
    row("ApplyPatch", WRITES, Some(EDIT)),
    row("UndoPatch", WRITES, Some(EDIT)),
    row(LS, READS, None),
    row("Glob", READS, None),
    row("Grep", READS, None),
    row(FETCH, Form::Url, None),
];

fn find(tool: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name.eq_ignore_ascii_case(tool))
}

/// The kind of pattern that a tool's rules take.
pub(crate) fn form(tool: &str) -> Option<Form> {
    find(tool).map(|row| row.form)
}

/// Whether all rules for Bash, of any kind, also apply to this tool.
pub(crate) fn is_background(tool: &str) -> bool {
    tool == BACKGROUND
}

/// The tool whose ask and deny rules also apply to this one. For a tool that is not in the table, the subject of the call
/// decides.
pub(crate) fn kin(tool: &str, subject: Option<&Subject>) -> Option<&'static str> {
    match (find(tool), subject) {
        (Some(row), _) => row.kin,
        (None, Some(Subject::Command { .. })) => Some(BASH),
        (None, Some(Subject::Path { write: true, .. } | Subject::Paths { write: true, .. })) => Some(EDIT),
        (None, Some(Subject::Url(_))) => Some(FETCH),
        (None, _) => None,
    }
}

/// The names of the tools whose rules take patterns.
pub(crate) fn with_patterns() -> String {
    ROWS.map(|row| row.name).join(", ")
}
