//! The tools that change files as the model is told of them.

use crate::catalog::object;
use crate::spec::ToolSpec;
use agentd_protocol::EffectClass;
use serde_json::json;

pub(crate) fn write() -> ToolSpec {
    ToolSpec {
        name: "Write".into(),
        aliases: &["write_file", "create_file", "writefile", "save_file"],
        title: "Write a file".into(),
        description: "Creates a file (and its directories) or replaces the whole content of one. A file that exists must have been read in this \
                      session, and be unchanged since. To change a part of a file use Edit."
            .to_owned(),
        schema: object(
            &json!({
                "file_path": { "type": "string", "minLength": 1, "description": "The file, relative to the working directory" },
                "content": { "type": "string", "description": "The whole content" }
            }),
            &["file_path", "content"],
        ),
        example: json!({ "file_path": "notes.md", "content": "# Notes\n" }),
        effect: EffectClass::Write,
        idempotent: false,
        server: None,
    }
}

pub(crate) fn edit() -> ToolSpec {
    ToolSpec {
        name: "Edit".into(),
        aliases: &["edit_file", "str_replace", "replace_in_file", "search_replace", "editfile"],
        title: "Edit a file".into(),
        description: "Replaces an exact text in a file that was read in this session and is unchanged since. `old_string` must be in the file exactly as \
                      given, with its whitespace, without the line numbers that Read adds, and exactly once, unless `replace_all` is true."
            .to_owned(),
        schema: object(
            &json!({
                "file_path": { "type": "string", "minLength": 1, "description": "The file, relative to the working directory" },
                "old_string": { "type": "string", "minLength": 1, "description": "The text to replace" },
                "new_string": { "type": "string", "description": "What to put in its place" },
                "replace_all": { "type": "boolean", "description": "Replace every occurrence" }
            }),
            &["file_path", "old_string", "new_string"],
        ),
        example: json!({ "file_path": "src/main.rs", "old_string": "let a = 1;", "new_string": "let a = 2;" }),
        effect: EffectClass::Write,
        idempotent: false,
        server: None,
    }
}

pub(crate) fn multi_edit() -> ToolSpec {
    ToolSpec {
        name: "MultiEdit".into(),
        aliases: &["multi_edit", "edit_file_multi"],
        title: "Edit a file in several places".into(),
        description: "Several edits of one file, as Edit makes them, in the given order: each sees what those before it made. All are made or none."
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

pub(crate) fn apply_patch() -> ToolSpec {
    ToolSpec {
        name: "ApplyPatch".into(),
        aliases: &["apply_patch", "patch"],
        title: "Apply a patch".into(),
        description: "Changes several files at once, all or none. Give either `patch`, in this form:\n\
                      *** Begin Patch\n*** Add File: PATH\n+line\n*** Update File: PATH\n*** Move to: NEWPATH (optional)\n@@ a line before, e.g. the function's (optional)\n \
                      line that stays\n-line that goes\n+line that comes\n*** Delete File: PATH\n*** End Patch\n\
                      or `path`, `old` and `new` to replace a text of one file, by similarity if `fuzzy`. Paths are relative. A file that was not read in this \
                      session is not replaced by an addition or a move, and its hunks must fit in one place only."
            .to_owned(),
        schema: object(
            &json!({
                "patch": { "type": "string", "minLength": 1, "description": "The patch" },
                "path": { "type": "string", "minLength": 1, "description": "Without `patch`: the file" },
                "old": { "type": "string", "minLength": 1, "description": "Without `patch`: the text to replace" },
                "new": { "type": "string", "description": "Without `patch`: what to put in its place" },
                "expected_replacements": { "type": "integer", "minimum": 1, "description": "How often `old` is there; default 1" },
                "fuzzy": { "type": "boolean", "description": "Take lines that are like `old` when it is not there exactly" },
                "min_similarity": { "type": "number", "minimum": 0.5, "maximum": 1, "description": "How much alike; default 0.92" }
            }),
            &[],
        ),
        example: json!({
            "patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    let a = 1;\n+    let a = 2;\n*** End Patch"
        }),
        effect: EffectClass::Write,
        idempotent: false,
        server: None,
    }
}

pub(crate) fn undo_patch() -> ToolSpec {
    ToolSpec {
        name: "UndoPatch".into(),
        aliases: &["undo_patch", "undo_edit"],
        title: "Undo a change of files".into(),
        description: "Undoes a change that Write, Edit, MultiEdit or ApplyPatch made in this session. Refuses when a file was changed since."
            .to_owned(),
        schema: object(
            &json!({
                "undo_id": { "type": "string", "minLength": 1, "description": "The undo id that the change's result has" },
                "force": { "type": "boolean", "description": "Undo also what was changed since, and lose that" }
            }),
            &["undo_id"],
        ),
        example: json!({ "undo_id": "0123456789ab" }),
        effect: EffectClass::Write,
        idempotent: false,
        server: None,
    }
}
