//! A call that was checked.

use crate::context::{Guarding, ToolContext};
use crate::declared;
use crate::refusal::{Code, refuse};
use crate::seen::FilesSeen;
use crate::spec::ToolSpec;
use crate::{apply_patch, edit_arguments, job_input, talk, undo, web_fetch};
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::WritePermit;
use agentd_text::brief;
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Characters of a title.
const TITLE: usize = 100;

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathOp {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// What a call is about: what the gate judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A file or directory.
    Path {
        /// What is done to it.
        op: PathOp,
        /// Without `.` and `..` inside; relative to the working directory (`.` is the directory itself), or absolute
        /// where it was given so.
        path: String,
    },
    /// Several files; each is judged.
    Paths(Vec<(PathOp, String)>),
    /// A command line.
    Command {
        /// The text that the shell gets.
        command: String,
    },
    /// An address.
    Url(String),
    /// A tool of a server: nobody here knows what it is about.
    Remote {
        /// Its arguments as JSON.
        arguments: String,
        /// A hash of what the server says of the tool.
        version: String,
        /// Arguments that the tool's schema does not declare.
        undeclared: Vec<String>,
    },
    /// Nothing outside the session.
    Nothing,
}

/// A call that was checked: its tool exists, its arguments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The canonical name.
    pub name: Cow<'static, str>,
    /// The arguments under their canonical names.
    pub input: Value,
    /// One line for people.
    pub title: String,
    /// What it does to the world.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// What the gate judges.
    pub subject: Subject,
}

/// Puts the subject into the arguments: what is judged is what is opened.
fn put_subject(subject: &Subject, field: &str, input: &mut Value) {
    match (subject, input.as_object_mut()) {
        (Subject::Path { path, .. }, Some(object)) => {
            object.insert(field.to_owned(), Value::from(path.clone()));
        }
        (Subject::Url(url), Some(object)) => {
            object.insert("url".to_owned(), Value::from(url.clone()));
        }
        _ => {}
    }
}

impl Prepared {
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub(crate) fn of(spec: &ToolSpec, mut input: Value) -> Result<Self, ToolOutcome> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
        let field = if matches!(spec.name.as_ref(), "Read" | "Write" | "Edit" | "MultiEdit") {
            "file_path"
        } else {
            "path"
        };
        let path = text(field).unwrap_or_else(|| ".".to_owned());
        edit_arguments::check(&spec.name, &input)?;
        let (subject, about) = if let Some(command) = text("command") {
            if command.contains('\0') {
                return Err(refuse(
                    Code::InvalidArgs,
                    "Bash: the command has a NUL character in it.",
                ));
            }
            (
                Subject::Command {
                    command: command.clone(),
                },
                command,
            )
        } else if spec.name == "BashWrite" {
            job_input::about(&input)?
        } else if spec.effect == EffectClass::None {
            (Subject::Nothing, talk::about(&input))
        } else if spec.name == "UndoPatch" {
            // Which files it is about, only the session knows: see [`Prepared::knowing`].
            (Subject::Nothing, text("undo_id").unwrap_or_default())
        } else if let Some(patch) = text("patch").filter(|_| spec.name == "ApplyPatch") {
            apply_patch::about(&patch)?
        } else if let Some(url) = text("url") {
            let url = web_fetch::address(&url)?;
            (Subject::Url(url.clone()), url)
        } else {
            let op = if spec.effect == EffectClass::Write {
                PathOp::Write
            } else {
                PathOp::Read
            };
            let path = clean(&path);
            let about = text("pattern")
                .or_else(|| text("query"))
                .map_or_else(|| path.clone(), |what| format!("{what} in {path}"));
            (Subject::Path { op, path }, about)
        };
        put_subject(&subject, field, &mut input);
        let title = format!("{} {}", spec.name, brief(&about, TITLE));
        Ok(Self {
            name: spec.name.clone(),
            input,
            title,
            effect: spec.effect,
            idempotent: spec.idempotent,
            subject,
        })
    }

    /// A tool of a server: no argument of it means anything here, whatever it is called.
    pub(crate) fn remote(spec: &ToolSpec, version: &str, input: Value) -> Self {
        let arguments = input.to_string();
        let about = if arguments == "{}" { "" } else { &arguments };
        Self {
            title: format!("{} {}", spec.name, brief(about, TITLE))
                .trim_end()
                .to_owned(),
            name: spec.name.clone(),
            effect: spec.effect,
            idempotent: spec.idempotent,
            subject: Subject::Remote {
                arguments,
                version: version.to_owned(),
                undeclared: declared::undeclared(&spec.schema, &input),
            },
            input,
        }
    }

    /// The same call with an absolute path inside the working directory made relative, so that rules for relative paths
    /// see it. Works on the text alone.
    #[must_use]
    pub fn within(mut self, workdir: &Path) -> Self {
        if let Subject::Path { path, .. } = &mut self.subject
            && let Ok(inside) = Path::new(path.as_str()).strip_prefix(workdir)
        {
            let inside = clean(&inside.to_string_lossy());
            let field = if self.input.get("file_path").is_some() {
                "file_path"
            } else {
                "path"
            };
            if let Some(object) = self.input.as_object_mut() {
                object.insert(field.to_owned(), Value::from(inside.clone()));
            }
            *path = inside;
        }
        self
    }

    /// The same call with what only the session knows: an undo is about the files that its change was about. Without it
    /// an undo does nothing.
    ///
    /// # Errors
    /// There is no such change.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn knowing(self, seen: &FilesSeen) -> Result<Self, ToolOutcome> {
        if self.name == "UndoPatch" {
            return undo::about(self, seen);
        }
        Ok(self)
    }

    /// The paths that it changes, as the gate judged them.
    #[must_use]
    pub fn written(&self) -> Vec<PathBuf> {
        match &self.subject {
            Subject::Path {
                op: PathOp::Write,
                path,
            } => vec![path.into()],
            Subject::Paths(paths) => {
                let written = paths.iter().filter(|(op, _)| *op == PathOp::Write);
                written.map(|(_, path)| path.into()).collect()
            }
            Subject::Path { .. }
            | Subject::Command { .. }
            | Subject::Url(_)
            | Subject::Remote { .. }
            | Subject::Nothing => Vec::new(),
        }
    }

    /// What it may write: nothing that it did not declare.
    pub(crate) fn permit(&self, ctx: &ToolContext) -> WritePermit {
        match &ctx.guarding {
            Guarding::Refused(protected) => WritePermit::new(self.written(), protected.as_ref().clone()),
            Guarding::Approved => WritePermit::approved(self.written()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.input.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.input.get(name).and_then(Value::as_u64)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.input.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &str {
        match &self.subject {
            Subject::Path { path, .. } => path,
            Subject::Paths(_)
            | Subject::Command { .. }
            | Subject::Url(_)
            | Subject::Remote { .. }
            | Subject::Nothing => ".",
        }
    }
}

/// A path without `.`, `..` and doubled slashes. What climbs out keeps its `..` in front and is refused when opened.
fn clean(path: &str) -> String {
    let mut clean = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                Some(Component::RootDir) => {}
                Some(Component::ParentDir | Component::CurDir | Component::Prefix(_)) | None => {
                    clean.push("..");
                }
            },
            other @ (Component::Normal(_) | Component::RootDir | Component::Prefix(_)) => clean.push(other),
        }
    }
    if clean.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        clean.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_text() {
        for (path, expected) in [
            ("a", "a"),
            ("./a//b/.", "a/b"),
            ("a/../b", "b"),
            ("a/..", "."),
            ("../x", "../x"),
            ("a/../../x", "../x"),
            ("/a/../../b", "/b"),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
    }
}
