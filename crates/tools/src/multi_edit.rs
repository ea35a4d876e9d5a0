//! MultiEdit: makes several edits of one file, all or none.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::edit;
use crate::edit_arguments::differ;
use crate::prepared::Prepared;
use crate::spec::ToolSpec;
use crate::tool::{About, FILE_WORDS, NEW_WORDS, OLD_WORDS, Runs, Spelling, Tool};
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_sandbox::Beneath;
use serde_json::{Map, Value, json};

/// Replaces several exact texts of a file.
pub(crate) struct MultiEdit;

impl Tool for MultiEdit {
    fn name(&self) -> &'static str {
        "MultiEdit"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["multi_edit", "edit_file_multi"],
            title: "Edit a file in several places".into(),
            description: "Makes several edits of one file, like Edit, in the given order; each sees the result of those before it. All or none are made."
                .to_owned(),
            schema: object(
                &json!({
                    "file_path": { "type": "string", "minLength": 1, "description": "The file, relative to the working directory" },
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 100,
                        "items": object(
                            &json!({
                                "old_string": { "type": "string", "minLength": 1, "description": "The text to replace" },
                                "new_string": { "type": "string", "description": "What to put in its place" },
                                "replace_all": { "type": "boolean", "description": "Replace every occurrence" }
                            }),
                            &["old_string", "new_string"],
                        )
                    }
                }),
                &["file_path", "edits"],
            ),
            example: json!({
                "file_path": "src/main.rs",
                "edits": [
                    { "old_string": "let a = 1;", "new_string": "let a = 2;" },
                    { "old_string": "let b = 1;", "new_string": "let b = 2;" }
                ]
            }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::writes("file_path", input)
    }

    fn runs(&self) -> Runs {
        Runs::Files(edit::run)
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[("file_path", FILE_WORDS)]
    }

    fn adapt(&self, input: &mut Map<String, Value>) {
        let edits = input.get_mut("edits").and_then(Value::as_array_mut);
        for edit in edits.into_iter().flatten().filter_map(Value::as_object_mut) {
            respell(edit, "old_string", OLD_WORDS);
            respell(edit, "new_string", NEW_WORDS);
        }
    }

    fn check(&self, input: &Value) -> Result<(), ToolOutcome> {
        let edits = input.get("edits").and_then(Value::as_array);
        for (at, edit) in edits.into_iter().flatten().enumerate() {
            let which = format!(" of edit {}", at + 1);
            differ("MultiEdit", edit, &which, ["old_string", "new_string"])?;
        }
        Ok(())
    }

    fn preview(&self, call: &Prepared, workdir: &Beneath, max: u64) -> Option<String> {
        Some(edit::preview(call, workdir, max))
    }
}

fn respell(given: &mut Map<String, Value>, name: &str, others: &[&str]) {
    if given.contains_key(name) {
        return;
    }
    if let Some(value) = others.iter().find_map(|other| given.shift_remove(*other)) {
        given.insert(name.to_owned(), value);
    }
}
