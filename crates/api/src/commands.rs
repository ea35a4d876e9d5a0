//! Slash commands in inputs that a person typed: the daemon carries some out itself and expands others to a text.

use crate::api::Api;
use crate::prompting::reading;
use crate::sight::Caller;
use agentd_prompt::{command_list, command_text, slash};
use agentd_protocol::{Block, CommandRow, Fault, PermissionMode, SessionParams, TodoStatus, nearest};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The built-in commands with their descriptions.
const BUILT_IN: [(&str, &str); 7] = [
    (
        "plan",
        "/plan [TEXT]  only read and make a plan; TEXT becomes the next input",
    ),
    (
        "mode",
        "/mode default|accept-edits|plan|yolo  set what runs without asking",
    ),
    (
        "model",
        "/model NAME  set the model from the next call on; agentctl models lists them",
    ),
    (
        "compact",
        "/compact  replace the beginning of the conversation with a summary",
    ),
    ("todo", "/todo  show the agent's to-do list"),
    ("undo", "/undo  restore the files that were changed last"),
    ("help", "/help  show this list"),
];

/// The meaning of a typed text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    /// An input with the text of a command file.
    File(Vec<Block>),
    /// An input, possibly with a different text than was typed.
    Text(Vec<Block>),
    /// Change the mode, then send the rest, if any.
    Mode(PermissionMode, Option<Vec<Block>>),
    /// Change the model.
    Model(String),
    /// Compact the conversation.
    Compact,
    /// Show the to-do list.
    Todo,
    /// Undo the last change.
    Undo,
    /// List the commands.
    Help,
}

/// Parses a built-in command; `None`: it is a file's command, or no command at all.
fn built_in(name: &str, arguments: &str) -> Result<Option<Typed>, Fault> {
    let rest = || (!arguments.is_empty()).then(|| vec![Block::text(arguments)]);
    let bare = |typed: Typed| {
        if arguments.is_empty() {
            Ok(Some(typed))
        } else {
            let message = format!("/{name} takes no argument");
            Err(Fault::invalid("bad_command", message).hint("to begin a text with a slash, write //"))
        }
    };
    match name {
        "plan" => Ok(Some(Typed::Mode(PermissionMode::Plan, rest()))),
        "mode" => mode(arguments).map(|mode| Some(Typed::Mode(mode, None))),
        "model" if arguments.is_empty() => {
            Err(Fault::invalid("bad_command", "/model needs a name").hint("`agentctl models` lists them"))
        }
        "model" => Ok(Some(Typed::Model(arguments.to_owned()))),
        "compact" => bare(Typed::Compact),
        "todo" => bare(Typed::Todo),
        "undo" => bare(Typed::Undo),
        "help" => bare(Typed::Help),
        _ => Ok(None),
    }
}

fn mode(word: &str) -> Result<PermissionMode, Fault> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|_| {
        let message = format!("there is no mode {:?}", crate::words::cut(word));
        Fault::invalid("bad_command", message).hint("/mode default, accept-edits, plan or yolo")
    })
}

/// The to-do list as text for a person.
pub(crate) fn todo_text(items: &[agentd_protocol::TodoItem]) -> String {
    if items.is_empty() {
        return "the to-do list is empty".to_owned();
    }
    let mut text = String::new();
    for item in items {
        let mark = match item.status {
            TodoStatus::Pending => " ",
            TodoStatus::InProgress => ">",
            TodoStatus::Completed => "x",
        };
        let _ = writeln!(text, "[{mark}] {}", item.content);
    }
    text.trim_end().to_owned()
}

impl Api {
    /// Parses the first block of a typed input as a command.
    pub(crate) async fn typed(&self, workdir: &str, mut content: Vec<Block>) -> Result<Typed, Fault> {
        let Some(Block::Text { text }) = content.first_mut() else {
            return Ok(Typed::Text(content));
        };
        if text.trim_start().starts_with("//") {
            *text = text.replacen("//", "/", 1);
            return Ok(Typed::Text(content));
        }
        let Some(read) = slash(text) else {
            return Ok(Typed::Text(content));
        };
        if let Some(typed) = built_in(read.name, read.arguments)? {
            return Ok(typed);
        }
        let (name, arguments) = (read.name.to_owned(), read.arguments.to_owned());
        let (places, dir) = (self.places(workdir, &[]), PathBuf::from(workdir));
        let workdir = dir.clone();
        let found = reading("the command's file", &workdir, move || {
            let found = command_text(&places, &dir, &name, &arguments);
            let names = command_list(&places, &dir);
            // `/tmp is full` is a text; `/compcat` is a typo.
            let is_path = Path::new("/").join(&name).exists();
            (name, found, names, is_path)
        });
        let (name, found, names, is_path) = found.await?;
        match found {
            Ok(Some(words)) => {
                *text = words;
                Ok(Typed::File(content))
            }
            Ok(None) => {
                let known = BUILT_IN.iter().map(|(name, _)| *name);
                let known = known.chain(names.iter().map(|(name, _)| name.as_str()));
                if is_path {
                    return Ok(Typed::Text(content));
                }
                let near = match nearest(&name, known) {
                    Some(near) => format!("did you mean /{near}?"),
                    None => "/help lists them.".to_owned(),
                };
                let fault = Fault::invalid("unknown_command", format!("there is no command /{name}"));
                Err(fault.hint(format!(
                    "{near} To send it as text, begin it with two slashes: //{name}"
                )))
            }
            Err(why) => Err(Fault::invalid("bad_command", why)),
        }
    }

    /// The commands that an input of a session may begin with.
    pub(crate) async fn commands(
        &self,
        who: &Caller,
        params: SessionParams,
    ) -> Result<Vec<CommandRow>, Fault> {
        let (session, row) = self.row_of(who, &params.session).await?;
        self.files_here(*session).await?;
        let files = self.command_files(&row.summary.workdir).await?;
        let built_in = BUILT_IN.map(|(name, words)| (name.to_owned(), words.to_owned(), false));
        let files = files.into_iter().map(|(name, words)| (name, words, true));
        let all = built_in.into_iter().chain(files);
        Ok(all
            .map(|(name, help, file)| CommandRow { name, help, file })
            .collect())
    }

    async fn command_files(&self, workdir: &str) -> Result<Vec<(String, String)>, Fault> {
        let (places, dir) = (self.places(workdir, &[]), PathBuf::from(workdir));
        let workdir = dir.clone();
        reading("the commands", &workdir, move || command_list(&places, &dir)).await
    }

    /// The list of commands for a person.
    pub(crate) async fn help(&self, workdir: &str) -> Result<String, Fault> {
        let mut text = String::new();
        for (_, words) in BUILT_IN {
            let _ = writeln!(text, "{words}");
        }
        for (name, words) in self.command_files(workdir).await? {
            let _ = writeln!(text, "/{name}  {words}");
        }
        text.push_str(
            "@path attaches a file or an image, @path:10-20 attaches some of its lines, @directory/ attaches a listing",
        );
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::TodoItem;

    #[test]
    fn built_in_commands_are_parsed_with_their_arguments() {
        let read = |name, arguments| built_in(name, arguments).map_err(|fault| fault.code);
        let words = |text: &str| vec![Block::text(text)];
        assert_eq!(
            read("plan", ""),
            Ok(Some(Typed::Mode(PermissionMode::Plan, None)))
        );
        assert_eq!(
            read("plan", "fix it"),
            Ok(Some(Typed::Mode(PermissionMode::Plan, Some(words("fix it")))))
        );
        assert_eq!(
            read("mode", "accept-edits"),
            Ok(Some(Typed::Mode(PermissionMode::AcceptEdits, None)))
        );
        assert_eq!(read("model", "sonnet"), Ok(Some(Typed::Model("sonnet".into()))));
        assert_eq!(read("compact", ""), Ok(Some(Typed::Compact)));
        assert_eq!(read("review", "x"), Ok(None));
        for (name, arguments) in [
            ("mode", "fast"),
            ("mode", ""),
            ("model", ""),
            ("compact", "now"),
            ("help", "me"),
        ] {
            assert_eq!(
                read(name, arguments),
                Err("bad_command".into()),
                "{name} {arguments}"
            );
        }
    }

    #[test]
    fn each_built_in_command_is_in_the_help() {
        for (name, words) in BUILT_IN {
            assert!(words.starts_with(&format!("/{name}")), "{words}");
            assert_ne!(built_in(name, "").map_err(|fault| fault.code), Ok(None), "{name}");
        }
    }

    #[test]
    fn the_to_do_list_is_shown_with_marks() {
        let item = |content: &str, status| TodoItem {
            content: content.into(),
            status,
        };
        let items = [
            item("a", TodoStatus::Completed),
            item("b", TodoStatus::InProgress),
            item("c", TodoStatus::Pending),
        ];
        assert_eq!(todo_text(&items), "[x] a\n[>] b\n[ ] c");
        assert_eq!(todo_text(&[]), "the to-do list is empty");
    }
}
