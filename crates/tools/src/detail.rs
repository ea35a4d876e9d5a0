//! What exactly a call will do, for the person who is asked.

use crate::prepared::{Prepared, Subject};
use crate::{apply_patch, edit, replacement, write};
use agentd_sandbox::Beneath;

/// The longest file that is compared, and the longest detail.
const MAX_BYTES: u64 = 1 << 20;
const MAX_DETAIL: usize = 64 << 10;

impl Prepared {
    /// What exactly will happen: the command, or the change as a diff. Reads files, so it blocks: not for an actor's handler.
    #[must_use]
    pub fn detail(&self, workdir: &Beneath) -> String {
        let detail = match (&self.subject, self.name.as_ref()) {
            (_, "Edit" | "MultiEdit") => edit::preview(self, workdir, MAX_BYTES),
            (_, "Write") => write::preview(self, workdir, MAX_BYTES),
            (Subject::Paths(_), "ApplyPatch") => apply_patch::preview(self, workdir, MAX_BYTES),
            (_, "ApplyPatch") => replacement::preview(self, workdir, MAX_BYTES),
            // The command is shown whole, whatever its length: this is what is approved.
            (Subject::Command { command }, _) => {
                return format!("{command}\n(in {})", workdir.path().display());
            }
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
            (Subject::Nothing, _) => self.title.clone(),
        };
        if detail.len() <= MAX_DETAIL {
            return detail;
        }
        let shown = detail
            .get(..detail.floor_char_boundary(MAX_DETAIL))
            .unwrap_or_default();
        format!(
            "{shown}\n[{} more bytes are not shown]",
            detail.len() - shown.len()
        )
    }
}
