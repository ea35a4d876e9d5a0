//! What an approval of a call is bound to: its arguments, where and with what it runs, and the files that decide what it
//! does. Made when a person is asked, and again before the call runs.

use crate::prepared::{PathOp, Prepared, Subject};
use crate::refusal::{Code, refuse};
use agentd_policy::scripts;
use agentd_protocol::{Binding, ToolOutcome, ToolStatus};
use agentd_sandbox::{Beneath, Environment, SandboxError};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};

/// The most files that one call is bound to.
const MAX_FILES: usize = 256;
/// Bytes that are read for one binding. What is beyond is bound by which version of the file it is.
const MAX_BYTES: u64 = 256 << 20;
const PIECE: usize = 64 << 10;
/// How many changes are told.
const TOLD: usize = 8;

impl Prepared {
    /// What an approval of this call is given for. Reads files, so it blocks: not for an actor's handler.
    ///
    /// # Errors
    /// It cannot be said, so nobody can approve it.
    pub fn binding(&self, workdir: &Beneath, environment: &Environment) -> Result<Binding, String> {
        let runs = matches!(self.subject, Subject::Command { .. });
        Ok(Binding {
            input: digest(|hash| {
                text(hash, &self.name);
                value(hash, &self.input);
            }),
            cwd: workdir.path().to_string_lossy().into_owned(),
            environment: runs.then(|| {
                digest(|hash| {
                    for (name, value) in environment.iter() {
                        text(hash, name);
                        text(hash, value);
                    }
                })
            }),
            files: self.files(workdir)?,
        })
    }

    /// The result of this call when what was approved is not what would run now.
    #[must_use]
    pub fn unbound(&self, bound: &Binding, now: Result<Binding, String>) -> Option<ToolOutcome> {
        let (changes, more) = match now {
            Ok(now) => {
                let mut changes = bound.changes(&now);
                let more = changes.len().saturating_sub(TOLD);
                changes.truncate(TOLD);
                (changes, more)
            }
            Err(why) => (vec![why], 0),
        };
        if changes.is_empty() {
            return None;
        }
        let mut what = changes.join(", ");
        if more > 0 {
            what.push_str(&format!(" and {more} more"));
        }
        let text = format!(
            "{} was not run: since a person approved it this has changed: {what}. The approval was for what was there before. Look again, \
             and make the call once more if it is still right: a person is asked anew.",
            self.name
        );
        Some(ToolOutcome {
            status: ToolStatus::Denied,
            ..refuse(Code::Changed, text)
        })
    }

    fn files(&self, workdir: &Beneath) -> Result<BTreeMap<String, String>, String> {
        let mut files = Files {
            workdir,
            room: MAX_BYTES,
            found: BTreeMap::new(),
        };
        match &self.subject {
            Subject::Path {
                op: PathOp::Write,
                path,
            } => files.changed(path)?,
            Subject::Paths(paths) => {
                for (_, path) in paths {
                    files.changed(path)?;
                }
            }
            Subject::Command { command } => {
                for path in scripts(command) {
                    files.named(&path)?;
                }
            }
            _ => {}
        }
        Ok(files.found)
    }
}

struct Files<'a> {
    workdir: &'a Beneath,
    room: u64,
    found: BTreeMap<String, String>,
}

impl Files<'_> {
    /// A file that is to be changed, whatever is there now.
    fn changed(&mut self, path: &str) -> Result<(), String> {
        let state = self.state(path).unwrap_or_else(|error| word(&error).to_owned());
        self.add(path, state)
    }

    /// A word that may name a file: only one that is there counts.
    fn named(&mut self, path: &str) -> Result<(), String> {
        match self.state(path) {
            Ok(state) => self.add(path, state),
            Err(
                SandboxError::NotFound { .. } | SandboxError::WrongKind { .. } | SandboxError::BadPath { .. },
            ) => Ok(()),
            Err(error) => self.add(path, word(&error).to_owned()),
        }
    }

    fn add(&mut self, path: &str, state: String) -> Result<(), String> {
        self.found.insert(path.to_owned(), state);
        if self.found.len() > MAX_FILES {
            return Err(format!("the call is about more than {MAX_FILES} files"));
        }
        Ok(())
    }

    fn state(&mut self, path: &str) -> Result<String, SandboxError> {
        let place = self.workdir.relative(path)?;
        let mut opened = self.workdir.open_file(&place)?;
        if opened.bytes > self.room {
            return Ok(digest(|hash| text(hash, &format!("{:?}", opened.version))));
        }
        self.room -= opened.bytes;
        let read = content(&mut opened.file, self.room.saturating_add(opened.bytes));
        read.map_err(|source| SandboxError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })
    }
}

/// What stands for a file that cannot be read.
const fn word(error: &SandboxError) -> &'static str {
    match error {
        SandboxError::NotFound { .. } => "absent",
        SandboxError::WrongKind { .. } => "no regular file",
        SandboxError::Outside { .. } => "outside",
        _ => "unreadable",
    }
}

/// The hash of a file; one that grows while it is read is read no further than `most`.
fn content(file: &mut impl io::Read, most: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut file = file.take(most.saturating_add(1));
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(hash)),
            count => hash.update(piece.get(..count).unwrap_or_default()),
        }
    }
}

fn digest(feed: impl FnOnce(&mut Sha256)) -> String {
    let mut hash = Sha256::new();
    feed(&mut hash);
    hex(hash)
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With its length before it, so that two texts are never one.
fn text(hash: &mut Sha256, text: &str) {
    hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(text.as_bytes());
}

/// The order of an object's fields says nothing.
fn value(hash: &mut Sha256, of: &Value) {
    match of {
        Value::Array(items) => {
            text(hash, &format!("[{}", items.len()));
            items.iter().for_each(|item| value(hash, item));
        }
        Value::Object(fields) => {
            text(hash, &format!("{{{}", fields.len()));
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            for (name, field) in sorted {
                text(hash, name);
                value(hash, field);
            }
        }
        scalar => text(hash, &scalar.to_string()),
    }
}
