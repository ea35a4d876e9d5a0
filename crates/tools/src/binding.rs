//! What an approval of a call is bound to: its arguments, where and with what it runs, and the files that decide what it
//! does. Made when a person is asked, and again before the call runs.

use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::watched;
use agentd_policy::{Decides, Subject, decides};
use agentd_protocol::{Binding, ToolOutcome, ToolStatus};
use agentd_sandbox::{Beneath, Environment, SandboxError};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most files that one call is bound to.
const MAX_FILES: usize = 256;
/// Bytes that are read for one binding. What is beyond is bound by which version of the file it is.
const MAX_BYTES: u64 = 256 << 20;
const PIECE: usize = 64 << 10;
/// Directories that one call is bound to.
const MAX_TREES: usize = 8;
/// Files that are searched for the names of others.
const MAX_SEARCHED: usize = 64;
/// Files that only files name; those beyond are not looked at.
const MAX_DEEP: usize = 256;
/// How many changes are told.
const TOLD: usize = 8;

impl Prepared {
    /// What an approval of this call is given for. Reads files, so it blocks: not for an actor's handler. Of a directory that
    /// it runs code from at most `watch` entries are looked at.
    ///
    /// # Errors
    /// It cannot be said, so nobody can approve it.
    pub fn binding(
        &self,
        workdir: &Beneath,
        environment: &Environment,
        watch: usize,
    ) -> Result<Binding, String> {
        let runs = matches!(self.subject, Subject::Command { .. });
        let found = self.files(workdir, environment, watch)?;
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
            tool: match &self.subject {
                Subject::Remote { version, .. } => Some(version.clone()),
                _ => None,
            },
            files: found.found,
            trees: found.trees,
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

    fn files<'a>(
        &self,
        workdir: &'a Beneath,
        environment: &'a Environment,
        watch: usize,
    ) -> Result<Files<'a>, String> {
        let mut files = Files {
            workdir,
            environment,
            watch,
            room: MAX_BYTES,
            found: BTreeMap::new(),
            trees: BTreeMap::new(),
        };
        match &self.subject {
            Subject::Path { write: true, path } => files.changed(path)?,
            Subject::Paths { paths, .. } => {
                for path in paths {
                    files.changed(path)?;
                }
            }
            Subject::Command { command } => files.command(&decides(command))?,
            _ => {}
        }
        Ok(files)
    }
}

/// The directories of which more is in than was looked at.
pub fn partly_watched(binding: &Binding) -> impl Iterator<Item = &String> {
    let partly = binding
        .trees
        .iter()
        .filter(|(_, seen)| seen.starts_with(watched::PARTLY));
    partly.map(|(root, _)| root)
}

/// The hash of all that an approval is given for. Two questions with the same are about the same: an answer to one may
/// answer the other.
#[must_use]
pub fn likeness(binding: &Binding) -> String {
    digest(|hash| {
        text(hash, &binding.input);
        text(hash, &binding.cwd);
        text(hash, binding.environment.as_deref().unwrap_or_default());
        text(hash, binding.tool.as_deref().unwrap_or_default());
        for map in [&binding.files, &binding.trees] {
            text(hash, &map.len().to_string());
            for (name, state) in map {
                text(hash, name);
                text(hash, state);
            }
        }
    })
}

struct Files<'a> {
    workdir: &'a Beneath,
    environment: &'a Environment,
    watch: usize,
    room: u64,
    found: BTreeMap<String, String>,
    trees: BTreeMap<String, String>,
}

impl Files<'_> {
    /// A file that is to be changed, whatever is there now.
    fn changed(&mut self, path: &str) -> Result<(), String> {
        let state = self.state(path).unwrap_or_else(|error| word(&error).to_owned());
        self.add(path, state)
    }

    /// All that decides what a command does, one level further than it says.
    fn command(&mut self, decides: &Decides) -> Result<(), String> {
        for path in &decides.files {
            self.named(path)?;
        }
        let root = self.workdir.path().to_owned();
        if decides.code {
            self.tree(&root)?;
        }
        let places = decides.files.iter().map(|name| self.place(name));
        let outside: Vec<PathBuf> = places.filter(|path| !path.starts_with(&root)).collect();
        let inside = self.found.keys().map(|name| root.join(name));
        let home = watched::home(self.environment);
        let home: Vec<PathBuf> = home
            .iter()
            .flat_map(|home| decides.home.iter().map(|name| home.join(name)))
            .collect();
        let searched: Vec<PathBuf> = inside
            .chain(outside.iter().cloned())
            .chain(home.iter().cloned())
            .take(MAX_SEARCHED)
            .collect();
        for name in &decides.programs {
            self.program(name);
        }
        for path in home {
            self.elsewhere(&path, true);
        }
        for path in outside {
            if path.is_file() {
                self.elsewhere(&path, false);
            } else if decides.code && path.is_dir() {
                self.tree(&path)?;
            }
        }
        for path in searched {
            let (paths, programs) = watched::names_in(&path);
            let beside = path.parent().unwrap_or(&root).to_owned();
            for name in paths {
                for base in [&root, &beside] {
                    self.elsewhere(&lexical(&base.join(&name)), false);
                }
            }
            for name in programs {
                self.program(&name);
            }
        }
        Ok(())
    }

    /// Where a word leads, as text.
    fn place(&self, name: &str) -> PathBuf {
        let home = name.strip_prefix("~/").zip(watched::home(self.environment));
        match home {
            Some((rest, home)) => lexical(&home.join(rest)),
            None => lexical(&self.workdir.path().join(name)),
        }
    }

    /// A directory that code is run from.
    fn tree(&mut self, path: &Path) -> Result<(), String> {
        let name = path.to_string_lossy().into_owned();
        if self.trees.contains_key(&name) {
            return Ok(());
        }
        if self.trees.len() >= MAX_TREES {
            return Err(format!(
                "the call runs code from more than {MAX_TREES} directories"
            ));
        }
        self.trees.insert(name, watched::tree(path, self.watch));
        Ok(())
    }

    fn program(&mut self, name: &str) {
        if let Some(path) = watched::program(name, self.workdir.path(), self.environment) {
            self.elsewhere(&path, false);
        }
    }

    /// A file that is bound by which version it is. One in a directory that is watched is bound already.
    fn elsewhere(&mut self, path: &Path, absent_counts: bool) {
        let name = path.to_string_lossy().into_owned();
        let watched =
            |(root, seen): (&String, &String)| path.starts_with(root) && !seen.starts_with(watched::PARTLY);
        if self.trees.iter().any(watched) || self.found.len() >= MAX_FILES + MAX_DEEP {
            return;
        }
        if absent_counts || path.is_file() {
            self.found.entry(name).or_insert_with(|| watched::version(path));
        }
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

/// A path without `.` and `..`, as text.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                clean.pop();
            }
            std::path::Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
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

pub(crate) fn hex(hash: Sha256) -> String {
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
