//! What exactly a call will do, for the person who is asked.

use crate::prepared::{Prepared, Subject};
use crate::{apply_patch, edit, replacement, write};
use agentd_sandbox::Beneath;

/// The longest file that is compared, and the longest detail.
const MAX_BYTES: u64 = 1 << 20;
/// A person approves what is shown, so a longer one cannot be approved: it is not cut.
const MAX_DETAIL: usize = 512 << 10;

impl Prepared {
    /// What exactly will happen: the command, or the change as a diff, and nothing of ours. Reads files, so it blocks: not
    /// for an actor's handler.
    ///
    /// # Errors
    /// Nobody can read so much before an approval.
    pub fn detail(&self, workdir: &Beneath) -> Result<String, String> {
        let detail = match (&self.subject, self.name.as_ref()) {
            (_, "Edit" | "MultiEdit") => edit::preview(self, workdir, MAX_BYTES),
            (_, "Write") => write::preview(self, workdir, MAX_BYTES),
            (Subject::Paths(_), "ApplyPatch") => apply_patch::preview(self, workdir, MAX_BYTES),
            (_, "ApplyPatch") => replacement::preview(self, workdir, MAX_BYTES),
            // The command is shown whole, whatever its length: this is what is approved.
            (Subject::Command { command }, _) => return Ok(command.clone()),
            (Subject::Path { path, .. }, _) => {
                let pattern = self.text("pattern");
                let what = if pattern.is_empty() {
                    String::new()
                } else {
                    format!(" {pattern:?} in")
                };
                format!("{}{what} {path}", self.name)
            }
            (Subject::Paths(paths), _) => {
                let list: String = paths.iter().map(|(_, path)| format!("\n{path}")).collect();
                format!("{}{list}", self.title)
            }
            (Subject::Url(url), _) => url.clone(),
            (Subject::Remote { .. }, _) => {
                let arguments = serde_json::to_string_pretty(&self.input).unwrap_or_default();
                format!("{}\n{arguments}", self.name)
            }
            (Subject::Nothing, _) => serde_json::to_string_pretty(&self.input).unwrap_or_default(),
        };
        if detail.len() <= MAX_DETAIL {
            return Ok(detail);
        }
        Err(format!(
            "it would show {} bytes to a person, who is shown at most {MAX_DETAIL} before an approval; do it in smaller parts",
            detail.len()
        ))
    }

    /// What the model says that a command does. Nobody has checked it.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let said = matches!(self.subject, Subject::Command { .. }).then(|| self.text("description").trim());
        said.filter(|said| !said.is_empty()).map(str::to_owned)
    }
}
