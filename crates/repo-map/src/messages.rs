//! The messages between the daemon and the program that parses source files. Each is a line of JSON; the content of the
//! file follows its request.

use crate::language::Language;
use crate::tags::{MAX_FILE_BYTES, MAX_NAME, MAX_TAGS, Tags};
use serde::{Deserialize, Serialize};

/// The name of the program. It is in the directory of the daemon.
pub const TAGS_PROGRAM: &str = "agentd-tags";
/// The argument for work in the background.
pub const BACKGROUND: &str = "--background";
/// The longest line of a request.
pub const MAX_REQUEST: u64 = 256;
/// The longest answer: more than the most tags with the longest names take.
pub const MAX_ANSWER: u64 = 8 << 20;

/// Incremented when the messages change: after an upgrade, a running daemon can meet the program of another version.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Greeting {
    program: String,
    version: u32,
}

/// The first line that the program writes.
#[must_use]
pub fn greeting() -> String {
    line(&Greeting {
        program: TAGS_PROGRAM.to_owned(),
        version: VERSION,
    })
}

/// Whether a line is the greeting of the program, in a version that this one can talk to.
#[must_use]
pub fn is_greeting(line: &str) -> bool {
    let said = serde_json::from_str::<Greeting>(line);
    said.is_ok_and(|said| said.program == TAGS_PROGRAM && said.version == VERSION)
}

/// Asks for the tags of a file. Its content follows the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its language.
    pub language: Language,
    /// The length of its content.
    pub bytes: usize,
}

impl Request {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        line(self)
    }

    /// Reads a line. `None` if it is no request, or the file is too large.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(line).ok()?;
        (read.bytes <= MAX_FILE_BYTES).then_some(read)
    }
}

/// The answer about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Its tags.
    Tags(Tags),
    /// The parser gave up.
    TooHard,
}

impl Reply {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        line(self)
    }

    /// Reads a line. `None` if it is no answer, or one that only a broken program gives: a hostile file may have taken
    /// it over.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(line).ok()?;
        let sound = match &read {
            Self::Tags(tags) => {
                let names = tags.definitions.iter().map(|it| &it.name);
                let names = names.chain(tags.references.iter().map(|it| &it.name));
                tags.definitions.len() <= MAX_TAGS
                    && tags.references.len() <= MAX_TAGS
                    && tags.definitions.iter().all(|it| it.line > 0)
                    && names.into_iter().all(|name| is_name(name))
            }
            Self::TooHard => true,
        };
        sound.then_some(read)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control)
}

/// A value as a line. These values always have one.
fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;
