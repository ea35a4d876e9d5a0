//! The binding of an approval: the arguments of the call, where and with what it runs, and the files that decide what
//! it does. Computed when a person is asked, and again before the call runs.

use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::watched;
use agentd_policy::{Decides, Subject, decides};
use agentd_protocol::{ABSENT, Binding, ToolOutcome, ToolStatus};
use agentd_sandbox::{Beneath, Environment, SandboxError};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most files in one binding.
pub(crate) const MAX_FILES: usize = 256;
/// Bytes of file content read for one binding. Files beyond that are bound by their version instead.
const MAX_BYTES: u64 = 256 << 20;
const PIECE: usize = 64 << 10;
/// The most directories in one binding.
const MAX_TREES: usize = 8;
/// The placeholder for a directory or device.
pub(crate) const OTHER: &str = "no regular file";
/// Files whose content is searched for the names of other files.
const MAX_SEARCHED: usize = 64;
/// Files that are only named by other files; further ones are ignored.
const MAX_DEEP: usize = 256;
/// How many changes the result lists.
const TOLD: usize = 8;

impl Prepared {
    /// Computes what an approval of this call is bound to. Blocks to read files: not for an actor's handler. Reads at
    /// most `watch` entries of each directory that the call runs code from.
    ///
    /// # Errors
    /// The binding cannot be computed, so the call cannot be approved.
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

    /// The result of this call when it would run something other than what was approved.
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
            "{} was not run: {what} changed after a person approved the call. The approval covered the earlier state. Check again, \
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
            watch,
            ..Files::new(workdir, environment, MAX_BYTES)
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

/// The directories that have more entries than the binding covers.
pub fn partly_watched(binding: &Binding) -> impl Iterator<Item = &String> {
    let partly = binding
        .trees
        .iter()
        .filter(|(_, seen)| seen.starts_with(watched::PARTLY));
    partly.map(|(root, _)| root)
}

/// The hash of everything an approval is bound to. Questions with the same hash are about the same thing, so one answer
/// may serve both.
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

/// The source of a state.
pub(crate) enum Examined {
    Content,
    Version,
}

pub(crate) struct Files<'a> {
    workdir: &'a Beneath,
    environment: &'a Environment,
    watch: usize,
    room: u64,
    found: BTreeMap<String, String>,
    trees: BTreeMap<String, String>,
}

impl<'a> Files<'a> {
    /// Nothing yet; the content of at most `room` bytes is read.
    pub(crate) const fn new(workdir: &'a Beneath, environment: &'a Environment, room: u64) -> Self {
        Self {
            workdir,
            environment,
            watch: 0,
            room,
            found: BTreeMap::new(),
            trees: BTreeMap::new(),
        }
    }

    /// Binds a file that the call changes, even if it does not exist yet.
    fn changed(&mut self, path: &str) -> Result<(), String> {
        let state = self.state(path).unwrap_or_else(|error| word(&error).to_owned());
        self.add(path, state)
    }

    /// Binds everything that decides what a command does, following references one level deep.
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

    /// The path that a word resolves to, without touching the file system.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let home = name.strip_prefix("~/").zip(watched::home(self.environment));
        match home {
            Some((rest, home)) => lexical(&home.join(rest)),
            None => lexical(&self.workdir.path().join(name)),
        }
    }

    /// Binds a directory that code runs from.
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

    /// Binds a file by its version. A file in a watched directory is already bound.
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

    /// Binds a word that may name a file, if that file exists.
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
            return Err(format!("the call concerns more than {MAX_FILES} files"));
        }
        Ok(())
    }

    fn state(&mut self, path: &str) -> Result<String, SandboxError> {
        self.examined(path).map(|(state, _)| state)
    }

    /// The hash of a file's content, or of its version if there is no room to read it.
    pub(crate) fn examined(&mut self, path: &str) -> Result<(String, Examined), SandboxError> {
        let place = self.workdir.relative(path)?;
        let mut opened = self.workdir.open_file(&place)?;
        if opened.bytes > self.room {
            let version = digest(|hash| text(hash, &format!("{:?}", opened.version)));
            return Ok((version, Examined::Version));
        }
        self.room -= opened.bytes;
        let read = content(&mut opened.file, self.room.saturating_add(opened.bytes));
        let read = read.map_err(|source| SandboxError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        });
        Ok((read?, Examined::Content))
    }
}

/// Resolves `.` and `..` in a path, without touching the file system.
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

/// The placeholder for a file that cannot be read.
pub(crate) const fn word(error: &SandboxError) -> &'static str {
    match error {
        SandboxError::NotFound { .. } => ABSENT,
        SandboxError::WrongKind { .. } => OTHER,
        SandboxError::Outside { .. } => "outside",
        _ => "unreadable",
    }
}

/// The hash of a file, of at most `most` bytes even if the file grows while it is read.
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

/// Hashes a text after its length, so that two adjacent texts cannot be confused.
fn text(hash: &mut Sha256, text: &str) {
    hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
    hash.update(text.as_bytes());
}

/// Hashes a JSON value independently of the order of its object fields.
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
