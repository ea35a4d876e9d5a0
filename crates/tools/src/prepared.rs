//! A checked call.

use crate::context::{Guarding, ToolContext};
use crate::declared;
use crate::seen::FilesSeen;
use crate::spec::ToolEntry;
use crate::tool::{About, Tool};
use agentd_policy::Subject;
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::WritePermit;
use agentd_text::brief;
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// The most characters of a title.
const TITLE: usize = 100;

/// A checked call: its tool exists and its arguments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The canonical name.
    pub name: Cow<'static, str>,
    /// The arguments under their canonical names.
    pub input: Value,
    /// One line for people.
    pub title: String,
    /// Its effect class.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// The subject that the gate judges.
    pub subject: Subject,
    /// The argument that the subject was taken from.
    pub(crate) field: Option<&'static str>,
    pub(crate) entry: ToolEntry,
}

impl Prepared {
    /// A call of a built-in tool. Writes the subject back into the arguments: what is judged is what is opened.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub(crate) fn of(
        entry: &ToolEntry,
        tool: &'static dyn Tool,
        mut input: Value,
    ) -> Result<Self, ToolOutcome> {
        let spec = entry.spec();
        let About {
            subject,
            words,
            field,
        } = tool.subject(&input)?;
        if let (Some(field), Subject::Path { path: text, .. } | Subject::Url(text)) = (field, &subject)
            && let Some(object) = input.as_object_mut()
        {
            object.insert(field.to_owned(), Value::from(text.clone()));
        }
        Ok(Self {
            name: spec.name.clone(),
            input,
            title: format!("{} {}", spec.name, brief(&words, TITLE)),
            effect: spec.effect,
            idempotent: spec.idempotent,
            subject,
            field,
            entry: entry.clone(),
        })
    }

    /// A call of a tool server's tool: its arguments have no meaning here, whatever their names.
    pub(crate) fn remote(entry: &ToolEntry, input: Value) -> Self {
        let spec = entry.spec();
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
                version: entry.version().to_owned(),
                undeclared: declared::undeclared(&spec.schema, &input),
            },
            input,
            field: None,
            entry: entry.clone(),
        }
    }

    /// The same call with an absolute path inside the working directory made relative, so that rules for relative paths
    /// match it. Does not touch the file system.
    #[must_use]
    pub fn within(mut self, workdir: &Path) -> Self {
        if let (Subject::Path { path, .. }, Some(field)) = (&mut self.subject, self.field)
            && let Ok(inside) = Path::new(path.as_str()).strip_prefix(workdir)
        {
            let inside = clean(&inside.to_string_lossy());
            if let Some(object) = self.input.as_object_mut() {
                object.insert(field.to_owned(), Value::from(inside.clone()));
            }
            *path = inside;
        }
        self
    }

    /// The tool, if it is built in rather than a tool server's.
    #[must_use]
    pub fn tool(&self) -> Option<&'static dyn Tool> {
        self.entry.tool()
    }

    /// Completes the call with what only the session knows: the files that an undo is about. Without this an undo does
    /// nothing.
    ///
    /// # Errors
    /// The session knows no such change.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn knowing(self, seen: &FilesSeen) -> Result<Self, ToolOutcome> {
        match self.tool() {
            Some(tool) => tool.knowing(self, seen),
            None => Ok(self),
        }
    }

    /// The paths that it changes, as the gate judged them.
    #[must_use]
    pub fn written(&self) -> Vec<PathBuf> {
        match &self.subject {
            Subject::Path { write: true, path } => vec![path.into()],
            Subject::Paths { write: true, paths } => paths.iter().map(PathBuf::from).collect(),
            Subject::Path { .. }
            | Subject::Paths { .. }
            | Subject::Command { .. }
            | Subject::Url(_)
            | Subject::Remote { .. }
            | Subject::Nothing => Vec::new(),
        }
    }

    /// The write permit: covers only the paths that the call declared.
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
            Subject::Paths { .. }
            | Subject::Command { .. }
            | Subject::Url(_)
            | Subject::Remote { .. }
            | Subject::Nothing => ".",
        }
    }
}

/// Resolves `.` and `..`, and removes doubled slashes. A path that climbs out keeps its leading `..`; opening refuses it.
pub(crate) fn clean(path: &str) -> String {
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
    fn paths_are_normalized_as_text() {
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
