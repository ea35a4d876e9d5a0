//! Checks of the arguments of editing tools that a schema cannot express.

use crate::refusal::{Code, refuse};
use agentd_protocol::ToolOutcome;
use serde_json::Value;

/// A replacement must change something.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn differ(
    tool: &str,
    input: &Value,
    which: &str,
    [old, new]: [&str; 2],
) -> Result<(), ToolOutcome> {
    if input.get(old) != input.get(new) {
        return Ok(());
    }
    let why = format!(
        "{tool}: `{old}` and `{new}`{which} are equal, so nothing would change. Give the intended text in `{new}`."
    );
    Err(refuse(Code::InvalidArgs, why))
}

/// Either a patch, or one replacement.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn one_form(input: &Value) -> Result<(), ToolOutcome> {
    let has = |name: &str| input.get(name).is_some();
    let all = ["path", "old", "new"].iter().all(|name| has(name));
    let any = [
        "path",
        "old",
        "new",
        "expected_replacements",
        "fuzzy",
        "min_similarity",
    ]
    .iter()
    .any(|name| has(name));
    match (has("patch"), any, all) {
        (true, false, _) => Ok(()),
        (false, _, true) => differ("ApplyPatch", input, "", ["old", "new"]),
        _ => Err(refuse(
            Code::InvalidArgs,
            "ApplyPatch: give either `patch` alone, or `path`, `old` and `new`.",
        )),
    }
}
