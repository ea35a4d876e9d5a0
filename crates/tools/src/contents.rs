//! The state of the files that a command runs: what a grant for a project is bound to.

use crate::binding::{Examined, Files, MAX_FILES, OTHER, word};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::watched;
use agentd_policy::{Subject, runs};
use agentd_protocol::{ToolOutcome, ToolStatus, VERSION};
use agentd_sandbox::{Beneath, Environment, SandboxError};
use std::collections::BTreeMap;

/// Bytes of file content read for one call. Files beyond that count by their version: path, device, inode, size, times.
const MAX_BYTES: u64 = 16 << 20;

impl Prepared {
    /// Whether the call runs files whose state decides what it does.
    #[must_use]
    pub fn runs_files(&self) -> bool {
        match &self.subject {
            Subject::Command { command } => runs(command).is_none_or(|names| !names.is_empty()),
            _ => false,
        }
    }

    /// The files that the call runs, each with the SHA-256 of its content; a file outside of the directory, or a very
    /// large one, with its version. Blocks to read files: not for an actor's handler.
    ///
    /// # Errors
    /// The call names too many files, or one cannot be read: nothing can be bound to them.
    pub fn contents(
        &self,
        workdir: &Beneath,
        environment: &Environment,
    ) -> Result<BTreeMap<String, String>, String> {
        let Subject::Command { command } = &self.subject else {
            return Ok(BTreeMap::new());
        };
        let names = runs(command).filter(|names| names.len() <= MAX_FILES);
        let names = names.ok_or("the command names more files than agentd compares")?;
        let mut files = Files::new(workdir, environment, MAX_BYTES);
        names
            .into_iter()
            .map(|name| files.present(&name).map(|state| (name, state)))
            .collect()
    }

    /// The result of this call when the files that it runs are no longer those that were judged.
    #[must_use]
    pub fn replaced(
        &self,
        judged: &BTreeMap<String, String>,
        now: Result<BTreeMap<String, String>, String>,
    ) -> Option<ToolOutcome> {
        let what = match now {
            Ok(now) if now == *judged => return None,
            Ok(now) => {
                let differ = judged.iter().find(|(name, state)| now.get(*name) != Some(state));
                differ.map_or_else(|| "a file that it runs".to_owned(), |(name, _)| name.clone())
            }
            Err(why) => why,
        };
        let text = format!(
            "{} was not run: {what} changed after the call was judged. A person allowed it with the earlier content. Make the call \
             once more if it is still right: a person is asked.",
            self.name
        );
        Some(ToolOutcome {
            status: ToolStatus::Denied,
            ..refuse(Code::Changed, text)
        })
    }
}

impl Files<'_> {
    /// The state of a file that a command names: the hash of its content, or its version if it is elsewhere.
    fn present(&mut self, name: &str) -> Result<String, String> {
        match self.examined(name) {
            Ok((state, Examined::Content)) => Ok(state),
            Ok((state, Examined::Version)) => Ok(format!("{VERSION}{state}")),
            Err(SandboxError::Outside { .. }) => {
                let place = self.place(name);
                let other = place.exists() && !place.is_file();
                Ok(if other {
                    OTHER.to_owned()
                } else {
                    watched::version(&place)
                })
            }
            Err(
                error @ (SandboxError::NotFound { .. }
                | SandboxError::WrongKind { .. }
                | SandboxError::BadPath { .. }),
            ) => Ok(word(&error).to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
