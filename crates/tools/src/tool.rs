//! The [`Tool`] trait, which each tool implements in its own file.

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

/// Spellings of an argument: the canonical name, then the others.
pub type Spelling = (&'static str, &'static [&'static str]);

/// How models spell the path of a file.
pub(crate) const FILE_WORDS: &[&str] = &["path", "file", "filename", "filepath", "filePath", "target_file"];
/// How they spell the text to replace.
pub(crate) const OLD_WORDS: &[&str] = &["old_text", "old", "old_str", "oldText", "oldString"];
/// How they spell the replacement text.
pub(crate) const NEW_WORDS: &[&str] = &["new_text", "new", "new_str", "newText", "newString"];

/// A built-in tool. Code that depends on properties of a tool asks this trait; it does not compare names.
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

    /// The specification for models and people: the schema, the effect class, whether it may run again.
    fn spec(&self, limits: &ToolLimits) -> ToolSpec;

    /// The subject of a call for the gate, from arguments that fit the schema. There is no default: the gate would
    /// judge a guess in place of what the call does (I7).
    ///
    /// # Errors
    /// The arguments do not determine the subject; the call is refused.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn subject(&self, input: &Value) -> Result<About, ToolOutcome>;

    /// Where its calls run, and how.
    fn runs(&self) -> Runs;

    /// Its effect class.
    fn effect(&self) -> EffectClass {
        self.spec(&ToolLimits::default()).effect
    }

    /// Whether these limits enable it.
    fn offered(&self, _limits: &ToolLimits) -> bool {
        true
    }

    /// Whether it shows contents of files that its call does not name: then the read rules judge each of them. A tool
    /// that does not declare this may read none of them.
    fn filtered(&self) -> bool {
        false
    }

    /// What an approval shows in place of the subject: for a change, the diff. Blocks to read files; does not compare a
    /// file of more than `max` bytes.
    fn preview(&self, _call: &Prepared, _workdir: &Beneath, _max: u64) -> Option<String> {
        None
    }

    /// Other names that models use for its arguments.
    fn spellings(&self) -> &'static [Spelling] {
        &[]
    }

    /// Converts other forms of its arguments that renaming does not cover.
    fn adapt(&self, _input: &mut Map<String, Value>) {}

    /// Checks what a schema cannot express about its arguments.
    ///
    /// # Errors
    /// The arguments make no sense together.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn check(&self, _input: &Value) -> Result<(), ToolOutcome> {
        Ok(())
    }

    /// The call of another built-in tool that this call stands for: its name and arguments. That call is checked, judged
    /// and run instead.
    fn stands_for(&self, _input: &Value) -> Option<(&'static str, Value)> {
        None
    }

    /// Completes the call with what only the session knows.
    ///
    /// # Errors
    /// The session does not know the subject of the call.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn knowing(&self, call: Prepared, _seen: &FilesSeen) -> Result<Prepared, ToolOutcome> {
        Ok(call)
    }
}

/// A call while it runs; dropping it stops it.
pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Finished> + Send + 'a>>;

/// Where the calls of a tool run.
#[derive(Debug, Clone, Copy)]
pub enum Runs {
    /// In a worker of the tool executor, on a thread that may block: work on files.
    Files(fn(&Prepared, &ToolContext, &Abandoned) -> Finished),
    /// In a worker of the tool executor.
    Worker(for<'a> fn(&'a Prepared, &'a ToolContext) -> RunFuture<'a>),
    /// In the session's loop; no worker starts.
    Loop(LoopCall),
    /// As a sub-agent.
    SubAgent,
}

/// How the session's loop answers a call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopCall {
    /// Keeps the to-do list.
    Todo,
    /// Asks a person.
    Ask,
    /// Shows a plan and ends plan mode.
    LeavePlanMode,
    /// Keeps the plan.
    Plan,
}

/// The topic of a call: the subject for the gate, and the words of the title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub(crate) subject: Subject,
    pub(crate) words: String,
    /// The argument that receives the judged subject, so that what is judged is what is opened.
    pub(crate) field: Option<&'static str>,
}

impl About {
    /// Reads the file that an argument names.
    ///
    /// # Errors
    /// The argument is missing.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn reads(field: &'static str, input: &Value) -> Result<Self, ToolOutcome> {
        Ok(Self::path(field, false, required(field, input)?))
    }

    /// Changes the file that an argument names.
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

    /// Reads below the directory that an argument names, or below the working directory without one. The argument
    /// `sought` says what to look for.
    #[must_use]
    pub fn below(field: &'static str, sought: Option<&str>, input: &Value) -> Self {
        let path = input.get(field).and_then(Value::as_str).unwrap_or(".");
        let mut about = Self::path(field, false, path);
        if let Some(sought) = sought.and_then(|sought| input.get(sought)?.as_str()) {
            about.words = format!("{sought} in {}", about.words);
        }
        about
    }

    /// Changes these files.
    #[must_use]
    pub const fn changes(paths: Vec<String>, words: String) -> Self {
        Self {
            subject: Subject::Paths { write: true, paths },
            words,
            field: None,
        }
    }

    /// Runs the command line in an argument.
    ///
    /// # Errors
    /// The argument is missing, or cannot be passed to a shell.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn command(field: &'static str, input: &Value) -> Result<Self, ToolOutcome> {
        let command = required(field, input)?.to_owned();
        if command.contains('\0') {
            let text = format!("`{field}` contains a NUL character, which a command cannot contain.");
            return Err(refuse(Code::InvalidArgs, text));
        }
        Ok(Self::typed(command.clone(), command))
    }

    /// Types a text that a shell may run.
    #[must_use]
    pub const fn typed(command: String, words: String) -> Self {
        Self {
            subject: Subject::Command { command },
            words,
            field: None,
        }
    }

    /// Fetches an address, which is written back to an argument.
    #[must_use]
    pub fn url(field: &'static str, url: String) -> Self {
        Self {
            words: url.clone(),
            subject: Subject::Url(url),
            field: Some(field),
        }
    }

    /// Affects nothing outside the session.
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

/// A text argument, or an empty text.
pub(crate) fn word(input: &Value, name: &str) -> String {
    let word = input.get(name).and_then(Value::as_str);
    word.unwrap_or_default().to_owned()
}

/// The length of a list as text: `2 steps`.
pub(crate) fn counted(input: &Value, name: &str, what: &str) -> String {
    match input.get(name).and_then(Value::as_array).map_or(0, Vec::len) {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
