//! What a tool is. Each one implements [`Tool`] in its own file.

use crate::context::{Finished, ToolContext, ToolLimits};
use crate::prepared::{Prepared, clean};
use crate::refusal::{Code, refuse};
use crate::run::Abandoned;
use crate::seen::FilesSeen;
use crate::spec::ToolSpec;
use agentd_policy::Subject;
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::Beneath;
use serde_json::{Map, Value};
use std::pin::Pin;

/// Another tool's words for an argument: the canonical name, then the others.
pub type Spelling = (&'static str, &'static [&'static str]);

/// How models spell the path of a file.
pub(crate) const FILE_WORDS: &[&str] = &["path", "file", "filename", "filepath", "filePath", "target_file"];
/// How they spell the text to replace.
pub(crate) const OLD_WORDS: &[&str] = &["old_text", "old", "old_str", "oldText", "oldString"];
/// How they spell what comes in its place.
pub(crate) const NEW_WORDS: &[&str] = &["new_text", "new", "new_str", "newText", "newString"];

/// A built-in tool. Code that needs to know something about a tool asks here; it does not compare names.
///
/// ```
/// use agentd_protocol::ToolOutcome;
/// use agentd_tools::{About, Runs, Tool, ToolLimits, ToolSpec};
/// use serde_json::Value;
///
/// struct Touch;
///
/// impl Tool for Touch {
///     fn name(&self) -> &'static str {
///         "Touch"
///     }
///     fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
///         unimplemented!()
///     }
///     fn runs(&self) -> Runs {
///         Runs::SubAgent
///     }
///     fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
///         About::writes("target", input)
///     }
/// }
/// ```
///
/// Without a subject the same tool does not compile:
///
/// ```compile_fail,E0046
/// use agentd_tools::{Runs, Tool, ToolLimits, ToolSpec};
///
/// struct Touch;
///
/// impl Tool for Touch {
///     fn name(&self) -> &'static str {
///         "Touch"
///     }
///     fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
///         unimplemented!()
///     }
///     fn runs(&self) -> Runs {
///         Runs::SubAgent
///     }
/// }
/// ```
pub trait Tool: Send + Sync {
    /// The canonical name.
    fn name(&self) -> &'static str;

    /// What models and people are told: the schema, the effect class, whether it may run again.
    fn spec(&self, limits: &ToolLimits) -> ToolSpec;

    /// What the gate judges of a call, from arguments that fit the schema. There is no default: a subject that somebody
    /// guessed would be judged in place of what the call does (I7).
    ///
    /// # Errors
    /// The arguments do not say what the call is about; the call is refused.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn subject(&self, input: &Value) -> Result<About, ToolOutcome>;

    /// Who runs it, and how.
    fn runs(&self) -> Runs;

    /// What it does to the world.
    fn effect(&self) -> EffectClass {
        self.spec(&ToolLimits::default()).effect
    }

    /// Whether these limits leave it in.
    fn offered(&self, _limits: &ToolLimits) -> bool {
        true
    }

    /// Whether it shows what is in files that its call does not name: then each of them is judged by the rules for
    /// reading. A tool that does not say so may read none of them.
    fn filtered(&self) -> bool {
        false
    }

    /// What an approval shows in place of the subject: for a change the diff. Reads files, so it blocks; a file of more
    /// than `max` bytes is not compared.
    fn preview(&self, _call: &Prepared, _workdir: &Beneath, _max: u64) -> Option<String> {
        None
    }

    /// Other names that models use for its arguments.
    fn spellings(&self) -> &'static [Spelling] {
        &[]
    }

    /// Other ways to write its arguments, which renaming does not cover.
    fn adapt(&self, _input: &mut Map<String, Value>) {}

    /// What no schema can say about its arguments.
    ///
    /// # Errors
    /// They make no sense together.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn check(&self, _input: &Value) -> Result<(), ToolOutcome> {
        Ok(())
    }

    /// The same call with what only the session knows.
    ///
    /// # Errors
    /// The session does not know what the call is about.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn knowing(&self, call: Prepared, _seen: &FilesSeen) -> Result<Prepared, ToolOutcome> {
        Ok(call)
    }
}

/// A call while it runs; dropping it stops it.
pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Finished> + Send + 'a>>;

/// Who runs the calls of a tool.
#[derive(Debug, Clone, Copy)]
pub enum Runs {
    /// A worker of the tool executor, on a thread that may block: work on files.
    Files(fn(&Prepared, &ToolContext, &Abandoned) -> Finished),
    /// A worker of the tool executor.
    Worker(for<'a> fn(&'a Prepared, &'a ToolContext) -> RunFuture<'a>),
    /// The session's loop answers; no worker starts.
    Loop(LoopCall),
    /// A sub-agent.
    SubAgent,
}

/// What the session's loop does with a call that it answers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopCall {
    /// It keeps the list of things to do.
    Todo,
    /// It asks a person.
    Ask,
    /// It shows a plan and ends plan mode.
    LeavePlanMode,
    /// It keeps the plan.
    Plan,
}

/// What a call is about: the subject that the gate judges, and a title's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub(crate) subject: Subject,
    pub(crate) words: String,
    /// The argument that the subject is written back to, so that what is judged is what is opened.
    pub(crate) field: Option<&'static str>,
}

impl About {
    /// The file that an argument names is read.
    ///
    /// # Errors
    /// The argument is missing.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn reads(field: &'static str, input: &Value) -> Result<Self, ToolOutcome> {
        Ok(Self::path(field, false, required(field, input)?))
    }

    /// The file that an argument names is changed.
    ///
    /// # Errors
    /// The argument is missing.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn writes(field: &'static str, input: &Value) -> Result<Self, ToolOutcome> {
        Ok(Self::path(field, true, required(field, input)?))
    }

    fn path(field: &'static str, write: bool, path: &str) -> Self {
        let path = clean(path);
        Self {
            words: path.clone(),
            subject: Subject::Path { write, path },
            field: Some(field),
        }
    }

    /// What is read below the directory that an argument names, or below the working directory if it is left out. The
    /// argument `sought` says what is looked for.
    #[must_use]
    pub fn below(field: &'static str, sought: Option<&str>, input: &Value) -> Self {
        let path = input.get(field).and_then(Value::as_str).unwrap_or(".");
        let mut about = Self::path(field, false, path);
        if let Some(sought) = sought.and_then(|sought| input.get(sought)?.as_str()) {
            about.words = format!("{sought} in {}", about.words);
        }
        about
    }

    /// The files that the call changes.
    #[must_use]
    pub const fn changes(paths: Vec<String>, words: String) -> Self {
        Self {
            subject: Subject::Paths { write: true, paths },
            words,
            field: None,
        }
    }

    /// The command line in an argument.
    ///
    /// # Errors
    /// The argument is missing, or no shell can get it.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn command(field: &'static str, input: &Value) -> Result<Self, ToolOutcome> {
        let command = required(field, input)?.to_owned();
        if command.contains('\0') {
            let text = format!("`{field}` has a NUL character in it, which no command can have.");
            return Err(refuse(Code::InvalidArgs, text));
        }
        Ok(Self::typed(command.clone(), command))
    }

    /// A text that a shell may run.
    #[must_use]
    pub const fn typed(command: String, words: String) -> Self {
        Self {
            subject: Subject::Command { command },
            words,
            field: None,
        }
    }

    /// An address, which is written back to an argument.
    #[must_use]
    pub fn url(field: &'static str, url: String) -> Self {
        Self {
            words: url.clone(),
            subject: Subject::Url(url),
            field: Some(field),
        }
    }

    /// Nothing outside the session.
    #[must_use]
    pub const fn nothing(words: String) -> Self {
        Self {
            subject: Subject::Nothing,
            words,
            field: None,
        }
    }
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn required<'a>(field: &str, input: &'a Value) -> Result<&'a str, ToolOutcome> {
    let text = format!("`{field}` is missing, so the call cannot be judged.");
    let given = input.get(field).and_then(Value::as_str);
    given.ok_or_else(|| refuse(Code::InvalidArgs, text))
}

/// A text argument; absent, it is empty.
pub(crate) fn word(input: &Value, name: &str) -> String {
    let word = input.get(name).and_then(Value::as_str);
    word.unwrap_or_default().to_owned()
}

/// How many items a list has: `2 steps`.
pub(crate) fn counted(input: &Value, name: &str, what: &str) -> String {
    match input.get(name).and_then(Value::as_array).map_or(0, Vec::len) {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
