//! What exactly a call will do, for the person who approves it.

use crate::prepared::Prepared;
use agentd_policy::Subject;
use agentd_sandbox::Beneath;

/// The longest file that a preview compares.
const MAX_BYTES: u64 = 1 << 20;
/// The longest detail. It is not cut: a person approves what is shown, so a longer one cannot be approved.
const MAX_DETAIL: usize = 512 << 10;

impl Prepared {
    /// What exactly will happen: the command, or the change as a diff, and nothing of ours. Blocks to read files: not
    /// for an actor's handler.
    ///
    /// # Errors
    /// The detail is too long for a person to read before an approval.
    pub fn detail(&self, workdir: &Beneath) -> Result<String, String> {
        let preview = self
            .tool()
            .and_then(|tool| tool.preview(self, workdir, MAX_BYTES));
        let detail = match (preview, &self.subject) {
            // Shows the whole command, whatever its length: it is what the person approves.
            (_, Subject::Command { command }) => return Ok(command.clone()),
            (Some(preview), _) => preview,
            (None, Subject::Path { path, .. }) => format!("{} {path}", self.name),
            (None, Subject::Paths { paths, .. }) => {
                let list: String = paths.iter().map(|path| format!("\n{path}")).collect();
                format!("{}{list}", self.title)
            }
            (None, Subject::Url(url)) => url.clone(),
            (None, Subject::Remote { .. }) => {
                let arguments = serde_json::to_string_pretty(&self.input).unwrap_or_default();
                format!("{}\n{arguments}", self.name)
            }
            (None, Subject::Nothing) => serde_json::to_string_pretty(&self.input).unwrap_or_default(),
        };
        if detail.len() <= MAX_DETAIL {
            return Ok(detail);
        }
        Err(format!(
            "its preview has {} bytes, and an approval shows at most {MAX_DETAIL}; split it into smaller parts",
            detail.len()
        ))
    }

    /// The model's own description of a command. It is unverified.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let said = matches!(self.subject, Subject::Command { .. }).then(|| self.text("description").trim());
        said.filter(|said| !said.is_empty()).map(str::to_owned)
    }
}

/// The target and the place of a search.
pub(crate) fn sought(call: &Prepared, argument: &str) -> String {
    format!("{} {:?} in {}", call.name, call.text(argument), call.path())
}
