//! Languages without a grammar here: what Universal Ctags says of them, when it is installed. The caller starts it.

use crate::tags::{Definition, Kind, Tags};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Ends of names of files that ctags is asked about.
pub const FOREIGN: [&str; 24] = [
    "clj", "cljs", "d", "dart", "el", "elm", "ex", "exs", "erl", "f90", "hs", "jl", "kt", "lisp", "lua", "m",
    "ml", "pas", "php", "pl", "pm", "scala", "swift", "vim",
];

/// A longer name is no name; more of one file are cut off.
const MAX_NAME: usize = 120;
const MAX_TAGS: usize = 10_000;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "_type")]
    what: &'a str,
    name: std::borrow::Cow<'a, str>,
    path: std::borrow::Cow<'a, str>,
    #[serde(default)]
    line: u32,
    #[serde(default)]
    kind: std::borrow::Cow<'a, str>,
}

/// The tags in the output of `ctags --output-format=json --fields=+n`, by path. Lines that are none are left out.
#[must_use]
pub fn parse_foreign(output: &str) -> BTreeMap<String, Tags> {
    let mut files: BTreeMap<String, Tags> = BTreeMap::new();
    for line in output.lines() {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
            continue;
        };
        let odd = line.name.is_empty() || line.name.len() > MAX_NAME || line.name.contains(char::is_control);
        if line.what != "tag" || line.line == 0 || odd {
            continue;
        }
        let tags = files.entry(line.path.into_owned()).or_default();
        if tags.definitions.len() < MAX_TAGS {
            tags.definitions.push(Definition {
                name: line.name.into_owned(),
                kind: kind(&line.kind),
                line: line.line,
            });
        }
    }
    files
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
        let output = concat!(
            r#"{"_type": "ptag", "name": "JSON_OUTPUT_VERSION", "path": "0.0"}"#,
            "\n",
            r#"{"_type": "tag", "name": "greet", "path": "a.lua", "line": 3, "kind": "function"}"#,
            "\nctags: Warning: cannot open\n",
            r#"{"_type": "tag", "name": "", "path": "a.lua", "line": 4, "kind": "function"}"#,
            "\n",
            r#"{"_type": "tag", "name": "Moon", "path": "b.kt", "line": 1, "kind": "class"}"#,
            "\n",
        );
        let files = parse_foreign(output);
        assert_eq!(files.len(), 2);
        let greet = Definition {
            name: "greet".to_owned(),
            kind: Kind::Function,
            line: 3,
        };
        assert_eq!(files["a.lua"].definitions, [greet]);
        assert_eq!(files["b.kt"].definitions[0].kind, Kind::Type);
    }
}
