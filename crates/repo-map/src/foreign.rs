//! Languages without a grammar here: their tags come from Universal Ctags, if it is installed. The caller runs it and
//! passes it the content of each file, so that ctags itself opens none.

use crate::tags::{Definition, Kind, MAX_NAME, MAX_TAGS, Reference, Tags};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Extensions of the files for ctags.
const FOREIGN: [&str; 24] = [
    "clj", "cljs", "d", "dart", "el", "elm", "ex", "exs", "erl", "f90", "hs", "jl", "kt", "lisp", "lua", "m",
    "ml", "pas", "php", "pl", "pm", "scala", "swift", "vim",
];

/// The command line of ctags. The first option keeps it from reading option files of the source tree (`.ctags.d`); in
/// its sandbox mode it opens no file.
pub const CTAGS: [&str; 5] = [
    "ctags",
    "--options=NONE",
    "--_interactive=sandbox",
    "--quiet=yes",
    "--fields=+n",
];

/// Shorter words of a source say too little to count as names.
const MIN_WORD: usize = 3;

/// Whether ctags handles this file.
#[must_use]
pub fn is_foreign(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    end.is_some_and(|(_, end)| FOREIGN.contains(&end))
}

/// The request to ctags for a file; `bytes` bytes of content must follow it.
#[must_use]
pub fn question(path: &str, bytes: usize) -> String {
    let command = json!({ "command": "generate-tags", "filename": path, "size": bytes });
    format!("{command}\n")
}

/// Whether the first line from ctags identifies Universal Ctags: other programs have the same name.
#[must_use]
pub fn is_universal(line: &str) -> bool {
    let said = serde_json::from_str::<Line<'_>>(line);
    said.is_ok_and(|line| line.what == "program" && line.name == "Universal Ctags")
}

/// The answer of ctags about one file, read line by line.
#[derive(Debug, Default)]
pub struct CtagsReply {
    definitions: Vec<Definition>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "_type", borrow)]
    what: Cow<'a, str>,
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(default)]
    line: u32,
    #[serde(default)]
    kind: Cow<'a, str>,
}

impl CtagsReply {
    /// Adds a line, ignoring lines that are not tags. Returns whether it was the last one.
    pub fn take(&mut self, line: &str) -> bool {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
            return false;
        };
        // Uses of "M.greet" and "Moon::rise" say "greet" and "rise".
        let last = line.name.rsplit(['.', ':']).next().unwrap_or_default();
        let odd = last.is_empty() || last.len() > MAX_NAME || last.contains(char::is_control);
        if line.what == "tag" && line.line > 0 && !odd && self.definitions.len() < MAX_TAGS {
            self.definitions.push(Definition {
                name: last.to_owned(),
                kind: kind(&line.kind),
                line: line.line,
            });
        }
        matches!(line.what.as_ref(), "completed" | "error")
    }

    /// The tags of the file: definitions from ctags, references from the words of the source.
    #[must_use]
    pub fn tags(mut self, source: &[u8]) -> Tags {
        self.definitions.sort_by_key(|definition| definition.line);
        Tags {
            references: words(source, &self.definitions),
            definitions: self.definitions,
        }
    }
}

/// The words that may be names, including those in comments and strings; ranking only follows defined names.
fn words(source: &[u8], defined: &[Definition]) -> Vec<Reference> {
    let mut words: BTreeMap<&str, u32> = BTreeMap::new();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    for word in source.split(|byte| !is_part(byte)) {
        let named =
            (MIN_WORD..=MAX_NAME).contains(&word.len()) && !word.first().is_some_and(u8::is_ascii_digit);
        let Some(word) = std::str::from_utf8(word).ok().filter(|_| named) else {
            continue;
        };
        if words.len() < MAX_TAGS || words.contains_key(word) {
            *words.entry(word).or_default() += 1;
        }
    }
    // The definition itself is not a use.
    for definition in defined {
        if let Some(count) = words.get_mut(definition.name.as_str()) {
            *count = count.saturating_sub(1);
        }
    }
    let used = words.into_iter().filter(|(_, count)| *count > 0);
    used.map(|(name, count)| Reference {
        name: name.to_owned(),
        count,
    })
    .collect()
}

fn kind(word: &str) -> Kind {
    match word {
        "function" | "subroutine" | "procedure" | "func" => Kind::Function,
        "method" => Kind::Method,
        "module" | "namespace" | "package" => Kind::Module,
        "macro" => Kind::Macro,
        "constant" | "variable" | "field" | "property" | "val" | "var" => Kind::Value,
        _ => Kind::Type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ctags_become_tags_and_others_are_left_out() {
        let mut answer = CtagsReply::default();
        let lines = [
            r#"{"_type": "ptag", "name": "JSON_OUTPUT_VERSION", "path": "0.0"}"#,
            r#"{"_type": "tag", "name": "M.greet", "path": "a.lua", "line": 3, "kind": "function"}"#,
            "ctags: Warning: cannot open",
            r#"{"_type": "tag", "name": "", "path": "a.lua", "line": 4, "kind": "function"}"#,
            r#"{"_type": "tag", "name": "no_line", "path": "a.lua", "kind": "function"}"#,
            r#"{"_type": "tag", "name": "Moon", "path": "a.lua", "line": 1, "kind": "class"}"#,
        ];
        assert!(lines.iter().all(|line| !answer.take(line)));
        assert!(answer.take(r#"{"_type": "completed", "command": "generate-tags"}"#));
        let tags = answer.tags(b"Moon 1x\nab\nfunction M.greet() rise() rise() end");
        let told: Vec<_> = tags
            .definitions
            .iter()
            .map(|it| (it.name.as_str(), it.kind, it.line))
            .collect();
        assert_eq!(told, [("Moon", Kind::Type, 1), ("greet", Kind::Function, 3)]);
        let used: Vec<_> = tags
            .references
            .iter()
            .map(|it| (it.name.as_str(), it.count))
            .collect();
        assert_eq!(used, [("end", 1), ("function", 1), ("rise", 2)]);
    }

    #[test]
    fn i6_the_tags_of_one_file_have_a_bound() {
        let mut answer = CtagsReply::default();
        for n in 0..=MAX_TAGS {
            let line = format!(r#"{{"_type": "tag", "name": "n{n}", "line": 1, "kind": "function"}}"#);
            assert!(!answer.take(&line));
        }
        let long = "x".repeat(MAX_NAME + 1);
        let source: String = (0..=MAX_TAGS).map(|n| format!("word{n} ")).collect();
        let tags = answer.tags(format!("{source}{long}").as_bytes());
        assert_eq!(
            (tags.definitions.len(), tags.references.len()),
            (MAX_TAGS, MAX_TAGS)
        );
    }

    #[test]
    fn only_universal_ctags_is_meant() {
        assert!(is_universal(
            r#"{"_type": "program", "name": "Universal Ctags", "version": "5.9.0"}"#
        ));
        assert!(!is_universal("ctags: unrecognized option") && !is_universal(r#"{"_type": "program"}"#));
    }

    #[test]
    fn a_file_is_foreign_by_its_end() {
        assert!(is_foreign("a/b.lua") && is_foreign("x.kt"));
        assert!(!is_foreign("a.rs") && !is_foreign(".el") && !is_foreign("lua") && !is_foreign("a.lua/b"));
    }

    #[test]
    fn a_question_names_the_file_and_its_size() {
        let asked = question("a \"b\"\n.lua", 7);
        assert_eq!(asked.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&asked).unwrap();
        assert_eq!(
            (&read["filename"], &read["size"]),
            (&json!("a \"b\"\n.lua"), &json!(7))
        );
    }
}
