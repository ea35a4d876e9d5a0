//! The scripted task: shell, reads and edits in a repository of 96 files, one output of 60 kB, one final text.

use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Steps with a tool call.
pub const STEPS: usize = 30;
/// Files of the repository.
const FILES: usize = 96;
/// Functions of each file.
const FUNCTIONS: usize = 14;
/// The step that prints 60 kB.
const LONG: usize = 0;
/// The person's words.
pub const PROMPT: &str = "The parser accepts numbers with a trailing dot. Find every place that relies on it, \
    change them to use `strict_number`, and run the tests.";
/// The model's last words.
pub const FINAL: &str = "Six modules relied on the trailing dot. They call `strict_number` now, which refuses it. \
    The tests pass: 2,500 cases, none failed. I left `part_90.rs` alone, since only its comment mentions the dot.";

/// Writes the repository.
pub fn lay_out(place: &Path) -> io::Result<()> {
    let source = place.join("src");
    std::fs::create_dir_all(&source)?;
    for file in 0..FILES {
        std::fs::write(source.join(format!("part_{file:02}.rs")), content(file))?;
    }
    Ok(())
}

/// About 3 kB of code.
fn content(file: usize) -> String {
    let functions = (0..FUNCTIONS).map(|n| {
        format!(
            "/// Reads field {n} of record {file}, with the sign that precedes it.\n\
             pub fn field_{file}_{n}(text: &str) -> Option<f64> {{\n    \
             let (sign, digits) = split_sign(text.trim_start())?;\n    \
             let value = loose_number(digits, {n})?;\n    Some(sign * value)\n}}\n\n"
        )
    });
    functions.collect()
}

/// The call of a step. `patches`: the model changes files with patches.
pub fn call(step: usize, patches: bool) -> (&'static str, Value) {
    let file = step * 3 % FILES;
    let path = |step: usize| format!("src/part_{:02}.rs", step * 3 % FILES);
    match step % 5 {
        0 if step == LONG => (
            "Bash",
            // 2,500 lines of 24 bytes.
            json!({ "command": "for n in $(seq 1 2500); do printf 'test case %06d ... ok\\n' $n; done", "description": "Run the tests" }),
        ),
        0 => (
            "Bash",
            json!({ "command": format!("grep -n loose_number {} | head -20", path(step)), "description": "Find calls of loose_number" }),
        ),
        1 | 2 => ("Read", json!({ "file_path": path(step) })),
        3 => {
            let file = (step - 1) * 3 % FILES;
            let old = format!("    let value = loose_number(digits, {})?;", step % FUNCTIONS);
            let new = format!("    let value = strict_number(digits, {})?;", step % FUNCTIONS);
            let path = path(step - 1);
            if patches {
                let header = format!(
                    "pub fn field_{file}_{}(text: &str) -> Option<f64> {{",
                    step % FUNCTIONS
                );
                let patch = format!(
                    "*** Begin Patch\n*** Update File: {path}\n@@ {header}\n-{old}\n+{new}\n*** End Patch"
                );
                ("ApplyPatch", json!({ "patch": patch }))
            } else {
                (
                    "Edit",
                    json!({ "file_path": path, "old_string": old, "new_string": new }),
                )
            }
        }
        _ => (
            "Bash",
            json!({ "command": format!("wc -l src/*.rs | head -{}", 5 + file % 7), "description": "Count lines" }),
        ),
    }
}
