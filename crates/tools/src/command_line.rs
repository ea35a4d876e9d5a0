//! Command lines in the forms of other runtimes: a list of words, or with a separate directory.

use agentd_policy::quoted;
use serde_json::{Map, Value};

/// The names that other runtimes use for the directory of a command.
const DIRECTORY: [&str; 5] = ["workdir", "cwd", "working_directory", "directory", "dir"];
const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash"];

/// Makes a single line of it, so that the line that is judged and approved is the one that runs:
/// `{command: ["ls"], workdir: "src"}` becomes `cd -- src && ls`.
pub(crate) fn whole(given: &mut Map<String, Value>) {
    if let Some(line) = given
        .get("command")
        .and_then(Value::as_array)
        .and_then(|words| line(words))
    {
        given.insert("command".to_owned(), Value::String(line));
    }
    let Some(command) = given.get("command").and_then(Value::as_str).map(str::to_owned) else {
        return;
    };
    let Some(name) = DIRECTORY
        .into_iter()
        .find(|name| given.get(*name).is_some_and(Value::is_string))
    else {
        return;
    };
    let Some(Value::String(directory)) = given.shift_remove(name) else {
        return;
    };
    if !matches!(directory.as_str(), "" | "." | "./") {
        given.insert("command".to_owned(), Value::String(below(&directory, &command)));
    }
}

/// `["bash", "-lc", SCRIPT]` is the script; other words are quoted.
fn line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [] => None,
        [shell, "-c" | "-lc", script] if SHELLS.contains(shell) => Some((*script).to_owned()),
        words => Some(
            words
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
        ),
    }
}

/// Prefixes the command with `cd` such that no part of it runs elsewhere if the directory is missing.
fn below(directory: &str, command: &str) -> String {
    let directory = quoted(directory);
    if command.contains([';', '|', '&', '\n']) {
        format!("cd -- {directory} && {{\n{command}\n}}")
    } else {
        format!("cd -- {directory} && {command}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_word_list_or_a_directory_becomes_one_command_line() {
        let rows = [
            (json!({"command": "ls"}), "ls"),
            (json!({"command": ["bash", "-lc", "echo $X"]}), "echo $X"),
            (
                json!({"command": ["grep", "it's", "a b"]}),
                r"grep 'it'\''s' 'a b'",
            ),
            (json!({"command": "make", "workdir": "src"}), "cd -- src && make"),
            (json!({"command": "make", "cwd": "."}), "make"),
            (json!({"command": ["ls"], "cwd": "a b"}), "cd -- 'a b' && ls"),
            (
                json!({"command": "a; b", "workdir": "-x"}),
                "cd -- -x && {\na; b\n}",
            ),
        ];
        for (given, expected) in rows {
            let mut given = given.as_object().unwrap().clone();
            whole(&mut given);
            assert_eq!(Value::Object(given), json!({ "command": expected }));
        }
        // Input that makes no sense stays unchanged, and the schema refuses it.
        let strange = json!({"command": [1], "workdir": "x"});
        let mut given = strange.as_object().unwrap().clone();
        whole(&mut given);
        assert_eq!(Value::Object(given), strange);
    }
}
